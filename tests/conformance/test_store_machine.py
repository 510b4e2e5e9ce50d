"""Random histories: the same acts on a store and on a model of it, which must agree after every step."""

import asyncio
import itertools
import shutil
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headrace.core.clock import FakeClock
from headrace.core.errors import WrongState
from headrace.core.limits import Gate
from headrace.core.outcome import Released
from headrace.core.settlement import Execution, Settlement
from headrace.core.task import ClaimedTask, Key, NewJob, NewTask, TaskFilter, TaskRecord
from headrace.store.base import Started, Store, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect
from headrace.testing.store_conformance import ledger as acts
from headrace.testing.store_conformance.ledger import Ledger, ref, task
from tests.conformance.conftest import empty_postgres
from tests.conformance.ledger_model import LedgerModel, ModelJob, ModelTask
from tests.support.sizes import sized

LIMIT = 2
PRIORITIES = st.integers(-1, 2)
OUTCOMES: dict[str, Callable[[ClaimedTask], Settlement]] = {
    "completed": acts.completed,
    "failed": acts.failed,
    "failed for good": acts.failed_for_good,
    "released": acts.released,
    "suspect": lambda claim: acts.released(claim, suspect=True),
    "snoozed": lambda claim: acts.snoozed(claim, 0.0),
    "stopped": acts.stopped,
    "lost": acts.lost,
}


class LedgerMachine(RuleBasedStateMachine):
    def __init__(self, make_store: Callable[[], Store], clock: FakeClock | None) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._clock = clock
        self.ledger = Ledger(make_store, clock)
        self.model = LedgerModel()
        self.records: dict[int, TaskRecord] = {}
        self.claims: dict[int, ClaimedTask] = {}  # in someone's hands now
        self.stale: list[tuple[str, ClaimedTask]] = []  # (worker, claim) that no longer hold
        self.last: tuple[str, Settlement] | None = None
        self.workers: list[str] = []
        self._names = (f"w{n}" for n in itertools.count(1))

    def do[T](self, act: Coroutine[Any, Any, T]) -> T:
        if self._clock is not None:
            self._clock.advance(0.001)
        return self._runner.run(act)

    @property
    def store(self) -> Store:
        return self.ledger.store

    @initialize()
    def open(self) -> None:
        self.do(self.ledger.open())
        for _ in range(2):
            self._hire()

    def teardown(self) -> None:
        try:
            broken = [violation for violation in self.do(self.store.check()) if violation.rule not in WARNINGS]
            assert broken == []
        finally:
            self.do(self.ledger.close())
            self._runner.close()

    def _hire(self) -> None:
        worker = next(self._names)
        self.do(self.ledger.register(worker))
        self.workers.append(worker)

    # Enqueue.

    def _note(self, task_id: int, new: NewTask) -> None:
        self.model.tasks[task_id] = ModelTask(
            id=task_id, priority=new.priority, max_attempts=new.max_attempts, job=new.job, critical=new.critical,
            key=new.keys[0].key if new.keys else None, limit=new.gates[0].key if new.gates else None,
        )  # fmt: skip

    @rule(n=st.integers(1, 4), priority=PRIORITIES, max_attempts=st.integers(1, 3), limited=st.booleans())
    def enqueue(self, n: int, priority: int, max_attempts: int, limited: bool) -> None:
        gates = (Gate(kind="limit", key="k", n=LIMIT),) if limited else ()
        news = [task(priority=priority, max_attempts=max_attempts, gates=gates) for _ in range(n)]
        for new, task_id in zip(news, self.do(self.ledger.enqueue(*news)), strict=True):
            self._note(task_id, new)

    @rule(keys=st.lists(st.sampled_from("abc"), min_size=1, max_size=4))
    def enqueue_keyed(self, keys: list[str]) -> None:
        news = [task(keys=(Key(scope="unique", key=key),)) for key in keys]
        for new, key, answer in zip(news, keys, self.do(self.store.enqueue(news)), strict=True):
            holder = self.model.holder(key)
            assert answer.created == (holder is None), f"key {key} is held by {holder}"
            if holder is None:
                self._note(answer.id, new)
            else:
                assert answer.id == holder.id

    @rule(critical=st.lists(st.booleans(), min_size=1, max_size=3))
    def create_job(self, critical: list[bool]) -> None:
        tasks = tuple(task(critical=c, max_attempts=2) for c in critical)
        hook = task("hook", queue="hooks")
        job, answers = self.do(self.store.create_job(NewJob(name="j", tasks=tasks, on_success=hook, on_failure=hook)))
        self.model.jobs[job] = ModelJob(id=job)
        for new, answer in zip(tasks, answers, strict=True):
            self._note(answer.id, new)
            self.model.tasks[answer.id].job = job

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def add_to_job(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.model.jobs)))
        new = task(job=job)
        try:
            (answer,) = self.do(self.store.enqueue([new]))
        except WrongState:
            assert self.model.jobs[job].over, "an open job refused a task"
        else:
            assert not self.model.jobs[job].over, "a job that is over took a task"
            self._note(answer.id, new)

    # Claim, start, finish.

    @rule(data=st.data(), n=st.integers(1, 6))
    def claim(self, data: st.DataObject, n: int) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        claims = self.do(self.ledger.claim(worker, n))
        for lane in (0, 1):
            ready = [
                t for t in self.model.tasks.values()
                if t.state == "pending" and t.lane == lane and self.records[t.id].waiting_on is None
            ]  # fmt: skip
            got = [claim for claim in claims if claim.lane == lane]
            assert {claim.id for claim in got} <= {t.id for t in ready}, "claimed what was not ready"
            assert len(got) == (0 if self.model.paused else min(n, len(ready)))
            best = sorted((t.priority for t in ready), reverse=True)[: len(got)]
            assert [claim.priority for claim in got] == best, "not best first"
        for claim in claims:
            self.model.claim(claim.id, worker)
            known = self.model.tasks[claim.id]
            assert (claim.claim_no, claim.run_no, claim.attempt) == (known.claim_no, known.run_no, known.attempt)
            assert claim.gated == (known.limit is not None)
            self.claims[claim.id] = claim
        self._admit(worker, [claim for claim in claims if claim.gated])

    def _admit(self, worker: str, gated: list[ClaimedTask]) -> None:
        if not gated:
            return
        answer = self.do(self.store.admit(worker, gated))
        assert len(answer.admitted) == min(len(gated), self.model.free_slots("k", LIMIT))
        for claim in gated:
            if ref(claim) in answer.admitted:
                self.model.tasks[claim.id].admitted = True
            else:
                assert ref(claim) in answer.parked
                self.model.tasks[claim.id].leave("pending")
                self._drop(claim, worker)

    def _drop(self, claim: ClaimedTask, worker: str) -> None:
        del self.claims[claim.id]
        self.stale.append((worker, claim))

    def _held(self) -> list[int]:
        return sorted(self.claims)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        claim = self.claims[data.draw(st.sampled_from(self._held()))]
        known = self.model.tasks[claim.id]
        assert known.worker is not None
        answer = self.do(self.store.start(known.worker, [ref(claim)]))[ref(claim)]
        if known.state == "cancelling":
            # One that was cancelled while it ran has been started already; either answer keeps it cancelling.
            assert answer in (Started.CANCELLING, Started.STARTED)
        else:
            assert answer is Started.STARTED
            known.state = "running"

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=4))
    def finish(self, data: st.DataObject, outcomes: list[str]) -> None:
        first = self.model.tasks[data.draw(st.sampled_from(self._held()))]
        worker = first.worker
        assert worker is not None
        mine = [c for c in self.claims.values() if self.model.tasks[c.id].worker == worker][: len(outcomes)]
        # A job's failure changes what its other tasks are; the batch as a whole would have no order to predict.
        claims = mine if all(c.job is None for c in mine) else [self.claims[first.id]]
        settlements = [OUTCOMES[outcome](claim) for outcome, claim in zip(outcomes, claims, strict=False)]
        self.do(self.ledger.finish(worker, *settlements))
        for settlement, claim in zip(settlements, claims, strict=False):
            self.model.finish(settlement)
            self._drop(claim, worker)
            self.last = (worker, settlement)

    # Reports that must change nothing.

    @precondition(lambda self: self.last)
    @rule()
    def repeat_the_last_report(self) -> None:
        assert self.last is not None
        worker, settlement = self.last
        assert not self.do(self.store.finish(worker, [settlement])).accepted

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), outcome=st.sampled_from(sorted(OUTCOMES)))
    def report_late(self, data: st.DataObject, outcome: str) -> None:
        worker, claim = data.draw(st.sampled_from(self.stale))
        assert not self.do(self.store.finish(worker, [OUTCOMES[outcome](claim)])).accepted
        assert self.do(self.store.start(worker, [ref(claim)])) == {ref(claim): Started.REFUSED}

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcome=st.sampled_from(sorted(OUTCOMES)))
    def a_stranger_reports(self, data: st.DataObject, outcome: str) -> None:
        claim = self.claims[data.draw(st.sampled_from(self._held()))]
        report = self.do(self.store.finish("stranger", [OUTCOMES[outcome](claim)]))
        assert report.refused == {ref(claim)}

    # What people do.

    @precondition(lambda self: self.model.tasks)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.model.tasks)), min_size=1, max_size=3, unique=True))
        ids = ids if all(self.model.tasks[i].job is None for i in ids) else ids[:1]
        answers = self.do(self.store.cancel(ids))
        assert {i: answer.value for i, answer in answers.items()} == {i: self.model.cancel(i) for i in ids}

    @precondition(lambda self: any(t.ended and not t.key for t in self.model.tasks.values()))
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        ended = sorted(t.id for t in self.model.tasks.values() if t.ended and not t.key)
        task_id = data.draw(st.sampled_from(ended))
        assert self.do(self.store.retry([task_id])) == [task_id]
        self.model.run_again(task_id)
        job = self.model.tasks[task_id].job
        if job is not None and self.model.jobs[job].over:
            self.model.jobs[job].over = None
            self.model.jobs[job].run_no += 1

    @precondition(lambda self: self.model.jobs)
    @rule(data=st.data())
    def cancel_job(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(sorted(self.model.jobs)))
        try:
            self.do(self.store.cancel_job(job))
        except WrongState:
            assert self.model.jobs[job].over
        else:
            assert not self.model.jobs[job].over
            self.model.jobs[job].over = "cancelled"
            self.model.stop_tasks_of(job)

    @precondition(lambda self: any(job.over in ("failed", "cancelled") for job in self.model.jobs.values()))
    @rule(data=st.data())
    def retry_failed(self, data: st.DataObject) -> None:
        over = sorted(job.id for job in self.model.jobs.values() if job.over in ("failed", "cancelled"))
        job = data.draw(st.sampled_from(over))
        tasks = self.model.of_job(job)
        if any(t.state == "cancelling" for t in tasks):
            self.do(acts.refused(self.store.retry_failed(job), WrongState))
            return
        reopened = set(self.do(self.store.retry_failed(job)))
        assert {t.id for t in tasks if t.state == "failed"} <= reopened
        assert reopened <= {t.id for t in tasks if t.state in ("failed", "cancelled")}
        for task_id in reopened:
            self.model.run_again(task_id)
        found = self.do(self.ledger.job(job))
        assert found.run_no in (self.model.jobs[job].run_no, self.model.jobs[job].run_no + 1)
        if found.run_no > self.model.jobs[job].run_no:
            self.model.jobs[job].run_no, self.model.jobs[job].over = found.run_no, None

    @rule(paused=st.booleans())
    def pause_or_resume(self, paused: bool) -> None:
        self.do(self.store.pause("default") if paused else self.store.resume("default"))
        self.model.paused = paused

    # Death.

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def a_worker_leaves(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        mine = [claim for claim in self.claims.values() if self.model.tasks[claim.id].worker == worker]
        assert self.do(self.store.deregister(worker)) == len(mine)
        for claim in mine:
            known = self.model.tasks[claim.id]
            known.leave("cancelled" if known.state == "cancelling" else "pending")
            self._drop(claim, worker)
        self._replace(worker)

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def a_worker_dies_and_is_rescued(self, data: st.DataObject) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        beat = next(w.beat for w in self.do(self.store.workers()) if w.id == worker)
        assert self.do(self.store.take_over(worker, beat=beat))
        assert self.do(self.store.heartbeat([worker])) == set()
        held = self.do(self.store.held(worker))
        assert {claim.id for claim in held} == {i for i in self.claims if self.model.tasks[i].worker == worker}
        for claim in held:
            if claim.state == "claimed":
                by_rescuer = Execution(recorded_by="rescuer")
                settlement = acts.settled(claim, Released(suspect=True), execution=by_rescuer)
            else:
                settlement = acts.lost(claim)
            self.do(self.ledger.finish(worker, settlement))
            self.model.finish(settlement)
            self._drop(self.claims[claim.id], worker)
        self._replace(worker)

    def _replace(self, worker: str) -> None:
        self.workers.remove(worker)
        self._hire()

    # Agreement.

    @invariant()
    def tasks_agree(self) -> None:
        self.records = self.do(self.store.get(list(self.model.tasks)))
        for known in self.model.tasks.values():
            found = self.records[known.id]
            assert (found.state.value, found.attempt, found.claim_no, found.run_no) == (
                known.state, known.attempt, known.claim_no, known.run_no,
            ), f"task {known.id}: expected {known}"  # fmt: skip
            if not known.ended:
                assert (found.worker, found.lane) == (known.worker, known.lane)

    @invariant()
    def nobody_is_forgotten_at_a_limit(self) -> None:
        # Invariants are checked in no promised order: what another one read may be older than the last act.
        self.records = self.do(self.store.get(list(self.model.tasks)))
        parked = [r for r in self.records.values() if r.waiting_on is not None]
        ready = [
            t for t in self.model.tasks.values()
            if t.limit and t.state == "pending" and t.id in self.records and self.records[t.id].waiting_on is None
        ]  # fmt: skip
        free = self.model.free_slots("k", LIMIT)
        assert free >= 0
        assert len(ready) >= min(free, len(parked)), "a slot is free, somebody waits for it, and nobody told them"

    @invariant()
    def jobs_agree(self) -> None:
        hooks = 0
        for known in self.model.jobs.values():
            found = self.do(self.ledger.job(known.id))
            states = [t.state for t in self.model.of_job(known.id)]
            assert (found.total, found.completed, found.failed, found.cancelled) == (
                len(states), states.count("completed"), states.count("failed"), states.count("cancelled"),
            )  # fmt: skip
            assert found.run_no == known.run_no
            if known.over is None and found.open == 0:
                assert found.state.terminal, "all of its tasks have ended"
                known.over = found.state.value
            assert (found.state.value if found.state.terminal else None) == known.over
            hooks += known.run_no if known.over else known.run_no - 1
        if self.model.jobs:
            listed = self.do(self.store.list(TaskFilter(queues=("hooks",), limit=1000)))
            assert len(listed) == hooks, "one hook per job and run"


@pytest.mark.chaos
@pytest.mark.timeout(900)
def test_random_histories_agree_with_the_model(store_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    numbers = itertools.count()

    def machine() -> LedgerMachine:
        if not store_url.startswith("sqlite:"):
            empty_postgres(request.getfixturevalue("postgres_server"), request.getfixturevalue("conformance_database"))
            return LedgerMachine(lambda: connect(store_url), None)
        path = tmp_path / f"{next(numbers)}.db"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        clock = FakeClock()
        return LedgerMachine(lambda: connect(f"sqlite:///{path}", StoreOptions(extra={"clock": clock})), clock)

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sized(small=10, full=400),
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
