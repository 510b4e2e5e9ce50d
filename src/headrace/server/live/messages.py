"""What watchers are sent: encoded once, whoever and however many they are. Ids are texts: JavaScript rounds numbers.

Secrets are taken out here, by the rules of the app, so that live shows no more than the API does.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from headrace.core.live import VALUES, JobEvent, JobLine
from headrace.core.task import JobRecord, QueueRecord, TaskRecord
from headrace.store.base import LogLine
from headrace.store.figures import Newest
from headrace.telemetry.redaction import Redaction

# Where in a sequence something is: (seq,) in a job, (claim_no, seq) in a task. Compared as tuples.
type Position = tuple[int, ...]
BEGINNING: Position = (-1,)


class Message:
    """`position` is None for one that shows a state as it is now: the next one takes its place."""

    __slots__ = ("_buffered", "_events", "kind", "position", "size", "text")

    def __init__(self, kind: str, fields: dict[str, Any], position: Position | None = None) -> None:
        self.kind = kind
        self.position = position
        self.text = orjson.dumps({"type": kind, **fields}, default=str).decode()  # a hook may give anything
        self.size = len(self.text)
        self._buffered: str | None = None
        self._events: dict[bool, bytes] = {}

    @property
    def buffered(self) -> str:
        """The same for who came late: it is older than their connection."""
        if self._buffered is None:
            self._buffered = f'{self.text[:-1]},"buffered":true}}'
        return self._buffered

    def event(self, *, buffered: bool) -> bytes:
        """As a server-sent event. JSON has no line breaks, so it is one line of data."""
        found = self._events.get(buffered)
        if found is None:
            number = "" if self.position is None else f"id: {shown(self.position)}\n"
            data = self.buffered if buffered else self.text
            found = self._events[buffered] = f"{number}event: {self.kind}\ndata: {data}\n\n".encode()
        return found


def shown(position: Position) -> str:
    return ".".join(str(number) for number in position)


def read_position(text: str, *, parts: int) -> Position:
    """What `shown` wrote, or a beginning of it. ValueError."""
    position = tuple(int(part) for part in text.split("."))
    if len(position) > parts or any(not -1 <= number < 2**63 for number in position):
        raise ValueError(f"{text!r} is no place in this sequence")
    return position


PING = '{"type":"ping"}'
PING_EVENT = b": ping\n\n"


def job_event(event: JobEvent) -> Message:
    counts = {"total": event.total, "completed": event.completed, "failed": event.failed, "cancelled": event.cancelled}
    data = {"job": str(event.job), **counts, "at": event.at}
    return Message("job_status_update", {"status": event.state, "data": data, "seq": event.seq}, (event.seq,))


def job_as_it_is(job: JobRecord) -> Message:
    """Of a job that has no event yet: the first one is still to come, as 0."""
    counts = {"total": job.total, "completed": job.completed, "failed": job.failed, "cancelled": job.cancelled}
    data = {"job": str(job.id), **counts, "at": job.completed_at or job.started_at or job.created_at}
    return Message("job_status_update", {"status": job.state, "data": data, "seq": -1}, BEGINNING)


def job_line(line: JobLine, rules: Redaction) -> Message:
    fields = {"message": rules.text(line.line), "seq": line.seq, "stream": line.stream, "task": str(line.task)}
    return Message("task_log_message", {**fields, "claim_no": line.claim_no, "at": line.at}, (line.seq,))


def task_line(line: LogLine, rules: Redaction) -> Message:
    """A line, or a value that the task streamed: both are numbered by the claim."""
    place = {"claim_no": line.claim_no, "seq": line.seq, "task": str(line.task), "at": line.at}
    position = (line.claim_no, line.seq)
    if line.stream == VALUES:
        return Message("task_stream_value", {"value": _read(line.line, rules), **place}, position)
    return Message("task_log_message", {"message": rules.text(line.line), "stream": line.stream, **place}, position)


def task_state(task: TaskRecord, rules: Redaction) -> Message:
    progress = None if task.progress is None else _read(task.progress, rules)
    message = None if task.error_message is None else rules.text(task.error_message)
    fields = {"task": str(task.id), "status": task.state, "reason": task.reason, "progress": progress}
    counts = {"attempt": task.attempt, "max_attempts": task.max_attempts, "claim_no": task.claim_no}
    error = {"error_class": task.error_class, "error_message": message}
    return Message("task_update", {**fields, **counts, **error, "run_no": task.run_no})


def _read(text: str, rules: Redaction) -> Any:
    """JSON, or the text itself where it is none (JSON that was cut)."""
    try:
        found = orjson.loads(text)
    except orjson.JSONDecodeError:
        return rules.text(text)
    return rules.value(found)


def queue_figures(queues: list[QueueRecord]) -> Message:
    shown_queues = [{"name": queue.name, "paused": queue.paused, "depths": dict(queue.depths)} for queue in queues]
    return Message("queues", {"queues": shown_queues})


def overview_figures(
    at: datetime,
    minutes: Sequence[tuple[datetime, dict[str, int]]],
    states: dict[str, int],
    queues: Sequence[dict[str, Any]],
    workers: dict[str, int],
) -> Message:
    """What the first page shows of this moment; minutes are those of the ledger's clock, and still grow."""
    counted = [{"at": begin, **outcomes} for begin, outcomes in minutes]
    return Message("overview", {"at": at, "minutes": counted, "states": states, "queues": queues, "workers": workers})


def newest_tasks(newest: Newest) -> Message:
    """Another one only when it says something else: a list asks again then."""
    live, ended = (None if id is None else str(id) for id in (newest.live, newest.ended))
    return Message("tasks", {"newest": live, "ended": ended, "ended_at": newest.ended_at})


def system_figures(tasks: dict[str, int], workers: dict[str, int]) -> Message:
    return Message("system", {"tasks": tasks, "workers": workers})
