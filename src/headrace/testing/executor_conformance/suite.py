"""The cases as a class for pytest, for the author of an executor."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from headrace.executors.base import Executor
from headrace.executors.invocation import Host
from headrace.executors.slots import SlotRange
from headrace.testing.executor_conformance.cases import Case, Need, cases_for
from headrace.testing.executor_conformance.stand import Stand


class ExecutorConformance:
    """Subclass it under a name that pytest collects, and say how an executor is made and what it can do:

        class TestMyExecutor(ExecutorConformance):
            able = ("function", "wake")

            def make_executor(self, slots, host):
                return MyExecutor(slots=slots, host=host)

    Each case is one test. What `able` may hold, and `traits` (what the launches look like), see `cases` and `Stand`.
    """

    able: tuple[Need, ...] = ("function",)
    traits: dict[str, Any] = {}  # noqa: RUF012 -- only read
    timeout: float = 90.0  # seconds for one case

    def make_executor(self, slots: SlotRange, host: Host) -> Executor:
        """An executor that is not open."""
        raise NotImplementedError(f"{type(self).__name__}.make_executor: return an executor")

    def cases(self) -> list[Case]:
        return cases_for(*self.able)

    def pytest_generate_tests(self, metafunc: Any) -> None:
        """Of pytest: one test for each case."""
        if "case" in metafunc.fixturenames:
            metafunc.parametrize("case", self.cases(), ids=_name)

    def test_case(self, case: Case) -> None:
        asyncio.run(asyncio.wait_for(self._exercise(case), timeout=self.timeout))

    async def _exercise(self, case: Case) -> None:
        with tempfile.TemporaryDirectory(prefix="headrace-test-") as directory:
            async with Stand.open(self.make_executor, Path(directory), **self.traits) as stand:
                await case(stand)


def _name(case: Case) -> str:
    return getattr(case, "__name__", str(case))
