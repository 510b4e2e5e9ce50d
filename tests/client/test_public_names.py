"""The public names are a contract: this list changes only on purpose."""

import subprocess
import sys

import pytest

import headrace

NAMES = {
    "App", "Cancel", "Context", "Cron", "Debounce", "Every", "Graph", "Handle", "JobHandle", "Limit", "Middleware",
    "Once", "Permanent", "Queue", "Rate", "Resource", "Retry", "RetryAfter", "Schedule", "Signature", "Snooze",
    "SoftTimeLimitExceeded", "Task", "Transient", "__version__", "approve", "as_completed", "chain", "chord", "current",
    "errors", "group", "injected",
}  # fmt: skip

MEMBERS = {
    "App": {
        "aclose", "add_middleware", "ahealth_check", "asend", "close", "health_check", "lifespan", "schedule",
        "schedules", "send", "task", "transaction",
    },
    "Task": {
        "aenqueue", "aenqueue_many", "enqueue", "enqueue_many", "map", "prepare", "s", "schedule", "si", "starmap",
        "using",
    },
    "Handle": {"acancel", "aresult", "astate", "await_", "cancel", "created", "id", "result", "state", "wait"},
    "JobHandle": {
        "acancel", "aresult", "aretry_failed", "astate", "await_", "cancel", "graph", "id", "name", "record", "result",
        "retry_failed", "state", "tasks", "wait",
    },
    "Signature": {"aenqueue", "critical", "enqueue", "on_done", "on_failure", "prepare", "using"},
}  # fmt: skip


def test_the_root_exports_exactly_these_names():
    assert set(headrace.__all__) == NAMES
    assert set(dir(headrace)) == NAMES
    for name in NAMES:
        assert getattr(headrace, name) is not None


def test_the_promised_members_are_there():
    for owner, members in MEMBERS.items():
        missing = {member for member in members if not hasattr(getattr(headrace, owner), member)}
        assert missing == set(), owner


def test_importing_headrace_is_cheap():
    """Less than 150 ms over a bare interpreter (the best of five), and no database, web or validation library."""
    program = """
import sys, time
started = time.perf_counter()
import headrace
taken = time.perf_counter() - started
heavy = {"sqlalchemy", "asyncpg", "fastapi", "pydantic", "psycopg", "alembic", "rich"} & set(sys.modules)
print(taken, ",".join(sorted(heavy)))
"""
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split(" ")
        for _ in range(5)
    ]
    assert min(float(taken) for taken, _ in runs) < 0.150
    assert {heavy.strip() for _, heavy in runs} == {""}


def test_an_app_does_not_import_a_database_driver_before_it_is_used():
    program = """
import sys
from headrace import App
app = App("postgresql://nobody@localhost/none")
@app.task(name="x")
def x(a: int) -> None: ...
print(",".join(sorted({"sqlalchemy", "asyncpg", "psycopg", "pydantic"} & set(sys.modules))))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        headrace.nothing  # noqa: B018
