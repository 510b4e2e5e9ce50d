"""Which attempt runs here, for sinks that lie below whoever knows it: executors and tracing say so, log lines ask."""

import re
from collections.abc import Callable
from typing import Any

from headrace.core.task import ClaimedTask, log_ref
from headrace.telemetry.events import EXECUTORS

type Fields = dict[str, Any]
type Ids = tuple[str, str]  # of the trace and the span, in hexadecimal digits

_TRACEPARENT = re.compile(r'"traceparent":"[0-9a-f]{2}-([0-9a-f]{32})-')


class Sources:
    """Set once in a process, by those who know."""

    __slots__ = ("attempt", "span")

    def __init__(self) -> None:
        self.attempt: Callable[[], Fields | None] = lambda: None
        self.span: Callable[[], Ids | None] = lambda: None


SOURCES = Sources()


def running_fields() -> Fields | None:
    """Of the attempt whose code calls this; None outside of one."""
    fields = SOURCES.attempt()
    ids = SOURCES.span()
    if ids is None:
        return fields
    return {**(fields or {}), "trace_id": ids[0], "span_id": ids[1]}


def fields_of(claim: ClaimedTask, *, worker: str | None = None, executor: str | None = None) -> Fields:
    """What every line about an attempt says of it."""
    fields: Fields = {
        "task_id": str(claim.id),  # as a text: programs in other languages lose digits above 2^53
        "task": claim.name,
        "attempt": claim.attempt + 1,
        "claim_no": claim.claim_no,
        "queue": claim.queue,
        "worker": worker,
        "runner_type": executor or EXECUTORS.get(claim.pool, claim.pool),
        "ray_job_id": None,  # known where Ray runs the attempt
        "log_ref": log_ref(claim.id, claim.claim_no),
    }
    if (trace := trace_of(claim.options)) is not None:
        fields["trace_id"] = trace
    return fields


def trace_of(options: str) -> str | None:
    """The trace in which a task was enqueued, by its stored options."""
    found = _TRACEPARENT.search(options)
    return None if found is None else found[1]
