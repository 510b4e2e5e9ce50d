"""The open store: its clock, its limits, and what stands still in it."""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import orjson

from headrace.cli.diagnosis.findings import Finding, fine, problem, warning
from headrace.client.reasons import LIVE, serves, silent
from headrace.core.errors import HeadraceError
from headrace.core.states import Reason, TaskState
from headrace.core.task import QueueRecord, TaskFilter, WorkerRecord
from headrace.store.base import COUNTED_AT_MOST, NameCount, Store, StoreFacts
from headrace.store.checker import WARNINGS
from headrace.store.moved import moved_to

if TYPE_CHECKING:
    from headrace.app import App

OLDEST_POSTGRES = (13, 0)
_SKEW = 2.0  # seconds
_NEARLY_FULL = 0.9
_QUICK = 64 * 1024 * 1024  # bytes of a ledger that is read whole in a moment
_RECENT = 200
_WORK = ("primary", "retry", "scheduled", "waiting")


@dataclass(frozen=True, slots=True, kw_only=True)
class Patient:
    store: Store
    app: "App | None"
    pool: int
    thorough: bool


def server(facts: StoreFacts, pool: int) -> Iterator[Finding]:
    words = f"{facts.product} {'.'.join(map(str, facts.version))}"
    if facts.product == "PostgreSQL" and facts.version < OLDEST_POSTGRES:
        oldest = OLDEST_POSTGRES[0]
        yield problem(
            "server", f"{words} is older than PostgreSQL {oldest}", f"upgrade the server to {oldest} or newer"
        )
    else:
        yield fine("server", f"{words}, {facts.size / 1024 / 1024:.1f} MB")
    if facts.durable:
        yield fine("durability", facts.durability)
    else:
        yield warning(
            "durability",
            f"acknowledged tasks may be lost with the power: {facts.durability}",
            "synchronous=FULL on SQLite; fsync and synchronous_commit on PostgreSQL",
        )
    if facts.connections is None or facts.most_connections is None:
        return
    free = facts.most_connections - facts.connections
    used = f"{facts.connections} of {facts.most_connections} connections of the server are in use"
    if free < pool or facts.connections > _NEARLY_FULL * facts.most_connections:
        yield warning(
            "connections",
            f"{used}; a process may ask for {pool} more",
            "raise max_connections, lower HEADRACE_POOL_SIZE, or put a pooler in between",
        )
    else:
        yield fine("connections", f"{used}; a process asks for at most {pool}")


def clock(before: datetime, store: datetime, after: datetime) -> Finding:
    """The store was asked between the two instants of this host."""
    skew = (store - after if store > after else before - store if store < before else before - before).total_seconds()
    if skew <= _SKEW:
        return fine("clock", "this host and the store agree on the time")
    ahead = "ahead of" if store > after else "behind"
    return warning(
        "clock",
        f"the store's clock is {skew:.0f} s {ahead} this host's; run_after with an instant goes by the store's",
        "let both follow a time server (NTP)",
    )


def queues(queues: Sequence[QueueRecord], workers: Sequence[WorkerRecord], now: datetime) -> Iterator[Finding]:
    active = [worker for worker in workers if worker.state != "stopping" and not silent(worker, now)]
    yield fine("workers", f"{len(active)} active")
    for queue in queues:
        ready = queue.depths.get("primary", 0) + queue.depths.get("retry", 0)
        work = sum(queue.depths.get(depth, 0) for depth in _WORK)
        if queue.paused and work:
            yield warning(
                "paused",
                f"queue {queue.name} is paused and {work} tasks wait in it",
                f"headrace queues resume {queue.name}",
            )
        elif ready and not any(serves(worker, queue.name) for worker in active):
            others = f" (the {len(active)} active ones take others)" if active else ""
            yield problem(
                "workers",
                f"{ready} tasks are ready in {queue.name} and no active worker takes it{others}",
                f"headrace worker MODULE:APP --queues {queue.name}" if active else "headrace worker MODULE:APP",
            )


def moved(place: str, queues: Sequence[QueueRecord]) -> Finding:
    """No worker claims here, so none is to be advised."""
    work = sum(queue.depths.get(depth, 0) for queue in queues for depth in _WORK)
    what, mend = f"this ledger has moved to {place}", "use that URL"
    if not work:
        return warning("moved", what, mend)
    return problem(
        "moved", f"{what} and {work} tasks wait here, where no worker claims", f"{mend}, or run headrace db move again"
    )


async def stale(store: Store, workers: Sequence[WorkerRecord], now: datetime) -> AsyncIterator[Finding]:
    """Workers that are gone and still hold tasks: whoever works takes them over, when somebody does."""
    gone = set(await store.stopped_holders())
    for worker in workers:
        if silent(worker, now) and await store.held(worker.id, limit=1):
            gone.add(worker.id)
    if not gone:
        return
    what = f"workers that are gone still hold tasks: {', '.join(sorted(gone))}"
    if any(not silent(worker, now) for worker in workers):
        yield warning("stale", what, "an active worker takes them over within a lease; look again in a minute")
    else:
        yield problem("stale", what, "start a worker, which takes them over: headrace worker MODULE:APP")


async def names(store: Store, app: "App | None") -> AsyncIterator[Finding]:
    """Tasks whose names nobody knows go back again and again, and fail when their max age is over."""
    failed = await store.list(TaskFilter(states=(TaskState.FAILED,), limit=_RECENT))
    lost = sorted({record.name for record in failed if record.reason == Reason.UNKNOWN_TASK})
    if lost:
        yield warning(
            "names",
            f"among the last {len(failed)} failures no worker knew: {', '.join(lost)}",
            "define them or add aliases, then headrace tasks retry",
        )
    if app is None:
        return
    known = {name for task in app.registry.values() for name in (task.name, *task.aliases)}
    suspects = [found for found in await store.live_names() if found.kind == "function" and found.name not in known]
    unknown = await _without_entrypoint(store, app, suspects)
    if unknown:
        words = ", ".join(f"{found.name} ({found.n})" for found in unknown)
        yield problem(
            "names",
            f"tasks wait whose names the App does not have: {words}",
            "define them, or give the tasks that replaced them these names: @app.task(aliases=[…])",
        )
    else:
        yield fine("names", f"the App knows the name of every task that waits ({len(known)} names)")


async def _without_entrypoint(store: Store, app: "App", suspects: Sequence[NameCount]) -> list[NameCount]:
    """A dotted path that was enqueued by path needs no task, only to be importable."""
    records = await store.get([found.oldest for found in suspects])
    unknown: list[NameCount] = []
    for found in suspects:
        record = records.get(found.oldest)
        options: dict[str, Any] = orjson.loads(record.options) if record else {}
        try:
            if not options.get("entrypoint"):
                raise HeadraceError(found.name)
            app.resolve(found.name, {"entrypoint": True})
        except HeadraceError:
            unknown.append(found)
    return unknown


async def dead_letters(store: Store) -> AsyncIterator[Finding]:
    n = await store.dead_letter_depth()
    if n:
        many = f"more than {COUNTED_AT_MOST - 1:,}" if n >= COUNTED_AT_MOST else f"{n}"
        yield warning("dead letters", f"{many} dead letters", "headrace dlq list; headrace dlq retry --all")


async def schedules(store: Store) -> AsyncIterator[Finding]:
    """Those that do not fire although nobody paused them."""
    records = await store.schedules()
    if not records:
        return
    # Calendars and zones cost a tenth of a second.
    from headrace.client.schedules import ScheduleView

    now = await store.now()
    for record in records:
        seen = ScheduleView(record=record, now=now)
        if seen.unreadable is not None:
            yield warning(
                "schedules",
                f"schedule {seen.name} cannot be read here, so schedulers like this one do not fire it: "
                f"{seen.unreadable}",
                "run a scheduler that can (a newer headrace, a host with its time zone), or write it anew",
            )
        elif seen.problem is not None:
            yield problem(
                "schedules",
                f"schedule {seen.name} does not fire: {seen.problem}",
                "write it anew: app.schedules.set(…), or the next start of the app that declares it",
            )
        elif seen.silent_until is not None:
            yield problem(
                "schedules",
                f"schedule {seen.name} fires no tick before {seen.silent_until:%Y-%m-%d %H:%M:%S} UTC: its cursor lies "
                "ahead of the clock",
                f"headrace schedules pause {seen.name}; headrace schedules resume {seen.name}",
            )


async def invariants(store: Store, facts: StoreFacts, *, thorough: bool) -> AsyncIterator[Finding]:
    if facts.size > _QUICK and not thorough:
        yield fine("ledger", "not read, it is large; headrace doctor --thorough or headrace db check reads it whole")
        return
    broken = [violation for violation in await store.check() if violation.rule not in WARNINGS]
    for violation in broken[:20]:
        yield problem(
            "ledger",
            f"{violation.rule}, {violation.subject}: {violation.detail}",
            "headrace db check lists everything; report it with that output",
        )
    if not broken:
        yield fine("ledger", "every invariant holds")


async def examine(patient: Patient) -> AsyncIterator[Finding]:
    store = patient.store
    facts = await store.facts()
    for finding in server(facts, patient.pool):
        yield finding
    before = datetime.now(UTC)
    now = await store.now()
    yield clock(before, now, datetime.now(UTC))
    workers = await store.workers(states=LIVE)
    if (place := await moved_to(store)) is not None:
        yield moved(place, await store.queues())
    else:
        for finding in queues(await store.queues(), workers, now):
            yield finding
    for findings in (
        stale(store, workers, now),
        names(store, patient.app),
        dead_letters(store),
        schedules(store),
        invariants(store, facts, thorough=patient.thorough),
    ):
        async for finding in findings:
            yield finding
