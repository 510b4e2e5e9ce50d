"""What `expected_live` and `expected_ended` ask for."""

from datetime import datetime

from headrace.store.expecting import Expected


def parameters(expected: Expected) -> tuple[list[str], datetime]:
    return [state.value for state in expected.states], expected.until
