"""A task: a function with options, that can be called, or enqueued."""

import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from headrace.client.arguments import Arguments, Result
from headrace.client.bridge import sync_form
from headrace.client.engine import Engine
from headrace.client.flows import Flows, flows_of
from headrace.client.handles import Handle
from headrace.client.options import UNSET, OptionArguments, Options
from headrace.client.preparing import Preparation
from headrace.core.errors import ArgumentError, OptionError
from headrace.core.limits import Gate
from headrace.core.retry import Retry
from headrace.core.task import NewTask, Pool
from headrace.workflows.base import Location
from headrace.workflows.compose import Group
from headrace.workflows.compose import map as map_items
from headrace.workflows.compose import starmap as starmap_items
from headrace.workflows.signatures import Signature

if TYPE_CHECKING:
    from headrace.scheduling.declaration import Schedule, When

type Call = Mapping[str, Any] | tuple[Sequence[Any], Mapping[str, Any]]
"""Arguments of one call in `enqueue_many`: keywords, or (positional, keywords)."""

CHUNK = 1000  # tasks in one transaction of enqueue_many: small enough not to hold up others


class Task[**P, R]:
    """Made by `@app.task`. `using` gives a copy with other options; calling it runs the function, without the store."""

    def __init__(
        self,
        engine: Engine,
        function: Callable[P, Awaitable[R] | R],
        *,
        name: str,
        options: Options,
        aliases: Sequence[str] = (),
    ) -> None:
        self.function: Callable[..., Any] = function
        self.name = name
        self.aliases = tuple(aliases)
        self.options = options
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.retry: Retry = options.retry or engine.settings.retry
        self._engine = engine
        self._arguments = Arguments(function, name=name, strict=engine.settings.strict)
        self._result = Result(function, name=name)
        # What a worker asks (executors.base.Entry), without a frame in between: it does so for every task.
        self.load_arguments = self._arguments.load
        self.dump_result = self._result.dump
        self.inject = self._arguments.inject
        self._check()
        self._prepare = Preparation(engine, self)
        functools.update_wrapper(cast("Any", self), function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any:
        """Run the function itself, here and now."""
        return self.function(*args, **kwargs)

    def using(self, **options: Unpack[OptionArguments]) -> Self:
        """A copy with these options, for one call or for many."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.options = self.options.changed(self.name, options)
        if other.options.retry is not None and other.options.retry != self.retry and not other.options.retry.storable:
            raise OptionError(
                f"task {self.name}: retry with a classify function cannot be stored with one call; "
                "set it where the task is defined"
            )
        other._check()
        other._prepare = Preparation(self._engine, other)
        return other

    def prepare(self, *args: P.args, **kwargs: P.kwargs) -> NewTask:
        """What `enqueue` would write: validated, and nothing is written. For `app.jobs.create(tasks=[...])`."""
        return self._prepare(args, kwargs)

    def s(self, *args: Any, **kwargs: Any) -> Signature[R]:
        """A part of a workflow: a call with these arguments. What comes before it, if something does, gives its result
        as the first argument, before these."""
        return Signature(task=self, args=args, kwargs=kwargs)

    def si(self, *args: P.args, **kwargs: P.kwargs) -> Signature[R]:
        """The same, with exactly these arguments: it waits for what comes before it, and takes no result."""
        return Signature(task=self, args=args, kwargs=kwargs, immutable=True)

    def map(self, items: Iterable[Any]) -> Group[R]:
        """A group of one call for each item."""
        return map_items(self, items)

    def starmap(self, items: Iterable[Iterable[Any]]) -> Group[R]:
        """A group of one call for each item, which is the list of its arguments."""
        return starmap_items(self, items)

    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> Handle[R]:
        """Write the task. When this returns it is durable, or part of your own transaction.

        Raises ArgumentError when the arguments do not fit the signature; nothing is then written.
        """
        (answer,) = await self._engine.enqueue(self._prepare.one(args, kwargs), connection=self.options.connection)
        return self._handle(answer.id, answer.created)

    async def aenqueue_many(self, calls: Iterable[Call]) -> list[Handle[R]]:
        """Write many tasks, in transactions of a thousand; `calls` is read as it goes, so it may be a generator.

        When it fails half way, the error says how many tasks were written before, and carries them as `.enqueued`.
        """
        handles: list[Handle[R]] = []
        engine, name, result = self._engine, self.name, self._result
        try:
            async for answers in engine.enqueue_each(self._chunks(calls), connection=self.options.connection):
                handles += [Handle(engine, id, created=created, name=name, result=result) for id, created in answers]
        except Exception as error:
            error.add_note(
                f"enqueue_many of {self.name}: the first {len(handles)} calls were enqueued, of those after them none "
                f"in the failed transaction (at most {CHUNK} each)"
            )
            cast("Any", error).enqueued = handles
            raise
        return handles

    def schedule(self, when: "When | Schedule", /, *args: P.args, **kwargs: P.kwargs) -> "Schedule":
        """Declare that it is enqueued by itself with these arguments: `welcome.schedule("0 9 * * *", user_id=7)`, or
        `welcome.schedule(Schedule("0 9 * * *", tz="Europe/Berlin", name="morning"), user_id=7)`.

        Nothing is written here; a worker, `headrace up` or `headrace scheduler` does when it starts.
        """
        # Imported here: calendars and zones cost whoever only enqueues nothing.
        from headrace.client.declaring import declare
        from headrace.scheduling.declaration import Schedule

        return declare(self._engine, Schedule.of(when), self, args, kwargs).schedule

    enqueue = sync_form(aenqueue)
    enqueue_many = sync_form(aenqueue_many)

    @property
    def origin(self) -> Flows:
        """What makes workflows of its app (workflows.base.Origin)."""
        return flows_of(self._engine)

    def prepare_for_event(self, event: str, arguments: str) -> NewTask:
        """For subscriptions: what an event enqueues."""
        if self.options.connection is not None:
            raise OptionError(f"task {self.name}: connection belongs to one call, a subscription has none")
        return self._prepare.for_event(event, arguments)

    def prepare_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[NewTask, Mapping[int, Location]]:
        """For workflows: as `prepare`, where slots stand for what results will give."""
        if self.options.connection is not None:
            raise OptionError(
                f"task {self.name}: connection belongs to one enqueue; a workflow has a transaction of its own"
            )
        return self._prepare.call(args, kwargs)

    def gates(self, values: Mapping[str, Any]) -> tuple[Gate, ...]:
        """What a call with these arguments has to pass before it starts; for those that were prepared elsewhere."""
        return self._prepare.gates(self._arguments.with_defaults(values))

    @property
    def arguments(self) -> Arguments:
        return self._arguments

    @property
    def result_loader(self) -> Result:
        return self._result

    @property
    def pool(self) -> Pool:
        return self.options.pool or ("coroutine" if self.is_async else "child")

    def __repr__(self) -> str:
        return f"<Task {self.name}>"

    def _chunks(self, calls: Iterable[Call]) -> Iterator[Sequence[NewTask]]:
        remaining = (_split(call) for call in calls)
        while chunk := self._prepare.many(islice(remaining, CHUNK)):
            yield chunk

    def _handle(self, id: int, created: bool) -> Handle[R]:
        return Handle(self._engine, id, created=created, name=self.name, result=self._result)

    def _check(self) -> None:
        if self.pool == "coroutine" and not self.is_async:
            raise OptionError(
                f"task {self.name}: executor='coroutine' needs an async def; a def would stop the loop for everyone"
            )
        if self.is_async and self.pool == "thread":
            raise OptionError(
                f"task {self.name}: an async def runs on the event loop, or with executor='child' on one of its own; "
                "a thread is for a def"
            )
        settings = self._engine.settings
        soft = self.options.soft_timeout
        hard = self.options.timeout if self.options.timeout is not UNSET else settings.timeout
        if soft is not UNSET and soft is not None and hard is not None and soft >= hard:
            raise OptionError(
                f"task {self.name}: soft_timeout ({soft:g} s) must be less than the hard limit ({hard:g} s)"
            )


class FunctionTask[**P, R](Task[P, R]):
    """A task made of a `def`: calling it gives what the function returns."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)


class CoroutineTask[**P, R](Task[P, R]):
    """A task made of an `async def`: calling it gives a coroutine."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R]:
        return self.function(*args, **kwargs)


def _split(call: Call) -> tuple[Sequence[Any], Mapping[str, Any]]:
    if type(call) is dict:  # by far the commonest, and the match below takes its time
        return (), cast("dict[str, Any]", call)
    match call:
        case Mapping():
            return (), call
        case ([*args], {**kwargs}):
            return args, kwargs
        case _:  # pyright: ignore[reportUnnecessaryComparison]
            raise ArgumentError(f"enqueue_many takes keyword dicts or (args, kwargs) pairs, not {call!r}")
