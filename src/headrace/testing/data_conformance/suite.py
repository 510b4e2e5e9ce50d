"""The cases as a class for pytest, for the author of a backend."""

from typing import Any
from unittest import SkipTest

from headrace.data.backend import Backend
from headrace.testing.data_conformance.case import Case, exercise


class DataConformance:
    """Subclass it under a name that pytest collects, and say how a backend is made. Each case is one test."""

    url: str | None = None  # for other processes; without it the cases that need some are left out
    refused: frozenset[str] = frozenset()  # shapes that the backend says it cannot store
    megabytes: int = 64  # of the case about memory

    def make_backend(self) -> Backend:
        """Every call within one test gives another backend on the same place, which is empty when the test begins."""
        raise NotImplementedError(f"{type(self).__name__}.make_backend: return a backend on an empty place")

    @classmethod
    def cases(cls) -> list[Case]:
        from headrace.testing.data_conformance import all_cases

        return all_cases()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Of pytest: one test for each case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases(), ids=str)

    def test_case(self, case: Case) -> None:
        if case.needs_url and self.url is None:
            raise SkipTest("other processes are part of this case, and they have no url to open")
        exercise(case, self.make_backend, url=self.url, refused=self.refused, megabytes=self.megabytes)
