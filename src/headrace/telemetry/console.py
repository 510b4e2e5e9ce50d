"""The worker's own log lines: one sink for events, so that the logic needs no log calls."""

import logging

from headrace.core.task import log_ref
from headrace.telemetry.events import (
    Event,
    LeaseWasLost,
    LoopStalled,
    ProcessDied,
    ReportRefused,
    Rescued,
    ScheduleFired,
    ScheduleSetAside,
    StoreBack,
    StoreLost,
    TasksFinished,
    WorkerStarted,
    WorkerStopped,
)
from headrace.telemetry.logs import about
from headrace.telemetry.running import fields_of

logger = logging.getLogger("headrace.worker")


# What it has words for: nobody needs to make the others for its sake.
CONSOLE_EVENTS = (
    TasksFinished,
    ReportRefused,
    WorkerStarted,
    WorkerStopped,
    LeaseWasLost,
    Rescued,
    ProcessDied,
    LoopStalled,
    StoreLost,
    StoreBack,
    ScheduleFired,
    ScheduleSetAside,
)


def _finished(event: TasksFinished) -> None:
    everything = logger.isEnabledFor(logging.DEBUG)
    for claim, settlement in event.finished:
        outcome = settlement.attempt or "released"
        if settlement.state == "failed":
            error = settlement.error.message if settlement.error else None
            logger.info(
                "task %d %s failed (%s): %s; headrace tasks show %d", claim.id, claim.name, outcome, error, claim.id,
                extra=about(fields_of(claim, worker=event.worker, executor=settlement.executor)),
            )  # fmt: skip
        elif everything:
            logger.debug(
                "task %d %s %s (%s)", claim.id, claim.name, settlement.state, outcome,
                extra=about(fields_of(claim, worker=event.worker, executor=settlement.executor)),
            )  # fmt: skip


def console(event: Event) -> None:
    """Finished tasks at DEBUG, failures and lifetimes at INFO, what an operator should see at WARNING."""
    match event:
        case TasksFinished():
            _finished(event)
        case ReportRefused():
            logger.warning(
                "task %d: the %s of claim %d by %s was refused, someone else holds it now",
                event.task, event.act, event.claim_no, event.worker,
                extra=about(
                    {
                        "task_id": str(event.task), "claim_no": event.claim_no, "worker": event.worker,
                        "log_ref": log_ref(event.task, event.claim_no),
                    }
                ),
            )  # fmt: skip
        case WorkerStarted():
            logger.info("worker %s takes %s", event.worker, ", ".join(event.queues) or "every queue")
        case WorkerStopped(reason="exit 0", released=0):
            # The supervisor's word on an end that the worker itself has told of.
            logger.debug("the process of worker %s has ended", event.worker)
        case WorkerStopped():
            back = f", gave back {event.released} tasks" if event.released else ""
            logger.info("worker %s stopped (%s)%s", event.worker, event.reason, back)
        case LeaseWasLost():
            logger.warning("worker %s lost its lease; it stops its attempts and starts anew", event.worker)
        case Rescued():
            logger.warning(
                "worker %s is dead: %d of its tasks charged and %d given back by %s",
                event.worker, event.charged, event.released, event.by,
            )  # fmt: skip
        case ProcessDied():
            logger.warning("process %d of worker %s died (%s)", event.pid, event.worker, event.exit_code)
        case LoopStalled():
            logger.warning(
                "the event loop of %s has not turned for %.1f s (an async task blocks it?); gave back %d tasks",
                event.worker, event.seconds, event.released,
            )  # fmt: skip
        case StoreLost():
            logger.warning("%s: the store cannot be reached (%s); trying again until it can", event.what, event.error)
        case StoreBack():
            logger.info("%s: the store is back after %.1f s", event.what, event.after)
        case ScheduleFired(verdict="skip"):
            logger.info(
                "schedule %s: %s is left out, what it enqueued before is unfinished", event.schedule, event.tick
            )
        case ScheduleFired():
            instead = " in place of what was unfinished" if event.verdict == "replace" else ""
            logger.info("schedule %s fired for %s: task %s%s", event.schedule, event.tick, event.task, instead)
        case ScheduleSetAside():
            what = (
                "cannot be read here and is left to other schedulers"
                if event.here
                else "does not fire until it is written anew"
            )
            logger.warning("schedule %s %s: %s", event.schedule, what, event.problem)
        case _:
            pass
