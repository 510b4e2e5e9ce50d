"""The defaults of the specifications that headrace unites, as data: `App(preset="recotem")`.

A preset changes default values and reads that specification's own environment variables. What is set by `App(...)` or
by HEADRACE_* wins over both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headrace.core.retry import ASYNCTASKFLOW_TABLE, Retry

type PresetName = Literal["recotem", "aaiclick", "kohakuriver", "asynctaskflow", "django_ray"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """`values` are settings by name; `environment` says which setting a variable sets.

    `max_retries` is not a setting of its own: it makes `retry.max_attempts` one larger, for the first execution.
    `database` gives the parts of a PostgreSQL URL: a variable and its default for each.
    """

    values: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    database: Mapping[str, tuple[str, str]] | None = None


PRESETS: Mapping[str, Preset] = {
    "recotem": Preset(
        values={
            "retry": Retry(
                max_attempts=4, base=1, cap=600, jitter="full", on=(ConnectionError, OSError), timeouts=False
            ),
            "soft_timeout": 3480.0,
            "timeout": 3600.0,
            "result_ttl": 604_800.0,
        },
        environment={
            "CELERY_TASK_TIME_LIMIT": "timeout",
            "CELERY_TASK_SOFT_TIME_LIMIT": "soft_timeout",
            "CELERY_RESULT_EXPIRES": "result_ttl",
        },
    ),
    "aaiclick": Preset(
        values={
            "retry": Retry(max_attempts=4, base=1, cap=600),
            "soft_timeout": None,
            "timeout": 3600.0,
            "job_timeout": 86_400.0,
            "heartbeat": 30.0,
            "lease": 90.0,
            "pool_size": 20,
            "pool_overflow": 40,
        },
        environment={
            "WORKER_HEARTBEAT_INTERVAL": "heartbeat",
            "WORKER_TASK_TIMEOUT": "timeout",
            "WORKER_MAX_RETRIES": "max_retries",
            "JOB_DEFAULT_TIMEOUT": "job_timeout",
        },
        database={
            "user": ("POSTGRES_USER", "aaiclick"),
            "password": ("POSTGRES_PASSWORD", ""),
            "host": ("POSTGRES_HOST", "localhost"),
            "port": ("POSTGRES_PORT", "5432"),
            "database": ("POSTGRES_DB", "aaiclick_orchestration"),
        },
    ),
    "kohakuriver": Preset(
        values={
            "retry": Retry(max_attempts=1, lost="fail"),
            "soft_timeout": None,
            "timeout": None,
            "heartbeat": 5.0,
            "lease": 30.0,
        },
    ),
    "asynctaskflow": Preset(
        values={
            "retry": Retry(
                max_attempts=4,
                backoff="table",
                table=ASYNCTASKFLOW_TABLE,
                jitter=0.1,
                classify="http",
                dead_letter=True,
            ),
            "max_age": 3600.0,
            "retry_ratio": 0.3,
            "retry_queue_warning": 1000,
            "retry_queue_critical": 5000,
            "circuit_failure_threshold": 0.5,
            "circuit_volume_threshold": 10,
            "circuit_timeout": 60.0,
        },
        environment={
            "DEFAULT_RETRY_RATIO": "retry_ratio",
            "MAX_RETRIES": "max_retries",
            "MAX_TASK_AGE": "max_age",
            "RETRY_QUEUE_WARNING": "retry_queue_warning",
            "RETRY_QUEUE_CRITICAL": "retry_queue_critical",
            "CIRCUIT_FAILURE_THRESHOLD": "circuit_failure_threshold",
            "CIRCUIT_VOLUME_THRESHOLD": "circuit_volume_threshold",
            "CIRCUIT_TIMEOUT": "circuit_timeout",
        },
    ),
    "django_ray": Preset(
        # The first retry waits exactly the base, the second twice that: no jitter.
        values={
            "retry": Retry(max_attempts=3, base=60, cap=3600, jitter=0.0),
            "heartbeat": 15.0,
            "lease": 60.0,
            "concurrency": 10,
        },
    ),
}
