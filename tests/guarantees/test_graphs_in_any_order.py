"""Graphs of tasks, whatever happens to them in whatever order, end as their edges say.

A machine makes random graphs and lets random things happen to them: ends of every kind, retries, cancellations, new
runs of parts, workers that leave or die, late reports, decisions, calls and events. After every step the ledger's own
checker finds nothing, and what the store made of those that wait is what `core.advance` says of the same edges and
ends. The databases carry the guard, which refuses a transition that the table of states does not know.
"""

import asyncio
import itertools
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from headrace.core.advance import Verdict, advance, reason_for, verdict
from headrace.core.clock import FakeClock
from headrace.core.errors import WrongState
from headrace.core.settlement import Settlement
from headrace.core.states import Reason, TaskState
from headrace.core.task import After, ClaimedTask, Edge, EdgeKind, JobRecord, NewJob, NewTask, TaskFilter, TaskRecord
from headrace.store.base import RELEASED_AT_ONCE, Store, StoreOptions
from headrace.store.checker import WARNINGS
from headrace.store.connect import connect, sqlite_path
from headrace.testing.store_conformance import ledger as acts
from headrace.testing.store_conformance.ledger import Ledger, ref, task
from tests.guarantees.ledgers import empty
from tests.support.sizes import sized

HOOKS = "hooks"
CLOSED = (Reason.UPSTREAM_FAILED.value, Reason.SKIPPED.value)
UNHELD = (TaskState.PENDING, TaskState.BLOCKED, TaskState.PENDING_APPROVAL)
OUTCOMES: dict[str, Callable[[ClaimedTask], Settlement]] = {
    "completed": acts.completed,
    "failed": acts.failed,
    "failed for good": acts.failed_for_good,
    "released": acts.released,
    "stopped": acts.stopped,
    "lost": acts.lost,
    "suspended": lambda claim: acts.suspended(claim, delay=0.0),
}
KINDS = st.sampled_from([EdgeKind.ON_SUCCESS, EdgeKind.ON_SUCCESS, EdgeKind.ON_DONE, EdgeKind.ON_FAILURE])


@st.composite
def nodes(draw: st.DrawFn, known: tuple[int, ...] = ()) -> list[NewTask]:
    """Tasks of one call, with edges among themselves and to those that are there."""
    made: list[NewTask] = []
    for place in range(draw(st.integers(1, 6))):
        ends = [*(After(task=up, local=True) for up in range(place)), *(After(task=up) for up in known)]
        ends += ends[:1] * 3  # some have many dependents
        chosen = draw(st.lists(st.sampled_from(ends), max_size=3)) if ends else []
        after = tuple(After(task=end.task, local=end.local, kind=draw(KINDS)) for end in chosen)
        made.append(
            task(
                "node",
                after=after,
                critical=draw(st.sampled_from([True, False])),
                approval=draw(st.integers(0, 7)) == 0,
                max_attempts=draw(st.integers(1, 3)),
            )
        )
    return made


class GraphMachine(RuleBasedStateMachine):
    def __init__(self, make_store: Callable[[], Store], clock: FakeClock | None, *, releases: bool = False) -> None:
        super().__init__()
        self.releases = releases  # ends of tasks leave most of their dependents to `release`
        self._runner = asyncio.Runner()
        self._clock = clock
        self.ledger = Ledger(make_store, clock)
        self.jobs: list[int] = []
        self.of_job: dict[int, list[int]] = defaultdict(list)
        self.loose: list[int] = []  # children of no job
        self.claims: dict[int, tuple[str, ClaimedTask]] = {}
        self.stale: list[tuple[str, ClaimedTask]] = []
        self.workers: list[str] = []
        self._names = (f"w{n}" for n in itertools.count(1))
        self._steps = (f"s{n}" for n in itertools.count(1))
        self.records: dict[int, TaskRecord] = {}

    def do[T](self, act: Coroutine[Any, Any, T]) -> T:
        if self._clock is not None:
            self._clock.advance(0.001)
        return self._runner.run(act)

    @property
    def store(self) -> Store:
        return self.ledger.store

    @property
    def ids(self) -> list[int]:
        return [*(task_id for job in self.jobs for task_id in self.of_job[job]), *self.loose]

    @initialize(tasks=nodes())
    def open(self, tasks: list[NewTask]) -> None:
        self.do(self.ledger.open())
        for _ in range(2):
            self._hire()
        self.create_job(tasks)

    def teardown(self) -> None:
        try:
            while self.releases and self.do(self.store.release()):
                pass
            self.releases = False
            self.the_ledger_is_sound()
            self.what_waits_is_as_its_edges_say()
        finally:
            self.do(self.ledger.close())
            self._runner.close()

    def _hire(self) -> None:
        worker = next(self._names)
        self.do(self.ledger.register(worker))
        self.workers.append(worker)

    def _look(self) -> None:
        self.records = self.do(self.store.get(self.ids))

    def _ended(self) -> list[int]:
        return sorted(task_id for task_id, record in self.records.items() if record.state.terminal)

    # Graphs.

    @rule(tasks=nodes())
    def another_job(self, tasks: list[NewTask]) -> None:
        if len(self.jobs) < 3:
            self.create_job(tasks)

    def create_job(self, tasks: list[NewTask]) -> None:
        hooks = {"on_success": task("hook", queue=HOOKS), "on_failure": task("hook", queue=HOOKS)}
        job, answers = self.do(self.store.create_job(NewJob(name="j", tasks=tasks, **hooks)))
        self.jobs.append(job)
        self.of_job[job] = [answer.id for answer in answers]

    @precondition(lambda self: self.jobs)
    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        job = data.draw(st.sampled_from(self.jobs))
        if len(self.of_job[job]) > 12:
            return
        tasks = data.draw(nodes(tuple(self.of_job[job])))
        added = [
            NewTask(
                name=new.name,
                after=new.after,
                critical=new.critical,
                approval=new.approval,
                max_attempts=new.max_attempts,
                job=job,
            )
            for new in tasks
        ]
        try:
            answers = self.do(self.store.enqueue(added))
        except WrongState:
            assert self.do(self.ledger.job(job)).state.terminal
        else:
            self.of_job[job] += [answer.id for answer in answers]

    # Work.

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), n=st.integers(1, 4))
    def claim(self, data: st.DataObject, n: int) -> None:
        worker = data.draw(st.sampled_from(self.workers))
        for claim in self.do(self.ledger.claim(worker, n)):
            assert claim.id not in self.claims, "it is in somebody's hands"
            self.claims[claim.id] = (worker, claim)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), outcomes=st.lists(st.sampled_from(sorted(OUTCOMES)), min_size=1, max_size=4))
    def finish(self, data: st.DataObject, outcomes: list[str]) -> None:
        """Several of one worker in one batch."""
        worker = self.claims[data.draw(st.sampled_from(sorted(self.claims)))][0]
        mine = sorted(task_id for task_id, (holder, _) in self.claims.items() if holder == worker)
        ends = [OUTCOMES[how](self.claims[task_id][1]) for task_id, how in zip(mine, outcomes, strict=False)]
        self.do(self.ledger.finish(worker, *ends))
        for end in ends:
            self.stale.append(self.claims.pop(end.task))

    @rule(data=st.data(), outcomes=st.lists(st.sampled_from([*["completed"] * 5, *OUTCOMES]), min_size=4, max_size=4))
    def work(self, data: st.DataObject, outcomes: list[str]) -> None:
        """Whatever can be claimed, and a batch of ends."""
        self.claim(data, 4)
        if self.claims:
            self.finish(data, outcomes)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), in_job=st.booleans(), critical=st.booleans())
    def call(self, data: st.DataObject, in_job: bool, critical: bool) -> None:
        """A durable task makes another and waits for its end."""
        worker, claim = self.claims.pop(data.draw(st.sampled_from(sorted(self.claims))))
        job = claim.job if in_job else None
        if job is not None and self.do(self.ledger.job(job)).state.terminal:
            job = None
        new = task("child", job=job, critical=critical)
        child = self.do(self.store.spawn(worker, ref(claim), next(self._steps), new))
        assert child is not None
        (self.loose if job is None else self.of_job[job]).append(child)
        self.do(self.ledger.finish(worker, acts.suspended(claim, task=child)))
        self.stale.append((worker, claim))

    @precondition(lambda self: self.claims)
    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        worker, claim = self.claims[data.draw(st.sampled_from(sorted(self.claims)))]
        step = next(self._steps)
        got = self.do(self.store.receive(worker, ref(claim), step, event="e", key="k", timeout=None))
        if got is None:
            del self.claims[claim.id]
            self.do(self.ledger.finish(worker, acts.suspended(claim, step=step)))
            self.stale.append((worker, claim))

    @precondition(lambda self: self.jobs)
    @rule()
    def send(self) -> None:
        self.do(self.store.send("e", "k", "1"))
        self.do(self.store.deliver())

    @precondition(lambda self: self.stale)
    @rule(data=st.data(), outcome=st.sampled_from(sorted(OUTCOMES)))
    def report_late(self, data: st.DataObject, outcome: str) -> None:
        worker, claim = data.draw(st.sampled_from(self.stale))
        report = self.do(self.store.finish(worker, [OUTCOMES[outcome](claim)]))
        assert not report.accepted

    @precondition(lambda self: self.releases)
    @rule(limit=st.integers(1, 3))
    def release(self, limit: int) -> None:
        self.do(self.store.release(limit=limit))

    # People.

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        ids = data.draw(st.lists(st.sampled_from(sorted(self.records)), min_size=1, max_size=3, unique=True))
        self.do(self.store.cancel(ids))

    @precondition(lambda self: self._ended())
    @rule(data=st.data())
    def retry(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(self._ended()))
        before = self.records
        for changed in self.do(self.store.retry([task_id])):
            assert before[changed].state.terminal
            assert self.do(self.ledger.get(changed)).run_no == before[changed].run_no + 1

    @precondition(lambda self: self._ended())
    @rule(data=st.data())
    def clear(self, data: st.DataObject) -> None:
        task_id = data.draw(st.sampled_from(self._ended()))
        try:
            cleared = self.do(self.store.clear(task_id))
        except WrongState:
            return
        assert task_id in cleared
        for each in cleared:
            assert self.do(self.ledger.get(each)).state in UNHELD
            assert self.do(self.store.checkpoints(each)) == {}

    @precondition(lambda self: self.jobs)
    @rule(data=st.data(), retried=st.booleans())
    def cancel_or_retry_job(self, data: st.DataObject, retried: bool) -> None:
        job = data.draw(st.sampled_from(self.jobs))
        over = self.do(self.ledger.job(job)).state
        try:
            self.do(self.store.retry_failed(job) if retried else self.store.cancel_job(job))
        except WrongState:
            found = self.do(self.store.get(list(self.records))).values()
            stopping = any(r.job == job and r.state is TaskState.CANCELLING for r in found)
            assert over.terminal != retried or over == "completed" or (retried and stopping)

    @precondition(lambda self: any(r.state is TaskState.PENDING_APPROVAL for r in self.records.values()))
    @rule(data=st.data(), approved=st.booleans())
    def decide(self, data: st.DataObject, approved: bool) -> None:
        waiting = sorted(i for i, r in self.records.items() if r.state is TaskState.PENDING_APPROVAL)
        decided = self.do(self.store.decide(data.draw(st.sampled_from(waiting)), approved=approved, by="ann"))
        assert decided.state is (TaskState.PENDING if approved else TaskState.REJECTED)

    @precondition(lambda self: self.claims)
    @rule(data=st.data(), dies=st.booleans())
    def a_worker_goes(self, data: st.DataObject, dies: bool) -> None:
        """It leaves and gives back what it holds, or it is found dead and what it held is settled for it."""
        worker = data.draw(st.sampled_from(self.workers))
        if dies:
            beat = next(w.beat for w in self.do(self.store.workers()) if w.id == worker)
            assert self.do(self.store.take_over(worker, beat=beat))
            held = self.do(self.store.held(worker))
            if held:
                self.do(self.ledger.finish(worker, *[acts.lost(claim) for claim in held]))
        else:
            self.do(self.store.deregister(worker))
        for task_id in [i for i, (holder, _) in self.claims.items() if holder == worker]:
            self.stale.append(self.claims.pop(task_id))
        self.workers.remove(worker)
        self._hire()

    # What must be so.

    @invariant()
    def the_ledger_is_sound(self) -> None:
        broken = [found for found in self.do(self.store.check()) if found.rule not in WARNINGS]
        assert broken == [], broken

    @invariant()
    def what_waits_is_as_its_edges_say(self) -> None:
        self._look()
        if not self.records:
            return
        edges: dict[int, list[Edge]] = defaultdict(list)
        for edge in self.do(self.store.edges(list(self.records))):
            edges[edge.task].append(edge)
        over = {job: self.do(self.ledger.job(job)).state.terminal for job in self.jobs}
        # Direct ends, and who has begun: those do not wait. Nor does who was free before somebody ran again what it had
        # waited for, if the store lets it run.
        ended = {i: r.state for i, r in self.records.items() if r.state.terminal and r.reason not in CLOSED}
        again = {i for i, r in self.records.items() if r.run_no > 1}
        waiting = [
            i
            for i, r in self.records.items()
            if i not in ended and not _has_begun(r) and not (_is_free(r) and {e.upstream for e in edges[i]} & again)
        ]
        free, closed = advance([(e.task, e.upstream, e.kind) for i in waiting for e in edges[i]], ended)
        states = ended | dict.fromkeys(closed, TaskState.CANCELLED)
        for task_id in waiting:
            record, mine = self.records[task_id], edges[task_id]
            if record.job is not None and over[record.job]:
                continue  # its end took the rest along; the checker asks whether that is explained
            story = f"task {task_id} is {record.state}/{record.reason}, its edges {mine}, what ended {states}"
            if task_id in closed:
                lost = [e for e in mine if e.upstream in states and _is_lost(e, states[e.upstream])]
                # The reason is that of the day: what was lost then may have been run again since.
                then = [e for e in mine if e.upstream in again]
                assert record.reason in {reason_for(e.kind).value for e in (*lost, *then)}, story
            elif task_id in free or not mine:
                assert _is_free(record) or (self.releases and record.state is TaskState.BLOCKED), story
            else:
                assert record.state is TaskState.BLOCKED, story

    @invariant()
    def counters_and_hooks_are_those_of_a_recount(self) -> None:
        self._look()
        hooks = 0
        for job in self.jobs:
            found: JobRecord = self.do(self.ledger.job(job))
            states = Counter(self.records[task_id].state for task_id in self.of_job[job])
            assert (found.total, found.completed, found.failed, found.cancelled) == (
                len(self.of_job[job]),
                states[TaskState.COMPLETED],
                states[TaskState.FAILED],
                states[TaskState.CANCELLED] + states[TaskState.REJECTED],
            )
            assert found.state.terminal or found.open > 0, "all of it has ended, and it has not"
            hooks += found.run_no if found.state.terminal else found.run_no - 1
        listed = self.do(self.store.list(TaskFilter(queues=(HOOKS,), limit=1000)))
        assert len(listed) == hooks, "one hook for each run of a job that ended"


def _has_begun(record: TaskRecord) -> bool:
    """Held now, or was in this run: what it waited for then is no longer asked."""
    return record.state.held or record.claimed_at is not None or (record.waiting_on or "").startswith("event:")


def _is_free(record: TaskRecord) -> bool:
    return record.state in (TaskState.PENDING, TaskState.PENDING_APPROVAL)


def _is_lost(edge: Edge, state: TaskState) -> bool:
    return verdict(edge.kind, state) is Verdict.IMPOSSIBLE


def _release_at_once(url: str, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many dependents of a task are freed with its end, on the database of this module."""
    monkeypatch.setattr("headrace.store.sqlite.advancing.RELEASED_AT_ONCE", n)
    if url.startswith("sqlite:"):
        return
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(
            "SELECT pg_get_functiondef(oid) FROM pg_proc"
            " WHERE proname LIKE 'advance%' AND prosrc ~ 'count\\(\\*\\) > \\d+'"
        ).fetchall()
        assert len(found) == 1
        for (text,) in found:
            connection.execute(re.sub(r"count\(\*\) > \d+", f"count(*) > {n}", text))


@pytest.mark.chaos
@pytest.mark.timeout(900)
@pytest.mark.requirement("A71", "A72", "A13", "A49")
@pytest.mark.parametrize("released_at_once", [RELEASED_AT_ONCE, 1])
@pytest.mark.parametrize("database", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_whatever_happens_a_graph_ends_as_its_edges_say(
    database: str,
    released_at_once: int,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A71, A13, A72, A49: at every step a job has failed by a critical failure alone, its end stands until somebody
    opens it again, an ended one has nothing that waits (`job-fate`, `job-verdict`), and its counters and hooks are
    those of a recount. Also where the end of a task frees one other, and leaves the rest to `release`."""
    url: str = request.getfixturevalue(f"shared_{database}_url")
    empty(url)
    _release_at_once(url, released_at_once, monkeypatch)
    numbers, releases = itertools.count(), released_at_once < RELEASED_AT_ONCE

    def machine() -> GraphMachine:
        if database == "postgres":
            empty(url)
            return GraphMachine(lambda: connect(url), None, releases=releases)
        path = tmp_path / f"{next(numbers)}.db"
        shutil.copy(sqlite_path(url), path)
        clock = FakeClock()
        options = StoreOptions(extra={"clock": clock})
        return GraphMachine(lambda: connect(f"sqlite:///{path}", options), clock, releases=releases)

    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=sized(small=2 if database == "postgres" else 4, full=60),
            stateful_step_count=sized(small=30, full=60),
            # To make a history shorter takes many times as long as to find it.
            phases=[Phase.reuse, Phase.generate],
            derandomize=sized(small=True, full=False),
            suppress_health_check=list(HealthCheck),
        ),
    )
