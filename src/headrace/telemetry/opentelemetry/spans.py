"""The spans of a task: enqueue → claim → submit → run → finalize, in one trace.

Every attempt has a `claim` below the span that enqueued the task; its `submit`, `run` and `finalize` are below that.
Names and attributes follow the conventions for messaging where they fit; a span is named after its task, because the
queue says less. Arguments and results are in none.
"""

import os
import time
import traceback
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from opentelemetry import context, trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from headrace._version import __version__
from headrace.core.outcome import Suspend
from headrace.core.settlement import Settlement
from headrace.core.task import ClaimedTask, NewTask
from headrace.telemetry.events import EXECUTORS, Event, TasksFinished
from headrace.telemetry.opentelemetry import carrying
from headrace.telemetry.opentelemetry.provider import ensure_provider, preload
from headrace.telemetry.redaction import Redaction
from headrace.telemetry.running import SOURCES
from headrace.telemetry.tracing import Attempt, Trace, Traced, before_exit

_LAST_FLUSH = 1500  # milliseconds that a child gives to its last spans


class Spans:
    """One for an app. The tracer is asked for at the first span: by then the program may have set its own provider."""

    def __init__(self, redaction: Redaction, *, service: str) -> None:
        self._redaction = redaction
        self._service = service
        self._found: Tracer | None = None
        self._pid = 0
        SOURCES.span = _current_ids

    @property
    def _tracer(self) -> Tracer:
        if self._found is None or self._pid != os.getpid():
            ensure_provider(self._redaction, service=self._service)
            self._found, self._pid = trace.get_tracer("headrace", __version__), os.getpid()
            before_exit(_flush)
        return self._found

    def preload(self) -> None:
        preload()

    # --- where tasks are enqueued -------------------------------------------------------------------------------------

    @contextmanager
    def enqueueing(self, tasks: Sequence[NewTask]) -> Generator[Sequence[NewTask]]:
        first = next(iter(tasks), None)
        if first is None:
            yield tasks
            return
        many = len(tasks) > 1
        attributes: dict[str, Any] = {
            **_messaging("enqueue", "send", first.queue),
            "headrace.task.name": first.name,
            "headrace.task.executor": EXECUTORS.get(first.pool, first.pool),
        }
        if many:
            attributes["messaging.batch.message_count"] = len(tasks)
        span = self._tracer.start_span(f"enqueue {first.name}", kind=SpanKind.PRODUCER, attributes=attributes)
        try:
            yield carrying.carrying(tasks, carrying.written(trace.set_span_in_context(span)))
        except BaseException as error:
            self._record(span, error)
            raise
        finally:
            span.end()

    # --- in a worker --------------------------------------------------------------------------------------------------

    def claimed(self, claims: Sequence[Traced], *, seconds: float) -> None:
        tracer, now = self._tracer, time.time_ns()
        began = now - int(seconds * 1e9)
        for held in claims:
            claim = held.claim
            span = tracer.start_span(
                f"claim {claim.name}",
                context=carrying.read_text(claim.options),
                kind=SpanKind.CLIENT,
                start_time=began,
                attributes={
                    **_messaging("claim", "receive", claim.queue),
                    **_of_claim(claim),
                    "headrace.task.waited_seconds": claim.waited,
                },
            )
            span.end(now)
            held.trace = Trace(span, now)

    def submitted(self, claim: Traced, executor: str) -> Mapping[str, str]:
        assert claim.trace is not None
        parent = trace.set_span_in_context(claim.trace.span, context.Context())
        span = self._tracer.start_span(
            f"submit {claim.claim.name}",
            context=parent,
            start_time=claim.trace.claimed,
            attributes={**_messaging("submit", None, claim.claim.queue), **_of_claim(claim.claim, executor)},
        )
        span.end()
        return carrying.written(parent)

    @contextmanager
    def running(self, attempt: Attempt) -> Generator["_Run"]:
        parent = carrying.read(attempt.options)
        span = self._tracer.start_span(
            f"run {attempt.name}",
            context=parent,
            kind=SpanKind.CONSUMER,
            attributes={
                **_messaging("run", "process", attempt.queue),
                "messaging.message.id": str(attempt.task_id),
                "headrace.task.name": attempt.name,
                "headrace.task.attempt": attempt.attempt,
                "headrace.task.claim_no": attempt.claim_no,
                "headrace.task.executor": attempt.executor,
                "headrace.worker": attempt.worker,
            },
        )
        inside = trace.set_span_in_context(span, parent)
        token = context.attach(inside)
        detach = True
        try:
            yield _Run(span, self._redaction, carrying.written(inside))
        except GeneratorExit:
            detach = False  # a coroutine that is closed from outside: what stood here is not in this context
            raise
        except Suspend as suspend:  # it gave its slot back, and goes on later
            span.add_event("suspended", {"headrace.step": suspend.step})
            raise
        except BaseException as error:
            self._record(span, error)
            raise
        finally:
            if detach:
                context.detach(token)
            span.end()

    def finalized(self, finished: Sequence[tuple[Traced, Settlement, bool]], *, worker: str) -> None:
        now = time.time_ns()
        for held, settlement, accepted in finished:
            if held.trace is not None:
                parent = trace.set_span_in_context(held.trace.span, context.Context())
                began = held.trace.settled
                self._finalize(held.claim, settlement, parent, began=began, ended=now, worker=worker, accepted=accepted)

    def buried(self, event: Event) -> None:
        if not isinstance(event, TasksFinished):
            return
        now = time.time_ns()
        for claim, settlement in event.finished:
            parent = carrying.read_text(claim.options)
            self._finalize(claim, settlement, parent, began=now, ended=now, worker=event.worker)

    def _finalize(
        self,
        claim: ClaimedTask,
        settlement: Settlement,
        parent: context.Context,
        *,
        began: int,
        ended: int,
        worker: str | None,
        accepted: bool = True,
    ) -> None:
        attributes: dict[str, Any] = {
            **_messaging("finalize", "settle", claim.queue),
            **_of_claim(claim, settlement.executor),
            "headrace.worker": worker or "",
            "headrace.task.state": str(settlement.state),
            "headrace.attempt.state": str(settlement.attempt or "released"),
            "headrace.attempt.charged": settlement.charged,
            "headrace.recorded_by": settlement.recorded_by,
        }
        if not accepted:
            attributes["headrace.refused"] = True
        span = self._tracer.start_span(
            f"finalize {claim.name}", context=parent, start_time=began, attributes=attributes
        )
        if settlement.error is not None:
            span.set_attribute("error.type", settlement.error.error_class)
            span.set_status(Status(StatusCode.ERROR, self._redaction.text(settlement.error.message)))
        span.end(ended)

    def _record(self, span: Span, error: BaseException) -> None:
        _record(span, self._redaction, error)


class _Run:
    __slots__ = ("_carrier", "_redaction", "_span")

    def __init__(self, span: Span, redaction: Redaction, carrier: Mapping[str, str]) -> None:
        self._span = span
        self._redaction = redaction
        self._carrier = carrier

    @property
    def environment(self) -> Mapping[str, str]:
        return {name.upper(): value for name, value in self._carrier.items()}

    def failed(self, error_class: str, message: str) -> None:
        self._span.set_attribute("error.type", error_class)
        self._span.set_status(Status(StatusCode.ERROR, self._redaction.text(message)))


def _messaging(operation: str, kind: str | None, queue: str) -> dict[str, Any]:
    found = {
        "messaging.system": "headrace",
        "messaging.destination.name": queue,
        "messaging.operation.name": operation,
    }
    return found if kind is None else {**found, "messaging.operation.type": kind}


def _of_claim(claim: ClaimedTask, executor: str | None = None) -> dict[str, Any]:
    return {
        "messaging.message.id": str(claim.id),
        "headrace.task.name": claim.name,
        "headrace.task.attempt": claim.attempt + 1,
        "headrace.task.claim_no": claim.claim_no,
        "headrace.task.executor": executor or EXECUTORS.get(claim.pool, claim.pool),
    }


def _record(span: Span, redaction: Redaction, error: BaseException) -> None:
    """As `Span.record_exception` does, without secrets."""
    kind = f"{type(error).__module__}.{type(error).__qualname__}"
    try:
        message = redaction.text(str(error))
        stack = redaction.text("".join(traceback.format_exception(error)))
    except Exception as broken:  # a hostile __str__
        message = stack = f"(its message cannot be shown: {type(broken).__qualname__})"
    span.add_event("exception", {"exception.type": kind, "exception.message": message, "exception.stacktrace": stack})
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, message))


def _current_ids() -> tuple[str, str] | None:
    found = trace.get_current_span().get_span_context()
    if not found.is_valid:
        return None
    return trace.format_trace_id(found.trace_id), trace.format_span_id(found.span_id)


def _flush() -> None:
    flush = getattr(trace.get_tracer_provider(), "force_flush", None)
    if callable(flush):
        flush(_LAST_FLUSH)
