"""The conformance suites in the hands of somebody else: they pass what is right, and catch what is wrong."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headrace.core.clock import FakeClock
from headrace.core.settlement import Settlement
from headrace.core.task import ClaimedTask, Enqueued, NewTask, Ref, Want
from headrace.executors.base import Launch, Ran
from headrace.executors.coroutine import CoroutineExecutor
from headrace.store.base import Admission, CancelAnswer, FinishReport, StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.testing.executor_conformance import ExecutorConformance
from headrace.testing.store_conformance import Case, StoreConformance, all_cases, exercise
from tests.testing.test_plugin import project as project
from tests.testing.test_plugin import run


class AcceptsEverything(SQLiteStore):
    """A worker that lost its claim is told that its report was taken."""

    async def finish(self, worker: str, settlements: Sequence[Settlement], *, wants: Sequence[Want] = ()) -> Any:
        report = await super().finish(worker, settlements, wants=wants)
        return FinishReport(accepted=report.accepted | report.refused, claimed=report.claimed)


class ForgetsTheAge(SQLiteStore):
    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued]:
        return await super().enqueue([replace(task, max_age=None) for task in tasks])


class OnlySaysThatItCancelled(SQLiteStore):
    async def cancel(self, ids: Sequence[int], *, reason: str = "user") -> dict[int, CancelAnswer]:
        return dict.fromkeys(ids, CancelAnswer.CANCELLED)


class AdmitsEveryone(SQLiteStore):
    async def admit(self, worker: str, claims: Sequence[ClaimedTask]) -> Admission:
        return Admission(admitted=frozenset(Ref(claim.id, claim.claim_no) for claim in claims))


class HasTwoRescuers(SQLiteStore):
    async def take_over(self, worker: str, *, beat: int) -> bool:
        await super().take_over(worker, beat=beat)
        return True


class IgnoresPauses(SQLiteStore):
    async def pause(self, queue: str) -> None:
        pass


FAULTS = [
    (AcceptsEverything, "refused_reports"),
    (ForgetsTheAge, "upkeep"),
    (OnlySaysThatItCancelled, "cancel"),
    (AdmitsEveryone, "admission"),
    (HasTwoRescuers, "liveness_and_rescue"),
    (IgnoresPauses, "queues"),
]


def outcome(case: Case, kind: type[SQLiteStore], template: Path, path: Path) -> str | None:
    """Why the case fails; None when it passes."""
    path.write_bytes(template.read_bytes())
    for left in path.parent.glob(f"{path.name}-*"):
        left.unlink()
    clock = FakeClock()
    try:
        asyncio.run(exercise(case, lambda: kind(str(path), StoreOptions(extra={"clock": clock})), clock=clock))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(("kind", "concern"), FAULTS, ids=lambda value: getattr(value, "__name__", value))
def test_one_fault_in_a_store_is_caught_by_the_cases_of_its_concern(
    kind: type[SQLiteStore], concern: str, sqlite_template: Path, tmp_path: Path
) -> None:
    module = f"headrace.testing.store_conformance.{concern}"
    cases = [case for case in all_cases() if case.proof.__module__ == module]
    assert cases
    found = {str(case): outcome(case, kind, sqlite_template, tmp_path / "x.db") for case in cases}
    assert any(found.values()), f"{kind.__name__} passed all of {sorted(found)}"
    # And it is the fault that is caught: without it the same cases pass.
    caught = [case for case in cases if found[str(case)]]
    assert [outcome(case, SQLiteStore, sqlite_template, tmp_path / "y.db") for case in caught] == [None] * len(caught)


class TestOfAnothersStore(StoreConformance):
    """The shipped class, as its docstring says to use it, on a few of the cases."""

    @pytest.fixture(autouse=True)
    def database(self, tmp_path: Path, sqlite_template: Path) -> None:
        self.clock = FakeClock()
        self.path = tmp_path / "ledger.db"
        self.path.write_bytes(sqlite_template.read_bytes())

    def make_store(self) -> SQLiteStore:
        return SQLiteStore(str(self.path), StoreOptions(extra={"clock": self.clock}))

    def cases(self) -> list[Case]:
        return super().cases()[::25]


class TestOfAnothersExecutor(ExecutorConformance):
    able = ("function", "limits", "wake")
    traits = {"suffix": "_async"}  # noqa: RUF012

    def make_executor(self, slots: Any, host: Any) -> CoroutineExecutor:
        return CoroutineExecutor(concurrency=8, slots=slots, host=host)

    def cases(self) -> Any:
        return super().cases()[::4]


def test_what_is_missing_is_told() -> None:
    with pytest.raises(NotImplementedError, match=r"StoreConformance\.make_store"):
        StoreConformance().make_store()
    with pytest.raises(NotImplementedError, match=r"ExecutorConformance\.make_executor"):
        ExecutorConformance().make_executor(Any, Any)  # pyright: ignore[reportArgumentType]
    assert len(StoreConformance().cases()) == len(all_cases()) > 100


THEIRS = """
import pytest

from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.testing import FakeClock
from headrace.testing.databases import temporary_database
from headrace.testing.store_conformance import StoreConformance

class Broken(SQLiteStore):
    async def pause(self, queue): ...

class OnAFile(StoreConformance):
    kind = SQLiteStore

    @pytest.fixture(autouse=True)
    def database(self):
        self.clock = FakeClock()
        with temporary_database() as database:
            self.path = database.url.removeprefix("sqlite:///")
            yield

    def make_store(self):
        return self.kind(self.path, StoreOptions(extra={"clock": self.clock}))

    def cases(self):
        return [case for case in super().cases() if case.concern == "queues"]

class TestSound(OnAFile): ...

class TestBroken(OnAFile):
    kind = Broken
"""


@pytest.mark.timeout(300)
def test_an_author_runs_it_with_pytest_alone(project: Path) -> None:
    (project / "conftest.py").unlink()
    out = run(project, suite=THEIRS, status=1)
    assert "FAILED test_app.py::TestBroken::test_case[queues-" in out
    assert "TestSound" not in re.sub(r"(?m)^class TestSound.*$", "", out.partition("short test summary")[2])
    assert re.search(r"\d+ failed, \d+ passed", out)


class LosesArguments(CoroutineExecutor):
    async def run(self, launch: Launch) -> Ran:
        return await super().run(launch._replace(claim=launch.claim._replace(arguments="{}")))


def test_a_fault_in_an_executor_is_caught(tmp_path: Path) -> None:
    class Theirs(ExecutorConformance):
        able = ("function",)
        traits = {"suffix": "_async"}  # noqa: RUF012

        def make_executor(self, slots: Any, host: Any) -> CoroutineExecutor:
            return LosesArguments(concurrency=8, slots=slots, host=host)

    (case,) = [case for case in Theirs().cases() if getattr(case, "__name__", "") == "arguments_arrive_unchanged"]
    with pytest.raises(AssertionError):
        Theirs().test_case(case)
