"""From one call to the row it becomes. What does not depend on the arguments is worked out once per set of options."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from headrace.client.engine import Engine
from headrace.client.keys import debounce_delay, keys_of
from headrace.client.options import UNSET, Options
from headrace.core import payload
from headrace.core.batch import Batch, Template
from headrace.core.errors import OptionError
from headrace.core.limits import Gate, gates_for
from headrace.core.payload import JSON_CODEC, Codec
from headrace.core.retry import Retry
from headrace.core.task import NewTask
from headrace.workflows.base import Location, Slot

if TYPE_CHECKING:
    from headrace.client.task import Task


class Preparation:
    """Called with (args, kwargs), gives the NewTask. Pure: nothing is written, no clock is read."""

    def __init__(self, engine: Engine, task: "Task[..., Any]") -> None:
        options = task.options
        self._engine = engine
        self._name = task.name
        self._arguments = task.arguments
        self._options = options
        self._codec = engine.codecs.default
        self._task_retry = task.retry
        retry = effective_retry(engine, options)
        self._constant: dict[str, Any] = {
            "name": task.name,
            "queue": options.queue,
            "pool": task.pool,
            "priority": options.priority,
            "run_at": options.run_at,
            "max_attempts": retry.max_attempts,
            "max_age": effective_max_age(engine, options, retry),
            "codec": self._codec.name,
            "options": stored_options(engine, options, retry=retry if retry != task.retry else None, codec=self._codec),
            "job": options.job,
            "critical": options.critical,
            "dead_letter": retry.dead_letter,
            "delay": options.delay,
        }
        if options.debounce is not None:
            self._constant["delay"], self._constant["max_wait"] = debounce_delay(options)
        queue = engine.queues.get(options.queue)
        self._queue_gates = () if queue is None else queue_gates(options.queue, queue.limit, queue.rate)
        self._has_keys = bool(options.unique or options.debounce or options.idempotency_key is not None)
        self._has_gates = bool(options.limit or options.rate or options.order_key is not None)
        if self._queue_gates and not self._has_gates:
            self._constant["gates"] = self._queue_gates

        # Where nothing but the arguments depends on the arguments, a call is its text and what all calls share.
        self._template = None if self._has_keys or self._has_gates else Template(NewTask(**self._constant))

    def __call__(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> NewTask:
        text, checked = self._arguments.dump(args, kwargs)
        row = self._constant
        if self._template is None:
            row = {**row, **self._by_arguments(text, self._arguments.with_defaults(checked))}
        return NewTask(arguments=self._codec.encode(text), **row)

    def call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[NewTask, Mapping[int, Location]]:
        """The same for a call where slots stand for some arguments, and where each of them is."""
        if not _has_slots(args) and not _has_slots(kwargs.values()):
            return self(args, kwargs), {}
        text, checked, places = self._arguments.dump_partial(args, kwargs)
        row = self._constant
        if self._template is None:
            if self._options.unique is True:
                raise OptionError(
                    f"task {self._name}: unique=True goes by the arguments, and a result will give some of them; "
                    "name a key: unique='…'"
                )
            row = {**row, **self._by_arguments(text, self._arguments.with_defaults(checked))}
        return NewTask(arguments=self._codec.encode(text), **row), places

    def for_event(self, event: str, arguments: str) -> NewTask:
        """What a subscription enqueues: whatever depends on the arguments is not known, and is refused."""
        if self._has_keys:
            raise OptionError(
                f"task {self._name} cannot be enqueued by event {event!r}: unique, debounce and idempotency_key go by "
                "one call, and an event enqueues its task each time it is sent"
            )
        more = self._by_arguments("{}", {}) if self._has_gates else {}
        retry = effective_retry(self._engine, self._options)
        kept = None if retry == self._task_retry else retry
        more["options"] = stored_options(self._engine, self._options, retry=kept, codec=self._codec, event=event)
        row: dict[str, Any] = {**self._constant, **more}
        return NewTask(arguments=arguments, **row)

    def one(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[NewTask]:
        """The same as what an enqueue takes."""
        if self._template is None:
            return (self(args, kwargs),)
        return Batch([(self._template, [self._codec.encode(self._arguments.dump(args, kwargs)[0])])])

    def many(self, calls: Iterable[tuple[Sequence[Any], Mapping[str, Any]]]) -> Sequence[NewTask]:
        if self._template is None:
            return [self(args, kwargs) for args, kwargs in calls]
        dump, encode = self._arguments.dump, self._codec.encode
        return Batch([(self._template, [encode(dump(args, kwargs)[0]) for args, kwargs in calls])])

    def _by_arguments(self, text: str, values: Mapping[str, Any]) -> dict[str, Any]:
        options, found = self._options, dict[str, Any]()
        if self._has_keys:
            found["keys"] = keys_of(
                options, name=self._name, arguments=text, values=values, retention=self._engine.settings.keep
            )
        if self._has_gates:
            found["gates"] = self.gates(values)
        return found

    def gates(self, values: Mapping[str, Any]) -> tuple[Gate, ...]:
        """What a call with these arguments has to pass, by the declarations of the task and of its queue."""
        if not self._has_gates:
            return self._queue_gates
        options = self._options
        gates = gates_for(
            task_name=self._name,
            arguments=values,
            limit=options.limit,
            rate=options.rate,
            order_key=options.order_key,
        )
        return merged_gates(gates, self._queue_gates)


def _has_slots(values: Iterable[Any]) -> bool:
    return any(
        isinstance(value, Slot)
        or (isinstance(value, list | tuple) and any(isinstance(part, Slot) for part in cast("Sequence[Any]", value)))
        for value in values
    )


def effective_retry(engine: Engine, options: Options) -> Retry:
    """Call over task over queue over app."""
    if options.retry is not None:
        return options.retry
    queue = engine.queues.get(options.queue)
    return queue.retry if queue is not None and queue.retry is not None else engine.settings.retry


def effective_max_age(engine: Engine, options: Options, retry: Retry) -> float | None:
    if options.max_age is not UNSET:
        return options.max_age
    return engine.settings.max_age if retry.max_age is None else retry.max_age_seconds


def stored_options(
    engine: Engine, options: Options, *, retry: Retry | None, codec: Codec | None = None, **more: Any
) -> str:
    """What the worker reads beside the arguments: the time limits always, the rest where it was set.

    The policy is stored where it is not the one that the worker finds with the task's definition.
    """
    settings = engine.settings
    found: dict[str, Any] = {
        **more,
        "soft_timeout": settings.soft_timeout if options.soft_timeout is UNSET else options.soft_timeout,
        "timeout": settings.timeout if options.timeout is UNSET else options.timeout,
    }
    ttl = settings.result_ttl if options.result_ttl is UNSET else options.result_ttl
    if ttl is not None:
        found["result_ttl"] = ttl
    if retry is not None:
        found["retry"] = retry.to_dict()
    if codec is not None and codec.name != JSON_CODEC.name:
        found["codec"] = codec.name
    if options.tags:
        found["tags"] = options.tags
    if options.metadata:
        found["metadata"] = options.metadata
    if options.resources:
        found["resources"] = options.resources
    if options.approval is not None:
        found["approval"] = {"role": options.approval}
    return payload.dumps(found)


def queue_gates(queue: str, limit: Any, rate: Any) -> tuple[Gate, ...]:
    return gates_for(task_name=f"queue:{queue}", arguments={}, limit=limit, rate=rate)


def merged_gates(gates: tuple[Gate, ...], more: tuple[Gate, ...]) -> tuple[Gate, ...]:
    """In the one order in which they are locked."""
    return tuple(sorted({*gates, *more}, key=lambda gate: (gate.kind, gate.key)))
