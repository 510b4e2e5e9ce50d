"""The context of a trace in the options of a task: W3C Trace Context, as the program's propagators write it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from opentelemetry import context, propagate
from opentelemetry.context import Context

from headrace.core import payload
from headrace.core.batch import Batch, Template
from headrace.core.task import NewTask
from headrace.telemetry.tracing import OPTION


def written(parent: Context) -> dict[str, str]:
    carrier: dict[str, str] = {}
    propagate.inject(carrier, parent)
    return carrier


def read(options: Mapping[str, Any]) -> Context:
    """The context that a task carries; an empty one where it carries none: its attempt begins a trace of its own."""
    carrier: Any = options.get(OPTION)
    if not isinstance(carrier, dict):
        return Context()
    found = {str(key): str(value) for key, value in cast("dict[Any, Any]", carrier).items()}
    return propagate.extract(found, Context())


def read_text(options: str) -> Context:
    if f'"{OPTION}"' not in options:
        return Context()
    try:
        data: Any = json.loads(options)
    except ValueError:
        return Context()
    return read(cast("dict[str, Any]", data)) if isinstance(data, dict) else Context()


def carrying(tasks: Sequence[NewTask], carrier: Mapping[str, str]) -> Sequence[NewTask]:
    """The same tasks with the context in their options. What was a batch stays one: its tasks share the span."""
    if isinstance(tasks, Batch):
        return Batch([(Template(_with(run.task, carrier)), arguments) for run, arguments in tasks.runs])
    return [_with(task, carrier) for task in tasks]


def _with(task: NewTask, carrier: Mapping[str, str]) -> NewTask:
    options = {**json.loads(task.options), OPTION: dict(carrier)}
    return dataclasses.replace(task, options=payload.dumps(options))


def current() -> Context:
    return context.get_current()
