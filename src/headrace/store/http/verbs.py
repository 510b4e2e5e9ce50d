"""Which verbs of the seam a server offers to apps that have no database, and their form on the wire.

The form comes from the protocols themselves: each argument and each answer is encoded by its annotation. What is not
in the table below cannot be called; claiming, finishing and whatever else a worker does never leaves the database.
"""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, NamedTuple, get_type_hints

from pydantic import TypeAdapter

from headrace.core.accounts import Scope
from headrace.store.base import Store

# What a verb is about, and so whose it must be for a caller who may act on their own things alone.
type Subject = Literal[
    "new tasks",
    "new job",
    "tasks",
    "task",
    "job",
    "criteria",
    "jobs",
    "decision",
    "schedules",
    "events",
    "everyone",
    "operators",
]


class Verb(NamedTuple):
    scope: Scope
    subject: Subject


# Ids that one call may name, and rows that one answer holds.
MOST_AT_ONCE = 1000
MOST_ROWS: Mapping[str, int] = {"outline": 10_000}  # of verbs whose rows are smaller

_READ, _SUBMIT, _CONTROL = Scope.READ, Scope.SUBMIT, Scope.CONTROL

VERBS: Mapping[str, Verb] = {
    "enqueue": Verb(_SUBMIT, "new tasks"),
    "create_job": Verb(_SUBMIT, "new job"),
    "get": Verb(_READ, "tasks"),
    "list": Verb(_READ, "criteria"),
    "attempts": Verb(_READ, "task"),
    "logs": Verb(_READ, "task"),
    "checkpoints": Verb(_READ, "task"),
    "edges": Verb(_READ, "tasks"),
    "parents": Verb(_READ, "task"),
    "children": Verb(_READ, "task"),
    "task_heads": Verb(_READ, "tasks"),
    "get_job": Verb(_READ, "job"),
    "list_jobs": Verb(_READ, "jobs"),
    "outline": Verb(_READ, "job"),
    "tally": Verb(_READ, "job"),
    "hooks_of_job": Verb(_READ, "job"),
    "job_events": Verb(_READ, "job"),
    "last_job_events": Verb(_READ, "job"),
    "job_lines": Verb(_READ, "job"),
    "last_job_lines": Verb(_READ, "job"),
    "now": Verb(_READ, "everyone"),
    "counts": Verb(_READ, "operators"),
    # As over REST: how deep queues are, and who works, is for everybody who reads.
    "queues": Verb(_READ, "everyone"),
    "queue_names": Verb(_READ, "everyone"),
    "workers": Verb(_READ, "everyone"),
    "stopped_holders": Verb(_READ, "operators"),
    "breakers": Verb(_READ, "everyone"),
    # As over REST: whoever waits for an event takes its payload, whosever task it is.
    "send": Verb(_CONTROL, "events"),
    "cancel": Verb(_CONTROL, "tasks"),
    "retry": Verb(_CONTROL, "tasks"),
    "clear": Verb(_CONTROL, "task"),
    "decide": Verb(_CONTROL, "decision"),
    "cancel_job": Verb(_CONTROL, "job"),
    "retry_failed": Verb(_CONTROL, "job"),
    "pause": Verb(_CONTROL, "operators"),
    "resume": Verb(_CONTROL, "operators"),
    "schedules": Verb(_READ, "operators"),
    "get_schedule": Verb(_READ, "operators"),
    "schedule_runs": Verb(_READ, "operators"),
    "put_schedules": Verb(_CONTROL, "schedules"),
    "pause_schedule": Verb(_CONTROL, "schedules"),
    "resume_schedule": Verb(_CONTROL, "schedules"),
    "remove_schedule": Verb(_CONTROL, "schedules"),
    "run_schedule": Verb(_CONTROL, "schedules"),
    "open_breaker": Verb(_CONTROL, "operators"),
    "reset_breaker": Verb(_CONTROL, "operators"),
}


@dataclass(frozen=True, slots=True)
class Form:
    """How one verb is written: an object of its arguments by name, and its answer."""

    signature: inspect.Signature
    arguments: Mapping[str, TypeAdapter[Any]]
    answer: TypeAdapter[Any]

    def write_arguments(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        bound = self.signature.bind(None, *args, **kwargs)
        given = {name: value for name, value in bound.arguments.items() if name in self.arguments}
        return {name: self.arguments[name].dump_python(_plain(value), mode="json") for name, value in given.items()}

    def read_arguments(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Raises ValueError (pydantic's own is one) for what does not fit."""
        if unknown := sorted(set(given) - set(self.arguments)):
            raise ValueError(f"there is no argument {unknown[0]!r}")
        read = {name: self.arguments[name].validate_python(value) for name, value in given.items()}
        try:
            self.signature.bind(None, **read)
        except TypeError as error:
            raise ValueError(str(error)) from None
        return read

    def write_answer(self, answer: Any) -> Any:
        return self.answer.dump_python(_plain(answer), mode="json")

    def read_answer(self, text: Any) -> Any:
        return self.answer.validate_python(text)


def _plain(value: Any) -> Any:
    """Batches of tasks and of ids are sequences of classes of their own."""
    is_own = isinstance(value, Sequence) and not isinstance(value, str | bytes | list | tuple)
    return list(value) if is_own else value  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


@cache
def form_of(verb: str) -> Form:
    method = getattr(Store, verb)
    signature = inspect.signature(method)
    hints = get_type_hints(method, localns={"list": list})
    names = [name for name in signature.parameters if name != "self"]
    if verb == "create_job":
        # Its tasks may be larger than memory where the ledger is at hand; over the wire they are one body.
        from headrace.store.http.jobs import WiredJob

        hints["job"] = WiredJob
    return Form(signature, {name: TypeAdapter(hints[name]) for name in names}, TypeAdapter(hints["return"]))
