"""Jobs of tasks that are named by dotted path: `create_job("import", [{"entrypoint": "shop.load", "kwargs": {…}}])`.

The functions of one specification, under its names. They work on the app that `configure` was given, or on one that is
made from the settings of the environment.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from headrace.orchestration.context import Context, configure, current_app, get_current_job_id
from headrace.orchestration.jobs import (
    add_task_to_current_job,
    add_task_to_job,
    cancel_job,
    create_job,
    get_job,
    get_task,
    list_jobs,
    retry_failed_tasks,
)
from headrace.orchestration.records import Job, Task
from headrace.orchestration.workers import deregister_worker, list_workers, register_worker, worker_heartbeat

if TYPE_CHECKING:
    from headrace.orchestration.tables import ResultCollector, create_result_collector, filter, map

__all__ = [
    "Context",
    "Job",
    "ResultCollector",
    "Task",
    "add_task_to_current_job",
    "add_task_to_job",
    "cancel_job",
    "configure",
    "create_job",
    "create_result_collector",
    "current_app",
    "deregister_worker",
    "filter",
    "get_current_job_id",
    "get_job",
    "get_task",
    "list_jobs",
    "list_workers",
    "map",
    "register_worker",
    "retry_failed_tasks",
    "worker_heartbeat",
]

_TABLES = frozenset({"ResultCollector", "create_result_collector", "filter", "map"})


def __getattr__(name: str) -> Any:
    """What works on tables is imported when it is asked for."""
    if name not in _TABLES:
        raise AttributeError(f"module 'headrace.orchestration' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module("headrace.orchestration.tables"), name)
    return value
