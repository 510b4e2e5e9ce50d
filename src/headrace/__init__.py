"""Headrace: one durable task engine for Python, on SQLite or PostgreSQL.

from headrace import App

app = App()

@app.task
async def welcome(user_id: int) -> str: ...

welcome.enqueue(user_id=7)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace._version import __version__

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.client.handles import Handle, as_completed
    from headrace.client.injection import Resource, injected
    from headrace.client.job_handle import JobHandle
    from headrace.client.middleware import Middleware
    from headrace.client.options import Queue
    from headrace.client.task import Task
    from headrace.core import errors
    from headrace.core.errors import Permanent, SoftTimeLimitExceeded, Transient
    from headrace.core.limits import Debounce, Limit, Rate
    from headrace.core.outcome import Cancel, RetryAfter, Snooze
    from headrace.core.retry import Retry
    from headrace.executors.context import Context, current
    from headrace.scheduling.cadence import Cron, Every, Once
    from headrace.scheduling.declaration import Schedule
    from headrace.workflows.compose import approve, chain, chord, group
    from headrace.workflows.graph import Graph
    from headrace.workflows.signatures import Signature

__all__ = [
    "App",
    "Cancel",
    "Context",
    "Cron",
    "Debounce",
    "Every",
    "Graph",
    "Handle",
    "JobHandle",
    "Limit",
    "Middleware",
    "Once",
    "Permanent",
    "Queue",
    "Rate",
    "Resource",
    "Retry",
    "RetryAfter",
    "Schedule",
    "Signature",
    "Snooze",
    "SoftTimeLimitExceeded",
    "Task",
    "Transient",
    "__version__",
    "approve",
    "as_completed",
    "chain",
    "chord",
    "current",
    "errors",
    "group",
    "injected",
]

# Where each name lives. Imported when it is first asked for, so that `import headrace` costs almost nothing.
_PLACES = {
    "App": "headrace.app",
    "Cancel": "headrace.core.outcome",
    "Context": "headrace.executors.context",
    "Cron": "headrace.scheduling.cadence",
    "Debounce": "headrace.core.limits",
    "Every": "headrace.scheduling.cadence",
    "Graph": "headrace.workflows.graph",
    "Handle": "headrace.client.handles",
    "JobHandle": "headrace.client.job_handle",
    "Limit": "headrace.core.limits",
    "Middleware": "headrace.client.middleware",
    "Once": "headrace.scheduling.cadence",
    "Permanent": "headrace.core.errors",
    "Queue": "headrace.client.options",
    "Rate": "headrace.core.limits",
    "Resource": "headrace.client.injection",
    "Retry": "headrace.core.retry",
    "RetryAfter": "headrace.core.outcome",
    "Schedule": "headrace.scheduling.declaration",
    "Signature": "headrace.workflows.signatures",
    "Snooze": "headrace.core.outcome",
    "SoftTimeLimitExceeded": "headrace.core.errors",
    "Task": "headrace.client.task",
    "Transient": "headrace.core.errors",
    "approve": "headrace.workflows.compose",
    "as_completed": "headrace.client.handles",
    "chain": "headrace.workflows.compose",
    "chord": "headrace.workflows.compose",
    "current": "headrace.executors.context",
    "group": "headrace.workflows.compose",
    "injected": "headrace.client.injection",
}


def __getattr__(name: str) -> Any:
    if name == "errors":
        value: Any = import_module("headrace.core.errors")
    elif name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
    else:
        raise AttributeError(f"module 'headrace' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
