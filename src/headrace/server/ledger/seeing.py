"""What an app over HTTP is answered, for a caller who may look and not act: without its secrets, as any page shows it.

Who controls a thing gets it as it is: an app that reads its own results needs them whole.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, cast

from headrace.app import App
from headrace.core.accounts import Scope
from headrace.core.breaker import BreakerRecord
from headrace.core.errors import HeadraceError
from headrace.core.live import JobLine, TaskHead
from headrace.core.payload import JSON_CODEC, dumps
from headrace.core.schedule import ScheduleRecord
from headrace.core.task import AttemptRecord, JobRecord, NewTask, Outlined, TaskRecord
from headrace.server.auth.caller import Caller
from headrace.server.seeing import Seeing
from headrace.store.base import LogLine
from headrace.store.relations import Relative


def sees_secrets(caller: Caller) -> bool:
    """Of what they may ask for at all: a user's is their own, an operator controls everything, a viewer nothing."""
    return Scope.CONTROL in caller.scopes


def without_names(breakers: Iterable[BreakerRecord]) -> list[BreakerRecord]:
    """Who opened or reset them is for operators to know, as over REST."""
    return [dataclasses.replace(breaker, changed_by="") for breaker in breakers]


class Curtain:
    """The answers of one app's ledger, by what they are made of."""

    __slots__ = ("_app", "_seeing")

    def __init__(self, app: App) -> None:
        self._app = app
        self._seeing = Seeing(app)

    def answer(self, verb: str, answer: Any) -> Any:
        if verb == "checkpoints":
            return {name: self._json(text, name) for name, text in answer.items()}
        return self._any(answer)

    def _any(self, value: Any) -> Any:
        match value:
            case TaskRecord():
                return self._task(value)
            case AttemptRecord():
                said, trace = self._seeing.text(value.error_message), self._seeing.text(value.traceback)
                return dataclasses.replace(value, error_message=said, traceback=trace)
            case LogLine() | JobLine():
                return dataclasses.replace(value, line=self._seeing.text(value.line) or "")
            case TaskHead():
                return value._replace(progress=self._json(value.progress))
            case JobRecord():
                return self._job(value)
            case Outlined():
                return self._outlined(value)
            case Relative():
                return value._replace(label=self._seeing.text(value.label))
            case ScheduleRecord():
                return dataclasses.replace(value, task=self._call(value.task))
            case Mapping():
                return {name: self._any(each) for name, each in cast("Mapping[Any, Any]", value).items()}
            case list():
                return [self._any(each) for each in cast("list[Any]", value)]
            case _:
                return value

    def _task(self, record: TaskRecord) -> TaskRecord:
        return dataclasses.replace(
            record,
            arguments=self._decoded(record.arguments, record.codec) or "{}",
            codec=JSON_CODEC.name,
            options=self._json(record.options) or "{}",
            waiting_on=self._seeing.text(record.waiting_on),
            progress=self._json(record.progress),
            result=None if record.result is None else self._decoded(record.result, record.codec),
            error_message=self._seeing.text(record.error_message),
        )

    def _call(self, task: NewTask) -> NewTask:
        return dataclasses.replace(
            task,
            arguments=self._decoded(task.arguments, task.codec) or "{}",
            codec=JSON_CODEC.name,
            options=self._json(task.options) or "{}",
        )

    def _job(self, job: JobRecord) -> JobRecord:
        return dataclasses.replace(
            job,
            name=self._seeing.text(job.name) or "",
            description=self._seeing.text(job.description),
            metadata=self._json(job.metadata) or "{}",
        )

    def _outlined(self, row: Outlined) -> Outlined:
        text = self._seeing.text
        return row._replace(label=text(row.label), waiting_on=text(row.waiting_on), error=text(row.error))

    def _decoded(self, text: str, codec: str) -> str | None:
        """Redacted, as plain JSON; None for what a codec wrote that this process has not, or cannot undo."""
        try:
            return self._json(self._app.codecs.get(codec).decode(text))
        except (HeadraceError, ValueError):
            return None

    def _json(self, text: str | None, name: str = "") -> str | None:
        if text is None:
            return None
        shown = self._seeing.json(text)
        return dumps(self._seeing.value(shown, name) if name else shown)
