"""The head of a drawing: what a job is, how far, since when."""

from collections.abc import Sequence
from datetime import datetime

from headrace.cli.graph.drawing import Line, duration
from headrace.cli.output import ago, visible
from headrace.core.states import JobState
from headrace.core.task import JobHooks, JobRecord

STYLES = {
    JobState.PENDING: "yellow", JobState.RUNNING: "cyan", JobState.COMPLETED: "green", JobState.FAILED: "red",
    JobState.CANCELLED: "yellow",
}  # fmt: skip
_BAR = 30


def state_of(record: JobRecord) -> str:
    return f"{record.state}/{record.reason}" if record.reason else record.state


def counts_of(record: JobRecord) -> str:
    return (
        f"{record.total:,} tasks: {record.completed:,} completed, {record.failed:,} failed, "
        f"{record.cancelled:,} cancelled, {record.running:,} running"
    )


def head_of(record: JobRecord, hooks: JobHooks, now: datetime) -> Sequence[Line]:
    lines: list[Line] = [
        [
            (f"job {record.id}  {visible(record.name)}  ", "bold"),
            (state_of(record), f"bold {STYLES[record.state]}"),
            (f", run {record.run_no}", ""),
        ]
    ]
    if record.description:
        lines.append([(f"  {visible(record.description)}", "dim")])
    lines.append([("  ", ""), *bar(record.completed, record.failed + record.cancelled, record.total)])
    lines.append([(f"  {counts_of(record)}", "")])
    lines.append([(f"  {'; '.join(_times(record, now))}", "")])
    found = [f"on success {hooks.on_success}"] * bool(hooks.on_success)
    found += [f"on failure {hooks.on_failure}"] * bool(hooks.on_failure)
    if found:
        enqueued = " (its task is enqueued)" if hooks.enqueued and record.state.terminal else ""
        lines.append([(f"  {visible(', '.join(found))}{enqueued}", "")])
    return lines


def bar(done: int, lost: int, total: int, *, width: int = _BAR) -> Line:
    """Completed, then what ended otherwise, then what is left."""
    if total <= 0:
        return [("━" * width, "dim"), ("  nothing to do", "dim")]
    green = done * width // total
    red = min(width - green, -(-lost * width // total))
    share = 100 * (done + lost) // total
    return [
        ("━" * green, "green"),
        ("━" * red, "red"),
        ("━" * (width - green - red), "dim"),
        (f"  {done + lost:,} of {total:,}  {share} %", ""),
    ]


def _times(record: JobRecord, now: datetime) -> list[str]:
    times = [f"created {ago(record.created_at)}"]
    if record.started_at is not None:
        times.append(f"started {ago(record.started_at)}")
        until = record.completed_at or now
        words = "took" if record.completed_at is not None else "for"
        times.append(f"{words} {duration((until - record.started_at).total_seconds())}")
    elif record.completed_at is not None:
        times.append(f"ended {ago(record.completed_at)}")
    if record.deadline_at is not None and not record.state.terminal:
        times.append(f"deadline {ago(record.deadline_at)}")
    return times
