"""Spans around every enqueue and every attempt, as middleware: it wraps both where they happen."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, override

from headrace.client.middleware import Middleware
from headrace.core.task import NewTask
from headrace.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from headrace.executors.context import Context


class TracingMiddleware(Middleware):
    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing

    @override
    def enqueue(self, tasks: Sequence[NewTask]) -> AbstractContextManager[Sequence[NewTask] | None]:
        return self._tracing.enqueueing(tasks)

    @override
    def attempt(self, context: "Context") -> AbstractContextManager[Any]:
        return self._tracing.running(context)
