"""Counting events, adding up what processes counted, and the names under which it is shown."""

import asyncio
import socket
from pathlib import Path

import pytest

from headrace.core.breaker import BreakerStatus
from headrace.core.errors import SettingsError
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo
from headrace.telemetry import prometheus
from headrace.telemetry.events import (
    BreakerMoved,
    Bus,
    JobEnded,
    JobsCreated,
    ReportRefused,
    Rescued,
    TasksClaimed,
    TasksCreated,
    TasksFinished,
    TasksStarted,
)
from headrace.telemetry.figures import Figures
from headrace.telemetry.prometheus.collector import HeadraceCollector
from headrace.telemetry.relay import Meeting, Relay
from headrace.telemetry.serving import serve
from headrace.telemetry.tally import BOUNDS, Tally, breaker_entry
from tests.support.waiting import eventually


def claim(queue: str = "mail") -> ClaimedTask:
    return ClaimedTask(
        id=1, claim_no=1, name="t", kind="function", queue=queue, pool="coroutine", lane=0, priority=0, arguments="{}",
        codec="json/1", version=1, options="{}", attempt=0, losses=0, max_attempts=4, run_no=1, job=None, gated=False,
        expired=False, state="claimed", order_at=0, waited=0.1,
    )  # fmt: skip


def finished(
    state: str, *, ran_for: float | None = 0.5, queue: str = "mail", attempt: AttemptState | None = None
) -> TasksFinished:
    error = ErrorInfo(error_class="builtins.ValueError", message="no") if state == "failed" else None
    settlement = Settlement(
        task=1, claim_no=1, state=TaskState(state), ran_for=ran_for, executor="coroutine", error=error, attempt=attempt
    )
    return TasksFinished(finished=[(claim(queue), settlement)])


EVENTS = (
    TasksCreated(queue="mail", kind="function", executor="process", count=3),
    JobsCreated(),
    JobEnded(job=1, state="completed", took=2.0),
    JobEnded(job=2, state="failed", took=None),
    JobEnded(job=3, state="cancelled", took=None),
    TasksClaimed(claims=[claim()]),
    TasksStarted(started=[(claim(), 0.3)]),
    finished("completed"),
    finished("failed", ran_for=0.001),
    finished("failed", ran_for=None),
    finished("pending", ran_for=7200.0),
    ReportRefused(task=1, claim_no=1, worker="w", act="finish"),
    Rescued(worker="w", by="v", charged=2, released=5),
    finished("pending", ran_for=None, attempt=AttemptState.LOST),
    BreakerMoved(service="mail", state=BreakerStatus.OPEN, lasts=60.0),
    BreakerMoved(service="bank", state=BreakerStatus.CLOSED, lasts=60.0),
)
LABELS = '{executor="coroutine",kind="function",queue="mail"}'
LINES = {
    "jobs_created_total 1.0",
    "jobs_completed_total 1.0",
    "jobs_failed_total 1.0",
    "jobs_cancelled_total 1.0",
    "job_duration_seconds_sum 2.0",
    "job_duration_seconds_count 1.0",
    'tasks_created_total{executor="process",kind="function",queue="mail"} 3.0',
    f"tasks_completed_total{LABELS} 1.0",
    f"tasks_succeeded_total{LABELS} 1.0",
    'tasks_failed_total{error_type="ValueError",executor="coroutine",kind="function",queue="mail"} 2.0',
    f"task_run_seconds_count{LABELS} 3.0",
    f"task_duration_seconds_count{LABELS} 2.0",
    f"task_duration_seconds_sum{LABELS} 0.501",
    'task_duration_seconds_bucket{executor="coroutine",kind="function",le="0.001",queue="mail"} 1.0',
    'task_duration_seconds_bucket{executor="coroutine",kind="function",le="0.1",queue="mail"} 1.0',
    'task_duration_seconds_bucket{executor="coroutine",kind="function",le="0.5",queue="mail"} 2.0',
    'task_duration_seconds_bucket{executor="coroutine",kind="function",le="+Inf",queue="mail"} 2.0',
    'worker_task_execution_time_bucket{executor="coroutine",kind="function",le="3600",queue="mail"} 2.0',
    f"worker_task_execution_time_count{LABELS} 3.0",
    f"task_latency_seconds_count{LABELS} 1.0",
    f"task_latency_seconds_sum{LABELS} 0.3",
    f"attempts_lost_total{LABELS} 1.0",
    'reports_refused_total{reason="finish"} 1.0',
    'breaker_state{service="mail"} 2.0',
    'breaker_state{service="bank"} 0.0',
}


def rendered(tally: Tally, figures: Figures | None = None) -> list[str]:
    return HeadraceCollector(lambda: tally, lambda: figures).render().decode().splitlines()


def test_events_become_counters_and_histograms() -> None:
    tally, bus = Tally(), Bus()
    bus.subscribe(tally.observe, *tally.handlers)
    for event in EVENTS:
        bus.emit(event)
    assert set(rendered(tally)) >= LINES


def test_what_processes_counted_adds_up() -> None:
    """Two halves, sent as they are sent between processes, are the whole."""
    whole = Tally()
    for part in (EVENTS[::2], EVENTS[1::2]):
        counted = Tally()
        for event in part:
            counted.observe(event)
            if isinstance(event, BreakerMoved):  # told at once, beside the rest
                whole.add([breaker_entry(event)])
        whole.add(counted.take())
        assert counted.take() == []
    assert set(rendered(whole)) >= LINES


def test_a_breaker_that_is_called_by_its_url_shows_no_password() -> None:
    tally = Tally()
    tally.observe(BreakerMoved(service="https://me:hunter2@host/x", state=BreakerStatus.OPEN, lasts=60.0))
    page = "\n".join(rendered(tally))
    assert "https://me:[redacted]@host/x" in page
    assert "hunter2" not in page


def test_what_the_ledger_says_is_shown_with_its_age() -> None:
    figures = Figures(
        depths={"mail": {"primary": 7, "retry": 2, "claimed": 3, "running": 1}},
        retry_ratios={"mail": 0.2},
        dead_letters=5,
        workers=4,
        heartbeat_ages={"w": 3.0},
    )
    lines = rendered(Tally(), figures)
    assert set(lines) >= {
        'task_queue_depth{lane="primary",queue="mail"} 7.0',
        'task_queue_depth{lane="retry",queue="mail"} 2.0',
        'queue_depth{lane="primary",queue="mail"} 7.0',
        'retry_ratio{queue="mail"} 0.2',
        "dlq_depth 5.0",
        'in_flight{queue="mail"} 4.0',
        "workers_active 4.0",
        'worker_heartbeat_age{worker="w"} 3.0',
    }
    (age,) = (line for line in lines if line.startswith("ledger_figures_age_seconds "))
    assert 0 <= float(age.split()[1]) < 60
    assert not any("task_queue_depth" in line for line in rendered(Tally(), None))


def test_bounds_rise() -> None:
    assert list(BOUNDS) == sorted(set(BOUNDS))


def test_a_bus_says_what_it_hears() -> None:
    bus = Bus()
    assert not bus
    assert not bus.hears(TasksClaimed)
    bus.subscribe(lambda event: None, TasksFinished)
    assert bus
    assert bus.hears(TasksFinished)
    assert not bus.hears(TasksClaimed)
    bus.subscribe(lambda event: None)
    assert bus.hears(TasksClaimed)


async def test_counts_travel_and_nothing_else_does_harm(tmp_path: Path) -> None:
    """More label sets than one datagram carries all arrive; rubbish is ignored."""
    met = Tally()
    meeting = Meeting(tmp_path / "meeting", met)
    close = meeting.open(asyncio.get_running_loop())
    relay = Relay(meeting.address)
    for n in range(120):
        relay.tally.observe(finished("completed", queue=f"q{n}"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as stranger:
        for rubbish in (b"", b"no json", b"7", b'[["a"]]', b'[[["task"],["x"]]]'):
            stranger.sendto(rubbish, meeting.address)
    relay.flush()
    await eventually(lambda: len(met.rows) == 120)
    relay.tally.observe(finished("completed", queue="q0"))
    relay.close()
    await eventually(lambda: met.rows["task", "q0", "function", "coroutine", "completed"][0] == 2)
    close()


async def test_what_cannot_be_sent_is_kept(tmp_path: Path) -> None:
    relay = Relay(str(tmp_path / "meeting"))
    relay.tally.observe(finished("completed"))
    relay.flush()
    relay.tally.observe(finished("completed"))
    met = Tally()
    close = Meeting(tmp_path / "meeting", met).open(asyncio.get_running_loop())
    relay.flush()
    await eventually(lambda: met.rows)
    assert [row[0] for row in met.rows.values()] == [2]
    relay.close()
    close()


async def said(host: str, port: int, text: bytes) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(text)
    answer = await reader.read()
    writer.close()
    return answer


async def test_the_page_answers_what_it_should() -> None:
    async with serve(lambda: b"a 1\n", content_type="text/plain", host="127.0.0.1", port=0) as address:
        port = int(address.removeprefix("http://127.0.0.1:").removesuffix("/metrics"))
        head, _, body = (await said("127.0.0.1", port, b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n")).partition(
            b"\r\n\r\n"
        )
        assert (head.splitlines()[0], body) == (b"HTTP/1.1 200 OK", b"a 1\n")
        assert (await said("127.0.0.1", port, b"GET / HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 404")
        assert (await said("127.0.0.1", port, b"POST /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 405")
        assert (await said("127.0.0.1", port, b"HEAD /metrics HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n")
        assert await said("127.0.0.1", port, b"nonsense\r\n") == b""
        with pytest.raises(SettingsError, match=f"port {port}"):
            async with serve(lambda: b"", content_type="text/plain", host="127.0.0.1", port=port):
                pass


def test_without_the_library_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "headrace.telemetry.prometheus.collector", None)
    with pytest.raises(ImportError):  # the module itself is broken: not for us to explain
        prometheus.load_collector()
    monkeypatch.delitem(__import__("sys").modules, "headrace.telemetry.prometheus.collector")
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(SettingsError, match=r"headrace\[metrics\]"):
        prometheus.load_collector()
