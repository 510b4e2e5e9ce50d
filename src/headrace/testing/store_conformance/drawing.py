"""Graphs by name: a job whose tasks wait for each other, and what became of each."""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from headrace.core.settlement import Settlement
from headrace.core.states import JobState
from headrace.core.task import After, ClaimedTask, EdgeKind, JobRecord, NewJob, NewTask
from headrace.store.checker import WARNINGS
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, stopped, task

UPSTREAM_FAILED = "cancelled/upstream_failed"
SKIPPED = "cancelled/skipped"
HOOKS = "hooks"  # a queue of their own, where they can be counted


class Wait(NamedTuple):
    """An edge, by the name of the task that it leads to."""

    task: str
    kind: EdgeKind = EdgeKind.ON_SUCCESS
    input: int | None = None


def done(name: str, input: int | None = None) -> Wait:
    return Wait(name, EdgeKind.ON_DONE, input)


def failure(name: str, input: int | None = None) -> Wait:
    return Wait(name, EdgeKind.ON_FAILURE, input)


@dataclass(frozen=True, slots=True)
class Node:
    after: tuple[Wait, ...]
    options: Mapping[str, Any]


def node(*after: str | Wait, **options: Any) -> Node:
    return Node(tuple(Wait(each) if isinstance(each, str) else each for each in after), options)


def new_tasks(nodes: Mapping[str, Node], known: Mapping[str, int] | None = None, **fields: Any) -> list[NewTask]:
    """As one call writes them; edges to what is `known` already lead to its id."""
    known = known or {}
    places: dict[str, int] = {}
    tasks: list[NewTask] = []
    for place, (name, drawn) in enumerate(nodes.items()):
        edges = tuple(
            After(task=places[up], kind=kind, input=number, local=True)
            if up in places
            else After(task=known[up], kind=kind, input=number)
            for up, kind, number in drawn.after
        )
        tasks.append(task(name, after=edges, **{**fields, **drawn.options}))
        places[name] = place
    return tasks


@dataclass(slots=True)
class Graph:
    ledger: Ledger
    job: int
    ids: dict[str, int]
    worker: str = "a"
    held: dict[str, ClaimedTask] = field(default_factory=dict[str, ClaimedTask])

    async def states(self) -> dict[str, str]:
        """By name: the state, and the reason where it was cancelled."""
        found = await self.ledger.store.get(list(self.ids.values()))
        says: dict[str, str] = {}
        for name, task_id in self.ids.items():
            record = found[task_id]
            says[name] = f"{record.state}/{record.reason}" if record.state == "cancelled" else str(record.state)
        return says

    async def state(self, name: str) -> str:
        return (await self.states())[name]

    async def record(self) -> JobRecord:
        return await self.ledger.job(self.job)

    async def fate(self) -> JobState:
        return (await self.record()).state

    async def sound(self) -> None:
        """The counters are those of a recount, and the ledger's invariants hold."""
        record, states = await self.record(), Counter(state.split("/")[0] for state in (await self.states()).values())
        counted = {"completed": record.completed, "failed": record.failed, "cancelled": record.cancelled}
        ended = {state: states[state] for state in counted}
        ended["cancelled"] += states["rejected"]
        assert (record.total, counted) == (len(self.ids), ended), f"{states} were counted as {record}"
        broken = [found for found in await self.ledger.store.check() if found.rule not in WARNINGS]
        assert broken == [], broken

    async def take(self, n: int = 100) -> set[str]:
        """Claim what is ready, a moment later; the names of what is now in the worker's hands."""
        await self.ledger.let_pass(0.002)  # what was freed just now may be due microseconds ahead of the clock
        for claim in await self.ledger.claim(self.worker, n):
            self.held[claim.name] = claim
        return set(self.held)

    async def end(self, settle: Callable[[ClaimedTask], Settlement], *names: str) -> None:
        """In one batch; claims them first where they are not held."""
        if not self.held.keys() >= set(names):
            await self.take()
        assert self.held.keys() >= set(names), f"{set(names) - self.held.keys()} cannot be claimed yet"
        await self.ledger.finish(self.worker, *[settle(self.held.pop(name)) for name in names])

    async def complete(self, *names: str) -> None:
        await self.end(completed, *names)

    async def fail(self, *names: str) -> None:
        await self.end(failed_for_good, *names)

    async def stop(self, *names: str) -> None:
        """Cancelled while held, and the worker obeys."""
        if not self.held.keys() >= set(names):
            await self.take()
        await self.ledger.store.cancel([self.ids[name] for name in names])
        await self.end(stopped, *names)

    async def cancel(self, *names: str) -> None:
        await self.ledger.store.cancel([self.ids[name] for name in names])

    async def add(self, **nodes: Node) -> None:
        answers = await self.ledger.store.enqueue(new_tasks(nodes, self.ids, job=self.job))
        self.ids.update(zip(nodes, [answer.id for answer in answers], strict=True))

    async def each(self, act: Callable[[str], Awaitable[None]], names: Iterable[str]) -> None:
        for name in names:
            await act(name)
            await self.sound()

    async def hooks(self) -> list[str]:
        """Those that were enqueued since the last time."""
        claims = await self.ledger.claim("hooks", queue=HOOKS)
        if claims:
            await self.ledger.finish("hooks", *[completed(claim) for claim in claims])
        return [claim.name for claim in claims]


async def draw(ledger: Ledger, timeout: float | None = 86_400.0, /, **nodes: Node) -> Graph:
    """A job of these tasks, in this order, with hooks."""
    job = NewJob(
        name="drawn",
        tasks=new_tasks(nodes),
        timeout=timeout,
        on_success=task("hook.success", queue=HOOKS),
        on_failure=task("hook.failure", queue=HOOKS),
    )
    number, answers = await ledger.store.create_job(job)
    return Graph(ledger, number, dict(zip(nodes, [answer.id for answer in answers], strict=True)))
