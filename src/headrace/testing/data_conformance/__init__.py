"""What every place for tables must do, as cases that run on any of them.

A case is a function over a `Stand`: a backend on an empty place.

    class TestMyBackend(DataConformance):
        @pytest.fixture(autouse=True)
        def place(self, tmp_path):
            self.url = f"mine://{tmp_path}"

        def make_backend(self):
            return MyBackend(self.url)

gives pytest one test for each case; or, without a class:

    @pytest.mark.parametrize("case", all_cases(), ids=str)
    def test_conformance(case, tmp_path):
        exercise(case, lambda: MyBackend(…))
"""

from headrace.testing.data_conformance import concat, memory, processes, pruning, runs, slices, types, writing
from headrace.testing.data_conformance.case import Case, exercise
from headrace.testing.data_conformance.stand import Stand
from headrace.testing.data_conformance.suite import DataConformance

__all__ = ["Case", "DataConformance", "Stand", "all_cases", "exercise"]

_CONCERNS = (writing, types, slices, concat, runs, pruning, processes, memory)


def all_cases() -> list[Case]:
    return [case for concern in _CONCERNS for case in concern.cases]
