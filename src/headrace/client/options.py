"""Options of a task: checked once, where the task is defined or copied, so that a call can trust them."""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, Self, TypedDict, get_args

from headrace.core import payload
from headrace.core.accounts import Role
from headrace.core.durations import Duration, seconds
from headrace.core.errors import OptionError, PayloadError
from headrace.core.limits import Debounce, Key, Limit, Rate
from headrace.core.retry import Retry
from headrace.core.task import OnConflict, Pool

type ExecutorName = Literal["coroutine", "child", "process", "thread"]
type Limits = Limit | Iterable[Limit]
type Rates = Rate | Iterable[Rate]


class _Unset:
    def __repr__(self) -> str:
        return "unset"

    def __bool__(self) -> bool:
        return False


UNSET: Any = _Unset()
"""Not given, where None means «none»."""

_POOLS: Mapping[str, Pool] = {"coroutine": "coroutine", "child": "child", "process": "child", "thread": "thread"}
_LONGEST_QUEUE = 200


class OptionArguments(TypedDict, total=False):
    """What `@app.task(...)` and `task.using(...)` take."""

    queue: str
    queue_name: str
    priority: int
    run_after: Duration | datetime | None
    unique: Key | bool | None
    on_conflict: OnConflict
    idempotency_key: Key | None
    soft_timeout: Duration | None
    timeout: Duration | None
    max_age: Duration | None
    retry: Retry | None
    executor: ExecutorName
    limit: Limits | None
    rate: Rates | None
    order_key: Key | None
    result_ttl: Duration | None
    critical: bool
    tags: Iterable[str]
    metadata: Mapping[str, Any]
    debounce: Debounce | None
    cpus: float | None
    gpus: float | None
    memory: int | None
    job: int | None
    approval: Role | str | None
    connection: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Checked options. Durations are seconds; UNSET falls back to the queue, then to the app."""

    queue: str = "default"
    priority: int = 0
    delay: float = 0.0
    run_at: datetime | None = None
    unique: Key | bool | None = None
    on_conflict: OnConflict = "return"
    idempotency_key: Key | None = None
    soft_timeout: float | None = UNSET
    timeout: float | None = UNSET
    max_age: float | None = UNSET
    retry: Retry | None = None
    executor: ExecutorName | None = None
    limit: tuple[Limit, ...] = ()
    rate: tuple[Rate, ...] = ()
    order_key: Key | None = None
    result_ttl: float | None = UNSET
    critical: bool = True
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    debounce: Debounce | None = None
    resources: Mapping[str, float] = field(default_factory=dict[str, float])
    job: int | None = None
    approval: Role | None = None  # who submits it over HTTP and is less waits for somebody who is
    connection: Any = None

    def changed(self, name: str, given: Mapping[str, Any]) -> Self:
        """A copy with these options, checked. `name` is the task that an error speaks of."""
        try:
            changes = _normal(given, self)
            after = dataclasses.replace(self, **changes)
            _check(after)
        except OptionError as error:
            raise OptionError(f"task {name}: {error}") from None
        return after

    @property
    def pool(self) -> Pool | None:
        return None if self.executor is None else _POOLS[self.executor]


def _normal(given: Mapping[str, Any], before: Options) -> dict[str, Any]:
    unknown = sorted(set(given) - set(OptionArguments.__annotations__))
    if unknown:
        raise OptionError(
            f"there is no option {unknown[0]!r}; the options are {', '.join(sorted(OptionArguments.__annotations__))}"
        )
    changes = dict(given)
    if "queue_name" in changes:
        if "queue" in changes:
            raise OptionError("queue and queue_name are one option; give one of them")
        changes["queue"] = changes.pop("queue_name")
    if "run_after" in changes:
        changes |= _when(changes.pop("run_after"))
    for option in ("soft_timeout", "timeout", "max_age", "result_ttl"):
        if changes.get(option) is not None:
            changes[option] = seconds(changes[option], name=option)
    if "timeout" in changes and "soft_timeout" not in changes:
        # A task that sets only its hard limit has no soft one: the app's default may lie above it.
        changes["soft_timeout"] = None
    for option, kind in (("limit", Limit), ("rate", Rate)):
        if option in changes:
            value = changes[option]
            changes[option] = () if value is None else tuple(value) if hasattr(value, "__iter__") else (value,)
            if not all(isinstance(item, kind) for item in changes[option]):
                raise OptionError(f"{option} takes {kind.__name__}(…) or a list of them, not {value!r}")
    if "tags" in changes:
        changes["tags"] = _tags(changes["tags"])
    if "metadata" in changes:
        changes["metadata"] = dict(changes["metadata"])
    if changes.get("approval") is not None:
        changes["approval"] = _approver(changes["approval"])
    resources = {name: changes.pop(name) for name in ("cpus", "gpus", "memory") if name in changes}
    if resources:
        merged = {**before.resources, **resources}
        changes["resources"] = {name: value for name, value in merged.items() if value is not None}
    return changes


def _when(value: Any) -> dict[str, Any]:
    if value is None:
        return {"delay": 0.0, "run_at": None}
    if isinstance(value, datetime):
        if value.utcoffset() is None:
            raise OptionError("run_after: the datetime is naive; give it a timezone, for example datetime.now(UTC)")
        return {"delay": 0.0, "run_at": value}
    return {"delay": seconds(value, name="run_after"), "run_at": None}


def _tags(tags: Any) -> tuple[str, ...]:
    if isinstance(tags, str):
        raise OptionError(f"tags takes a list of texts, not the text {tags!r}")
    found = tuple(tags)
    if not all(isinstance(tag, str) for tag in found):
        raise OptionError(f"tags must be texts, not {found!r}")
    return found


def _approver(value: Any) -> Role:
    if value not in (Role.OPERATOR, Role.ADMIN):
        raise OptionError(f"approval is the role of who approves, operator or admin, not {value!r}")
    return Role(value)


def _check(options: Options) -> None:
    check_queue(options.queue)
    if isinstance(options.priority, bool) or not isinstance(options.priority, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"priority must be a whole number, higher first, not {options.priority!r}")
    if not -(2**31) <= options.priority < 2**31:
        raise OptionError(f"priority must fit 32 bits, not {options.priority}")
    for name in ("soft_timeout", "timeout"):
        if getattr(options, name) == 0:
            raise OptionError(f"{name} must be longer than zero")
    if options.soft_timeout and options.timeout and options.soft_timeout >= options.timeout:
        raise OptionError(
            f"soft_timeout ({options.soft_timeout:g} s) must be less than timeout ({options.timeout:g} s): "
            "the task could never clean up"
        )
    if options.executor is not None and options.executor not in _POOLS:
        raise OptionError(f"executor must be one of {', '.join(_POOLS)}, not {options.executor!r}")
    if options.on_conflict not in get_args(OnConflict):
        raise OptionError(f"on_conflict must be return, reject or replace, not {options.on_conflict!r}")
    if options.retry is not None and not isinstance(options.retry, Retry):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"retry takes Retry(…), not {options.retry!r}")
    if not isinstance(options.critical, bool):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"critical must be True or False, not {options.critical!r}")
    _check_keys(options)
    try:
        payload.dumps(options.metadata)
    except PayloadError as error:
        raise OptionError(f"metadata: {error}") from None


def _check_keys(options: Options) -> None:
    if options.debounce is not None:
        if not isinstance(options.debounce, Debounce):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise OptionError(f"debounce takes Debounce(…), not {options.debounce!r}")
        if options.unique:
            raise OptionError("unique and debounce contradict each other: a debounced task is unique by its own key")
        if options.delay or options.run_at is not None:
            raise OptionError("run_after and debounce contradict each other: the debounce decides when it runs")
    for name in ("unique", "idempotency_key", "order_key"):
        value = getattr(options, name)
        if value is None or callable(value) or (name == "unique" and isinstance(value, bool)):
            continue
        if not isinstance(value, str) or not value:
            also = ", or True" if name == "unique" else ""
            raise OptionError(
                f"{name} must be a text, a template like 'user-{{user_id}}', a function{also}, not {value!r}"
            )


def check_queue(queue: object) -> None:
    """Raises OptionError for what cannot name a queue."""
    if not isinstance(queue, str) or not queue.strip() or len(queue) > _LONGEST_QUEUE or "\0" in queue or "," in queue:
        raise OptionError(f"queue must be a name of 1 to {_LONGEST_QUEUE} characters without commas, not {queue!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """What holds for every task of a queue: `App(queues={"mail": Queue(limit=Limit(5))})`."""

    retry: Retry | None = None
    limit: Limit | None = None
    rate: Rate | None = None

    def __post_init__(self) -> None:
        if self.retry is not None and not self.retry.storable:
            raise OptionError("Queue.retry cannot have a classify function: it travels with the task; use 'http'")
        for gate in (self.limit, self.rate):
            if gate is not None and callable(gate.key):
                raise OptionError("a queue's limit has a fixed key or none: its tasks have different arguments")
