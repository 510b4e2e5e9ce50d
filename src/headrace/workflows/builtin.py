"""Tasks that a plan adds of its own. Workers find them by their dotted path, like any entrypoint."""

from typing import Any

COLLECT = "headrace.workflows.builtin.collect"
APPROVED = "headrace.workflows.builtin.approved"


async def collect(results: list[Any]) -> list[Any]:
    """The one task between two groups: the first one's results as a list, for each task of the second."""
    return results


async def approved() -> Any:
    """What `approve()` came to: {"by": …, "note": …, "at": …}. It runs once somebody has approved it."""
    from headrace.executors.context import current

    context: Any = current
    # `decide` has stored the step before this task became pending.
    return await context.step("approval", _nobody)


async def _nobody() -> None:
    raise RuntimeError("this task runs, and nobody has approved it")
