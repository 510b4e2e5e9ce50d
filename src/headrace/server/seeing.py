"""From what the ledger says to what a caller is shown: secrets are taken out here, whoever asks."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, cast

from headrace.app import App
from headrace.client.job_graph import GraphNode, JobGraph
from headrace.core.errors import HeadraceError, PayloadError
from headrace.core.payload import loads
from headrace.core.states import JobState, TaskState
from headrace.core.task import AttemptRecord, JobHooks, JobRecord, TaskRecord
from headrace.server.auth.approving import asked_role
from headrace.server.lives import ATTEMPTS, REENQUEUED_FROM, RELATIVES, Life
from headrace.server.models.base import LARGEST
from headrace.server.models.jobs import EdgeShown, GraphShown, HookShown, HooksShown, JobDetail, JobShown, NodeShown
from headrace.server.models.tasks import (
    Approval,
    AttemptShown,
    LogLineShown,
    Relatives,
    RelativeShown,
    TaskDetail,
    TaskError,
    TaskSummary,
    Timings,
)
from headrace.store.base import LogLine
from headrace.store.relations import Relative
from headrace.telemetry.running import trace_of


class Seeing:
    """The shapes of one app."""

    __slots__ = ("_app", "_redaction")

    def __init__(self, app: App) -> None:
        self._app = app
        self._redaction = app.redaction

    def value(self, value: Any, name: str = "") -> Any:
        return self._redaction.value(value, name)

    def json(self, text: str | None) -> Any:
        """Stored JSON without its secrets; what is no JSON as its text."""
        if text is None:
            return None
        try:
            return self.value(loads(text))
        except PayloadError:
            return self.text(text)

    def text(self, text: str | None) -> str | None:
        return None if text is None else self._redaction.text(text)

    def arguments(self, text: str, codec: str) -> Any:
        try:
            return self.json(self._app.codecs.get(codec).decode(text))
        except (HeadraceError, ValueError):
            return None  # of a codec that this process has not, or cannot undo

    def error(self, error_class: str | None, message: str | None) -> TaskError | None:
        if error_class is None and message is None:
            return None
        return TaskError(error_class=error_class, message=self.text(message))

    def summary(self, record: TaskRecord) -> TaskSummary:
        told = '"label"' in record.options or '"tags"' in record.options
        return TaskSummary(**self._summary(record, loads(record.options) if told else {}))

    def detail(self, life: Life) -> TaskDetail:
        record = life.record
        options = cast("dict[str, Any]", loads(record.options))
        metadata = cast("dict[str, Any]", options.get("metadata") or {})
        copied, trace = metadata.get(REENQUEUED_FROM), trace_of(record.options)
        return TaskDetail(
            **self._summary(record, options),
            arguments=self.arguments(record.arguments, record.codec),
            metadata=self.value(metadata),
            losses=record.losses,
            critical=record.critical,
            claimed_at=record.claimed_at,
            expires_at=record.expires_at,
            cancelling_at=record.cancelling_at,
            result_expires_at=record.result_expires_at,
            has_result=record.result is not None or record.result_ref is not None,
            timings=_timings(record),
            approval=self._approval(record, life.approval),
            attempts=[self.attempt(attempt) for attempt in life.attempts[-ATTEMPTS:]],
            more_attempts=len(life.attempts) > ATTEMPTS,
            parents=self._relatives(life.parents),
            children=self._relatives(life.children),
            job_name=self.text(life.job_name),
            schedule=life.schedule,
            trace_id=trace,
            trace_url=self._trace_url(trace),
            reenqueued_from=copied if isinstance(copied, int) and 0 < copied <= LARGEST else None,
        )

    def _trace_url(self, trace: str | None) -> str | None:
        where = self._app.settings.trace_url
        return None if trace is None or not where else where.replace("{trace_id}", trace)

    def _relatives(self, found: Sequence[Relative]) -> Relatives:
        items = [
            RelativeShown(
                id=each.id, name=each.name, label=self.text(each.label), state=each.state, kind=each.kind,
                passes=each.passes,
            )
            for each in found[:RELATIVES]
        ]  # fmt: skip
        return Relatives(items=items, more=len(found) > RELATIVES)

    def attempt(self, attempt: AttemptRecord) -> AttemptShown:
        return AttemptShown(
            claim_no=attempt.claim_no,
            run_no=attempt.run_no,
            attempt=attempt.attempt,
            state=attempt.state,
            charged=attempt.charged,
            worker=attempt.worker,
            executor=attempt.executor,
            claimed_at=attempt.claimed_at,
            started_at=attempt.started_at,
            finished_at=attempt.finished_at,
            error=self.error(attempt.error_class, attempt.error_message),
            traceback=self.text(attempt.traceback),
            exit_code=attempt.exit_code,
            late_state=attempt.late_state,
            late_at=attempt.late_at,
            log_ref=attempt.log_ref,
        )

    def line(self, line: LogLine) -> LogLineShown:
        return LogLineShown(
            claim_no=line.claim_no, seq=line.seq, at=line.at, stream=line.stream, line=self._redaction.text(line.line)
        )

    def job(self, job: JobRecord) -> JobShown:
        return JobShown(**self._job(job))

    def job_detail(self, job: JobRecord, hooks: JobHooks) -> JobDetail:
        completed = job.state is JobState.COMPLETED
        on_success = _hook(hooks.on_success, job.state, enqueued=hooks.enqueued and completed)
        on_failure = _hook(hooks.on_failure, job.state, enqueued=hooks.enqueued and not completed)
        return JobDetail(**self._job(job), hooks=HooksShown(on_success=on_success, on_failure=on_failure))

    def _job(self, job: JobRecord) -> dict[str, Any]:
        return {
            "id": job.id,
            "name": self._redaction.text(job.name),
            "description": self.text(job.description),
            "state": job.state,
            "reason": job.reason,
            "run_no": job.run_no,
            "owner": job.owner,
            "created_at": job.created_at,
            "started_at": job.started_at,
            "completed_at": job.completed_at,
            "deadline_at": job.deadline_at,
            "total": job.total,
            "completed": job.completed,
            "failed": job.failed,
            "cancelled": job.cancelled,
            "running": job.running,
            "open": job.open,
            "metadata": self.json(job.metadata),
        }

    def node(self, node: GraphNode) -> NodeShown:
        return NodeShown(
            id=node.id,
            name=self._redaction.text(node.name),
            task=node.task,
            state=node.state,
            reason=node.reason,
            critical=node.critical,
            attempts=node.attempts,
            queue=node.queue,
            waiting_on=node.waiting_on,
            created_at=node.created_at,
            started_at=node.started_at,
            finished_at=node.finished_at,
            took=node.took,
            error=self.text(node.error),
            progress=self.json(node.progress),
        )

    def graph(self, graph: JobGraph) -> GraphShown:
        return GraphShown(
            job=self.job(graph.job),
            nodes=[self.node(node) for node in graph.nodes],
            edges=[EdgeShown.model_validate(edge) for edge in graph.edges],
            complete=graph.complete,
        )

    def _summary(self, record: TaskRecord, options: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "id": record.id,
            "name": record.name,
            "label": options.get("label"),
            "kind": record.kind,
            "queue": record.queue,
            "lane": record.lane.name.lower(),
            "priority": record.priority,
            "state": record.state,
            "reason": record.reason,
            "dead_letter": record.dead_letter,
            "attempt": record.attempt,
            "max_attempts": record.max_attempts,
            "run_no": record.run_no,
            "worker": record.worker,
            "job": record.job,
            "owner": record.owner,
            "waiting_on": self.text(record.waiting_on),
            "created_at": record.created_at,
            "enqueued_at": record.enqueued_at,
            "eligible_at": record.eligible_at,
            "started_at": record.started_at,
            "finished_at": record.finished_at,
            "progress": self.json(record.progress),
            "error": self.error(record.error_class, record.error_message),
            "tags": [self._redaction.text(str(tag)) for tag in options.get("tags") or ()],
        }

    def _approval(self, record: TaskRecord, stored: str | None) -> Approval | None:
        role = self.text(asked_role(record.options))
        if record.state is TaskState.PENDING_APPROVAL:
            return Approval(status="pending", role=role, by=None, at=None, note=None)
        if record.state is TaskState.REJECTED:
            by, _, note = (record.error_message or "").removeprefix("rejected by ").partition(": ")
            told = self.text(note or None)
            return Approval(status="rejected", role=role, by=by or None, at=record.finished_at, note=told)
        if stored is None:
            return None
        said = cast("dict[str, Any]", loads(stored))
        at = said.get("at")
        return Approval(
            status="approved",
            role=role,
            by=said.get("by"),
            at=None if at is None else datetime.fromisoformat(at),
            note=self.text(said.get("note")),
        )


def _hook(task: str | None, state: JobState, *, enqueued: bool) -> HookShown | None:
    if task is None:
        return None
    if state in (JobState.PENDING, JobState.RUNNING):
        return HookShown(task=task, status="waiting")
    return HookShown(task=task, status="enqueued" if enqueued else "passed_over")


def _timings(record: TaskRecord) -> Timings:
    waited = ran = None
    if record.started_at is not None:
        waited = max(0.0, (record.started_at - record.enqueued_at).total_seconds())
        if record.finished_at is not None:
            ran = max(0.0, (record.finished_at - record.started_at).total_seconds())
    return Timings(waited=waited, ran=ran)
