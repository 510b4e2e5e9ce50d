"""Metrics by the names of the specification, fed from the bus and from a snapshot of the ledger."""

import pytest

from headrace.telemetry.events import (
    Bus,
    JobEnded,
    JobsCreated,
    ReportRefused,
    Rescued,
    TaskClaimed,
    TaskFinished,
    TasksCreated,
)
from headrace.telemetry.metrics import Metrics, Snapshot


def finished(state: str, *, ran_for: float | None = 0.5) -> TaskFinished:
    return TaskFinished(
        task=1, claim_no=1, name="t", queue="mail", kind="function", executor="coroutine", state=state,
        outcome="succeeded", charged=True, ran_for=ran_for, error=None,
    )  # fmt: skip


@pytest.mark.requirement("A60", "A61", "A62")
def test_every_name_of_the_specification_is_exported() -> None:
    bus = Bus()
    metrics = Metrics().attach(bus)
    for event in (
        TasksCreated(queue="mail", kind="function", count=3),
        JobsCreated(),
        JobEnded(job=1, state="completed", took=2.0),
        JobEnded(job=2, state="failed", took=None),
        TaskClaimed(task=1, claim_no=1, name="t", queue="mail", waited=0.1),
        finished("completed"),
        finished("failed"),
        finished("pending"),
        ReportRefused(task=1, claim_no=1, worker="w", act="finish"),
        Rescued(worker="w", by="v", charged=2, released=5),
    ):
        bus.emit(event)
    metrics.show(
        Snapshot(depths={"mail": {"primary": 7, "retry": 2}}, workers={"active": 1}, heartbeat_ages={"w": 3.0})
    )
    text = metrics.render().decode()
    labels = '{executor="coroutine",kind="function",queue="mail"}'
    for line in (
        "jobs_created_total 1.0",
        "jobs_completed_total 1.0",
        "jobs_failed_total 1.0",
        "job_duration_seconds_sum 2.0",
        'tasks_created_total{kind="function",queue="mail"} 3.0',
        f"tasks_completed_total{labels} 1.0",
        f"tasks_failed_total{labels} 1.0",
        f"task_duration_seconds_count{labels} 2.0",
        'task_queue_depth{lane="primary",queue="mail"} 7.0',
        'workers_active{state="active"} 1.0',
        "worker_task_execution_time_count 3.0",
        'worker_heartbeat_age{worker="w"} 3.0',
        "attempts_lost_total 2.0",
        'reports_refused_total{reason="finish"} 1.0',
    ):
        assert line in text.splitlines()


def test_what_is_gone_is_no_longer_shown() -> None:
    metrics = Metrics()
    metrics.show(Snapshot(heartbeat_ages={"gone": 1.0}))
    metrics.show(Snapshot())
    assert "gone" not in metrics.render().decode()


def test_a_bus_nobody_listens_to_is_falsy() -> None:
    bus = Bus()
    assert not bus
    bus.subscribe(lambda event: None)
    assert bus
