"""Workflows of one app: what a composition asks of it (workflows.base.Origin)."""

from array import array
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.client.bridge import run_blocking
from headrace.client.engine import Engine
from headrace.client.options import Options
from headrace.client.preparing import effective_max_age, effective_retry, stored_options
from headrace.core.errors import GraphError
from headrace.core.payload import JSON_CODEC
from headrace.core.task import Enqueued, NewTask
from headrace.workflows.base import Flow
from headrace.workflows.builtin import APPROVED
from headrace.workflows.plan import Planner
from headrace.workflows.signatures import Signature
from headrace.workflows.value import Existing, Value

if TYPE_CHECKING:
    from headrace.client.job_handle import JobHandle


class Flows:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def builtin(self, path: str, *, arguments: str, options: Mapping[str, Any]) -> NewTask:
        engine, defaults = self.engine, Options()
        retry = effective_retry(engine, defaults)
        # The store writes who approved as plain JSON, and the task reads it with the codec of its own.
        codec = JSON_CODEC if path == APPROVED else engine.codecs.default
        return NewTask(
            name=path,
            arguments=codec.encode(arguments),
            codec=codec.name,
            pool="coroutine",
            max_attempts=retry.max_attempts,
            max_age=effective_max_age(engine, defaults, retry),
            options=stored_options(engine, defaults, retry=None, codec=codec, entrypoint=True, **options),
        )

    async def alaunch(self, flow: Flow[Any], options: Mapping[str, Any]) -> "JobHandle[Any]":
        # Imported here: jobs know flows, too.
        from headrace.client.jobs import Jobs

        return await Jobs(self.engine).aenqueue(flow, **options)

    def launch(self, flow: Flow[Any], options: Mapping[str, Any]) -> "JobHandle[Any]":
        return run_blocking("aenqueue", self.alaunch(flow, options))

    def hook(self, given: Signature[Any] | NewTask | None) -> NewTask | None:
        """What runs when a job has ended: whole, because nothing is passed to it."""
        return None if given is None else self.one(given, "a hook of a job")

    def one(self, given: Signature[Any] | NewTask, what: str) -> NewTask:
        """The one task that a signature is; GraphError when it is more."""
        if isinstance(given, NewTask):
            return given
        if not isinstance(given, Signature):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise GraphError(f"{what} is a signature, task.si(…), not {given!r}")
        planner = Planner(self)
        planner.expand(given)
        task, *more = planner.tasks
        if more or task.after:
            raise GraphError(f"{given.name}: {what} is one task, without handlers, nodes or handles")
        return task


def flows_of(engine: Engine) -> Flows:
    if engine.flows is None:
        engine.flows = Flows(engine)
    return engine.flows


type Ids = int | array[int] | Sequence[Ids]
"""A value of a plan that was written: ids of tasks in the places of their numbers."""


def with_ids(value: Value, answers: Sequence[Enqueued]) -> Ids:
    if isinstance(value, Existing):
        return value.id
    if isinstance(value, int):
        return answers[value].id
    if isinstance(value, array):
        return array("q", (answers[place].id for place in cast("array[int]", value)))
    return [with_ids(part, answers) for part in value]


def ids_in(value: Ids) -> Iterator[int]:
    if isinstance(value, int):
        yield value
    else:
        for part in value:
            yield from ids_in(part)


def existing(value: Ids) -> Value:
    """As what something that is added later waits for."""
    return Existing(value) if isinstance(value, int) else [existing(part) for part in value]
