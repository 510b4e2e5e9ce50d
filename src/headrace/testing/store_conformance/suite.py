"""The cases as a class for pytest, for the author of a store."""

import asyncio
from typing import Any

from headrace.core.clock import FakeClock
from headrace.store.base import Store
from headrace.testing.store_conformance.case import Case, exercise


class StoreConformance:
    """Subclass it under a name that pytest collects, and say how a store is made:

        class TestMyStore(StoreConformance):
            @pytest.fixture(autouse=True)
            def database(self, tmp_path):
                self.clock = FakeClock()
                self.path = tmp_path / "ledger"

            def make_store(self):
                return MyStore(self.path, clock=self.clock)

    Each case is one test, with an instance of the class of its own. `cases` may be narrowed in the subclass.
    """

    clock: FakeClock | None = None  # of the stores, where they take one; without it time passes by itself
    timeout: float = 90.0  # seconds for one case

    def make_store(self) -> Store:
        """A store that is not open. Every call within one test gives another store on the same database, which is empty
        when the test begins, and has the schema."""
        raise NotImplementedError(f"{type(self).__name__}.make_store: return a store on an empty database")

    def cases(self) -> list[Case]:
        from headrace.testing.store_conformance import all_cases

        return all_cases()

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Of pytest: one test for each case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases(), ids=str)

    def test_case(self, case: Case) -> None:
        asyncio.run(asyncio.wait_for(exercise(case, self.make_store, clock=self.clock), timeout=self.timeout))
