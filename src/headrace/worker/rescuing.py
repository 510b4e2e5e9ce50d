"""What becomes of the tasks of dead workers: what the rescuer and whoever asks for it at once do."""

import asyncio
import contextlib
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from headrace.core.errors import StoreUnavailable
from headrace.core.outcome import Cancelled, Lost, Outcome, Released
from headrace.core.retry import Retry
from headrace.core.settlement import Execution, Settlement, settle
from headrace.core.states import Reason, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo, WorkerRecord
from headrace.runtime.faults import reached
from headrace.store.base import Store
from headrace.telemetry.events import Bus, Rescued, TasksFinished
from headrace.worker.death import Verdict
from headrace.worker.services.outcomes import count_for, counted

_BATCH = 500
ALIVE = ("active", "idle", "stopping")
# Of a lease: whoever is alive beats within it, since no heartbeat is rarer than two a lease.
WATCHED = 0.5


class Policies(Protocol):
    """How the task of a claim is retried."""

    def policy(self, claim: ClaimedTask, /) -> Retry: ...


@dataclass(slots=True, kw_only=True)
class Emptied:
    """What became of the tasks that dead workers held; each is counted by whoever settled it."""

    workers: int = 0  # that were taken over, or whose rescue was taken up again
    charged: int = 0
    released: int = 0
    requeued: int = 0
    failed: int = 0
    cancelled: int = 0

    def add(self, settlement: Settlement) -> None:
        self.charged += settlement.charged
        self.released += not settlement.charged
        self.requeued += not settlement.terminal
        self.failed += settlement.state is TaskState.FAILED
        self.cancelled += settlement.state is TaskState.CANCELLED

    def __iadd__(self, other: "Emptied") -> "Emptied":
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self


def settle_dead(
    claim: ClaimedTask,
    *,
    worker: str,
    pipeline: Policies,
    rng: random.Random,
    silent_for: float = 0.0,
    recorded_by: str = "rescuer",
) -> Settlement:
    """What becomes of one task of a dead worker: charged where its start was written, else given back as a suspect."""
    started = claim.state in (TaskState.RUNNING, TaskState.PAUSED)
    outcome: Outcome
    if claim.state == TaskState.CANCELLING:
        outcome = Cancelled(reason=Reason.USER, message=f"its worker {worker} died while it was being cancelled")
    elif started:
        outcome = Lost(error=lost_error(worker), ago=silent_for)
    else:
        outcome = Released(suspect=True)
    execution = Execution(recorded_by=recorded_by, cancelling=claim.state == TaskState.CANCELLING)
    return settle(claim, outcome, pipeline.policy(claim), rng=rng, execution=execution)


def lost_error(worker: str, *, exit_code: int | None = None) -> ErrorInfo:
    how = "" if exit_code is None else f" ({describe_exit(exit_code)})"
    return ErrorInfo(
        error_class="headrace.WorkerLost",
        message=f"the process of worker {worker} ended{how} while it ran this task; the attempt is charged",
        exit_code=exit_code,
    )


def describe_exit(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"


async def empty_hands(
    store: Store, worker: str, decide: Callable[[ClaimedTask], Settlement], *, bus: Bus | None = None
) -> Emptied:
    """Settle everything that `worker` holds, 500 a transaction. Safe to repeat and to share."""
    emptied = Emptied(workers=1)
    while True:
        claims = await store.held(worker, limit=_BATCH)
        if not claims:
            return emptied
        settlements = [decide(claim) for claim in claims]
        reached("rescue.before_commit")
        report = await store.finish(worker, settlements)
        reached("rescue.after_commit")
        finished = [
            (claim, settlement)
            for claim, settlement in zip(claims, settlements, strict=True)
            if (settlement.task, settlement.claim_no) in report.accepted
        ]
        for _, settlement in finished:
            emptied.add(settlement)
        if bus is not None and finished:
            bus.emit(TasksFinished(finished=finished, worker=worker))
        if counts := counted(finished):
            with contextlib.suppress(StoreUnavailable):  # what was settled stays so, counted or not
                await count_for(store, worker, counts)
        if not report.accepted and not report.repeated:
            return emptied  # others were faster with all of them


async def rescue(
    store: Store, verdicts: Iterable[Verdict], *, policies: Policies, rng: random.Random, bus: Bus, by: str
) -> Emptied:
    """Take over the dead, unless somebody else does or they beat again, and go on with interrupted rescues."""
    emptied = Emptied()

    async def empty(worker: str, silent_for: float) -> None:
        def decide(claim: ClaimedTask) -> Settlement:
            return settle_dead(claim, worker=worker, pipeline=policies, rng=rng, silent_for=silent_for)

        done = await empty_hands(store, worker, decide, bus=bus)
        bus.emit(Rescued(worker=worker, by=by, charged=done.charged, released=done.released))
        nonlocal emptied
        emptied += done

    for verdict in verdicts:
        reached("rescue.before_take_over")
        if await store.take_over(verdict.worker, beat=verdict.beat):
            reached("rescue.after_take_over")
            await empty(verdict.worker, verdict.silent_for)
    for worker in await store.stopped_holders():
        await empty(worker, 0.0)
    return emptied


async def rescue_now(
    store: Store, *, policies: Policies, rng: random.Random, bus: Bus, by: str, watch: float | None = None
) -> Emptied:
    """The same for someone who has not been watching.

    A worker whose lease is over by the ledger's clock is a suspect. The whole ledger may have stood still (an outage, a
    suspended machine, a clock that was set): so a suspect is dead only if it does not beat while it is watched, for
    `watch` seconds or else WATCHED of its lease.
    """
    suspects = {worker.id: worker for worker in await _overdue(store)}
    if not suspects:
        return await rescue(store, (), policies=policies, rng=rng, bus=bus, by=by)
    await asyncio.sleep(max(worker.lease * WATCHED if watch is None else watch for worker in suspects.values()))
    now = await store.now()
    silent = [
        Verdict(worker=worker.id, beat=worker.beat, silent_for=(now - worker.last_heartbeat).total_seconds())
        for worker in await _overdue(store)
        if worker.id in suspects and suspects[worker.id].beat == worker.beat
    ]
    return await rescue(store, silent, policies=policies, rng=rng, bus=bus, by=by)


async def _overdue(store: Store) -> list[WorkerRecord]:
    now = await store.now()
    workers = await store.workers(states=ALIVE)
    return [worker for worker in workers if (now - worker.last_heartbeat).total_seconds() > worker.lease]
