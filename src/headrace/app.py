"""`App`: what a program defines its tasks on, enqueues with and asks. A facade; the work is in `client`."""

import contextlib
import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Unpack, cast, overload
from urllib.parse import quote

from headrace.client.breakers import Breaker
from headrace.client.bridge import on_store, sync_form
from headrace.client.circuits import Breakers, Sharing
from headrace.client.commands import Commands
from headrace.client.engine import Engine
from headrace.client.entrypoints import Entrypoint, load_entrypoint
from headrace.client.health import Health, check_health
from headrace.client.inspection import Queues, Tasks, Workers
from headrace.client.jobs import Jobs
from headrace.client.middleware import Middleware
from headrace.client.naming import checked_name, task_name
from headrace.client.options import OptionArguments, Options, Queue
from headrace.client.task import CoroutineTask, FunctionTask, Task
from headrace.client.tracing import TracingMiddleware
from headrace.client.transactions import TransactionScope
from headrace.client.wrapping import WrappedEntry
from headrace.core.breaker import BreakerPolicy
from headrace.core.durations import Duration
from headrace.core.errors import DefinitionError, OptionError, SettingsError, UnknownTask
from headrace.core.payload import Codec, CodecRegistry
from headrace.core.retry import Retry
from headrace.core.task import ClaimedTask
from headrace.data.current import offer
from headrace.executors.base import Entry
from headrace.executors.ledger import Ledger
from headrace.presets import PresetName
from headrace.settings import Settings, read_settings
from headrace.store.base import Store, Violation
from headrace.store.blobs.base import Blobs
from headrace.store.connect import ledger_mark, masked_url, sqlite_path
from headrace.telemetry.opentelemetry import load_tracing
from headrace.telemetry.prometheus import load_collector
from headrace.telemetry.redaction import Hook, Redaction
from headrace.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from headrace.client.accounts import Audit, Tokens, Users
    from headrace.client.dead_letters import DeadLetters
    from headrace.client.schedules import Schedules
    from headrace.client.subscribing import Events
    from headrace.core.schedule import NewSchedule
    from headrace.core.subscription import NewSubscription
    from headrace.data.catalog import Data
    from headrace.scheduling.declaration import Schedule, ScheduleOptions, When
    from headrace.telemetry.prometheus.collector import HeadraceCollector
    from headrace.workflows.signatures import Signature

type Lifespan = Callable[[], AbstractAsyncContextManager[Any]]


class TaskDecorator(Protocol):
    """What `app.task(...)` with options gives."""

    @overload  # an `async def` is also a function that returns something: the order decides
    def __call__[**P, R](  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...

    @overload
    def __call__[**P, R](self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...


class ScheduleDecorator(Protocol):
    """What `app.schedule(...)` gives: it takes a task and gives it back."""

    def __call__[T: Task[..., Any]](self, task: T, /) -> T: ...


class App:
    """Tasks and their store. Settings are what is given here, then HEADRACE_*, then the preset, then the default.

    Nothing connects before the first use. An app that was made before a fork works in the children.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        name: str | None = None,
        preset: PresetName | None = None,
        queues: Mapping[str, Queue] | None = None,
        retry: Retry | None = None,
        lease: Duration | None = None,
        codec: Codec | Sequence[Codec] | None = None,
        redact: Iterable[str | Hook] = (),
        **settings: Any,
    ) -> None:
        named = {"database_url": url, "name": name, "preset": preset, "retry": retry, "lease": lease}
        given = {key: value for key, value in named.items() if value is not None}
        self.settings: Settings = read_settings({**settings, **given})
        self.name = self.settings.name
        self.url = self.store_url = _full_url(self.settings.database_url)
        codecs = () if codec is None else tuple(codec) if isinstance(codec, Sequence) else (codec,)
        # The first one writes, all of them read.
        registry = CodecRegistry(*codecs, default=codecs[0]) if codecs else CodecRegistry()
        self._engine = Engine(self.settings, url=self.url, queues=dict(queues or {}), codecs=registry)
        self._tasks: dict[str, Task[..., Any]] = {}
        self._entrypoints: dict[str, Entrypoint] = {}
        self._lifespan: Lifespan | None = None
        self.sharing = Sharing(self._engine)  # what the breakers of its processes know of each other
        self.redaction = Redaction(redact)
        self.tracing: Tracing | None = None
        if self.settings.otel:
            self.tracing = load_tracing(self.redaction, service=self.name)
            self._engine.middleware.append(TracingMiddleware(self.tracing))
        self.tasks = Tasks(self._engine)
        self.queues = Queues(self._engine)
        self.workers = Workers(self._engine)
        self.jobs = Jobs(self._engine)
        self.commands = Commands(self._engine)
        self.breakers = Breakers(self._engine, self.sharing)
        offer(self)

    # Defining.

    @overload
    def task[**P, R](  # pyright: ignore[reportOverlappingOverload]
        self, function: Callable[P, Coroutine[Any, Any, R]], /
    ) -> CoroutineTask[P, R]: ...

    @overload
    def task[**P, R](self, function: Callable[P, R], /) -> FunctionTask[P, R]: ...

    @overload
    def task(
        self, /, *, name: str | None = None, aliases: Sequence[str] = (), **options: Unpack[OptionArguments]
    ) -> TaskDecorator: ...

    def task(
        self,
        function: Any = None,
        /,
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        **options: Any,
    ) -> Any:
        """Make a task of a function: `@app.task`, or `@app.task(queue="mail", retry=Retry(max_attempts=5))`."""

        def define(function: Callable[..., Any]) -> Task[..., Any]:
            return self._define(function, name, aliases, options)

        return define if function is None else define(function)

    def schedule(
        self,
        when: "When | Schedule",
        /,
        *,
        arguments: Mapping[str, Any] | None = None,
        **options: "Unpack[ScheduleOptions]",
    ) -> "ScheduleDecorator":
        """Enqueue a task by itself: `@app.schedule("*/5 * * * *", tz="Europe/Berlin")` above its `@app.task`.

        Takes what `Schedule` takes, and the arguments of each run. Several may stand above one task, with names.
        """
        from headrace.client.declaring import declare
        from headrace.scheduling.declaration import Schedule

        schedule = Schedule.of(when, options)

        def define[T: Task[..., Any]](task: T) -> T:
            if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DefinitionError(f"@app.schedule stands above @app.task, not below it, at {task!r}")
            if getattr(self._tasks.get(task.name), "function", None) is not task.function:
                raise DefinitionError(f"task {task.name} belongs to another app; use the schedule of that app")
            declare(self._engine, schedule, task, (), arguments or {})
            return task

        return define

    def on_event(self, name: str, /) -> "ScheduleDecorator":
        """Enqueue a task whenever an event is sent, by whomever: `@app.on_event("paid")` above its `@app.task`.

        The task takes what it wants of `event`, `key` and `payload`, by these names. It is enqueued once for each
        `app.send`, in the transaction of that. The engine sends `job.completed`, `job.failed`, `job.cancelled`,
        `task.failed` and `task.dead_letter`. Known to senders from the first start of a worker on.
        """
        from headrace.client.subscribing import check_event, subscribe

        check_event(name)

        def define[T: Task[..., Any]](task: T) -> T:
            if not isinstance(task, Task):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise DefinitionError(f"@app.on_event stands above @app.task, not below it or without it, at {task!r}")
            if getattr(self._tasks.get(task.name), "function", None) is not task.function:
                raise DefinitionError(f"task {task.name} belongs to another app; use the on_event of that app")
            subscribe(self._engine, name, task)
            return task

        return define

    def lifespan[F: Callable[[], Any]](self, function: F) -> F:
        """Decorate an async generator (or a function that gives an async context manager): what it yields are the
        resources of every worker process, entered before the first task and left after the last."""
        if self._lifespan is not None:
            raise DefinitionError("this app has a lifespan already; open both things in one function")
        wrapped: Any = contextlib.asynccontextmanager(function) if inspect.isasyncgenfunction(function) else function
        self._lifespan = cast("Lifespan", wrapped)
        return function

    def add_middleware(self, middleware: Middleware) -> None:
        """Wrap every enqueue and every attempt; the first one added is the outermost."""
        self._engine.middleware.append(middleware)

    def add_redaction(self, rule: str | Hook) -> None:
        """Hide more before anything is logged, traced or printed: a word ("iban"), or a hook `(name, value)` that gives
        what is to be seen. With a minus ("-max_tokens") a name that is shown although it looks like a secret's."""
        self.redaction.add(rule)

    @property
    def middleware(self) -> Sequence[Middleware]:
        return self._engine.middleware

    # Using.

    @cached_property
    def schedules(self) -> "Schedules":
        """What is enqueued by itself, and when: look, add, change, pause, run now."""
        from headrace.client.schedules import Schedules

        return Schedules(self._engine)

    @cached_property
    def users(self) -> "Users":
        """Who may do what through a server: look, add, change, shut out."""
        from headrace.client.accounts import Users

        return Users(self._engine)

    @cached_property
    def tokens(self) -> "Tokens":
        """The secrets by which programs come in through a server: make, look, revoke."""
        from headrace.client.accounts import Tokens

        return Tokens(self._engine)

    @cached_property
    def audit(self) -> "Audit":
        """What was done through a server, in whose name."""
        from headrace.client.accounts import Audit

        return Audit(self._engine)

    @cached_property
    def dead_letters(self) -> "DeadLetters":
        """What failed for good and is kept: look, run again, remove."""
        from headrace.client.dead_letters import DeadLetters

        return DeadLetters(self._engine)

    @cached_property
    def data(self) -> "Data":
        """Its tables: `app.data.create(rows)`, `app.data.open(id)`. Kept at `data_url`, else beside the SQLite file."""
        from headrace.data.catalog import Data

        url = self.settings.data_url or _data_url(self.url)
        return Data(url, keep=self.settings.data_keep, owner=ledger_mark(self.url, self.name), jobs=self.jobs)

    @cached_property
    def events(self) -> "Events":
        """Which tasks are enqueued by which events."""
        from headrace.client.subscribing import Events

        return Events(self._engine)

    def transaction(self, connection: Any) -> TransactionScope:
        """`with app.transaction(session):` (or `async with`): what this context enqueues appears if and only if you
        commit. The block neither begins nor commits anything itself."""
        return TransactionScope(self._engine, connection)

    async def asend(self, event: str, key: str = "", payload: Any = None) -> int:
        """Say that something happened: tasks that wait for it with `current.wait(event, key)` go on with the payload.

        Durable when this returns, or part of your own transaction: in a block of `app.transaction` tasks go on within
        a second of your commit. An event may come before anyone waits; it is kept as long as history is. Its id.
        """
        from headrace.client.events import send

        return await send(self._engine, event, key, payload)

    async def ahealth_check(self) -> Health:
        """Whether the database answers, a worker is active, and no task is held by a worker that is gone."""
        return await check_health(self._engine)

    def metrics(self) -> "HeadraceCollector":
        """What this process enqueues and the jobs that it ends, from the first call on, for an exporter of your own:
        `prometheus_client.REGISTRY.register(app.metrics())`. Needs headrace[metrics]."""
        collector, tally = load_collector(), self._engine.counting.tally()
        return collector(lambda: tally)

    async def aupgrade(self) -> None:
        """Make the schema, or bring it up to date. Safe from many processes at once, and twice."""
        await on_store(self._upgrade)

    async def acheck(self) -> list[Violation]:
        """Read the whole ledger and prove its invariants; what is broken, or nothing."""
        return await self._engine.run(lambda store: store.check())

    def breaker(self, service: str, policy: BreakerPolicy | None = None) -> Breaker:
        """The breaker of a service: `with app.breaker("mail").call():`, `async with`, or `@app.breaker("mail")` above a
        function. The policy of the first call stands, else the app's settings."""
        found = self.sharing.breakers.get(service)
        if found is None:
            settings = self.settings
            default = BreakerPolicy(
                failure_threshold=settings.circuit_failure_threshold,
                volume_threshold=settings.circuit_volume_threshold,
                timeout=settings.circuit_timeout,
            )
            made = Breaker(service, policy or default, moved=self._engine.counting.breaker_moved, others=self.sharing)
            found = self.sharing.join(made)
        return found

    async def aclose(self) -> None:
        """Close the connections of this process; the next use opens them again.

        What was begun before, on whatever thread, is done first: an enqueue is written, a query answered. What comes
        meanwhile is a next use; `enqueue_many` goes on with its next chunk. Whoever waits for a result is told.
        """
        await self._engine.aclose()
        if "data" in self.__dict__:
            self.data.close()

    send = sync_form(asend)
    health_check = sync_form(ahealth_check)
    close = sync_form(aclose)
    upgrade = sync_form(aupgrade)
    check = sync_form(acheck)

    # What workers ask.

    @property
    def registry(self) -> Mapping[str, Task[..., Any]]:
        """Every task by its name; aliases are not listed."""
        return {name: task for name, task in self._tasks.items() if task.name == name}

    def get_task(self, name: str) -> Task[..., Any]:
        """The task of that name or alias; UnknownTask when there is none."""
        task = self._tasks.get(name)
        if task is None:
            known = ", ".join(sorted(self.registry)) or "none"
            raise UnknownTask(f"no task {name!r} is defined on this app; it has {known}")
        return task

    def signature(self, name: str, *args: Any, **kwargs: Any) -> "Signature[Any]":
        """A part of a workflow by the name of its task, as `task.s(…)`; UnknownTask when there is none."""
        return self.get_task(name).s(*args, **kwargs)

    @property
    def revision(self) -> int:
        """`resolve` gives the same for the same as long as this does not change: names are defined once, so only
        middleware can be put around them later."""
        return len(self._engine.middleware)

    def resolve(self, name: str, options: Mapping[str, Any]) -> Entry:
        """The callable that a stored task names (executors.base.Source)."""
        entry = self._entrypoint(name) if options.get("entrypoint") else self.get_task(name)
        codec = options.get("codec")
        if "event" in options:
            return self._event_entry(entry, codec)
        if codec is None and not self._engine.middleware:
            return entry
        return WrappedEntry(
            entry, middleware=self._engine.middleware, codec=None if codec is None else self.codecs.get(codec)
        )

    def _event_entry(self, entry: Entry, codec: str | None) -> Entry:
        from headrace.client.events import unwrapped
        from headrace.client.wrapping import EventEntry

        return EventEntry(
            entry,
            middleware=self._engine.middleware,
            codec=None if codec is None else self.codecs.get(codec),
            read=lambda value: unwrapped(self._engine, value),
        )

    def ledger(self, claim: ClaimedTask, worker: str) -> Ledger:
        """What the durable calls of an attempt ask (executors.ledger.Keeper)."""
        from headrace.client.durable import DurableLedger

        return DurableLedger(self._engine, claim, worker)

    @property
    def blobs(self) -> Blobs | None:
        """Where results are that are too large for the ledger."""
        return self._engine.blobs

    @contextlib.asynccontextmanager
    async def lifespan_context(self) -> AsyncGenerator[Mapping[str, Any]]:
        """Enter the lifespan: its resources by name. A single object that is no mapping goes by its class."""
        if self._lifespan is None:
            yield {}
            return
        async with self._lifespan() as found:
            if found is None:
                yield {}
            elif isinstance(found, Mapping):
                yield cast("Mapping[str, Any]", found)
            else:
                yield {type(found).__qualname__: found}

    # A child process asks its source for them under this name (executors.child).
    resources = lifespan_context

    def declared_subscriptions(self) -> "list[NewSubscription]":
        """What its code declares, as it is stored."""
        if not self._engine.subscribed:
            return []
        from headrace.client.subscribing import subscribed

        return subscribed(self._engine)

    def declared_schedules(self, by: str) -> "list[NewSchedule]":
        """What its code declares, as it is stored for the app that goes by this name."""
        if not self._engine.declared:
            return []
        from headrace.client.declaring import declared

        return declared(self._engine, by)

    def queue_names(self) -> Iterable[str]:
        """The queues that its tasks and its settings name."""
        return {task.options.queue for task in self._tasks.values()} | set(self._engine.queues)

    @property
    def codecs(self) -> CodecRegistry:
        return self._engine.codecs

    @property
    def engine(self) -> Engine:
        """For code beside the client (`orchestration`, servers); not for programs."""
        return self._engine

    def new_store(self) -> Store:
        """A store of its own, not opened, for a worker or a service with an event loop of its own."""
        return self._engine.new_store()

    async def _upgrade(self) -> None:
        store = self.new_store()
        try:
            await store.upgrade()
        finally:
            await store.close()

    def __repr__(self) -> str:
        return f"<App {self.name}: {len(self.registry)} tasks>"

    def _entrypoint(self, path: str) -> Entrypoint:
        entry = self._entrypoints.get(path)
        if entry is None:
            entry = self._entrypoints[path] = load_entrypoint(path, retry=self.settings.retry)
        return entry

    def _define(
        self, function: Callable[..., Any], name: str | None, aliases: Sequence[str], options: Mapping[str, Any]
    ) -> Task[..., Any]:
        if isinstance(function, Task):
            raise OptionError(f"{function!r} is a task already")  # pyright: ignore[reportUnknownArgumentType]
        if not callable(function):
            raise OptionError(f"@app.task decorates functions, not {function!r}")
        _refuse_generators(function)
        given = task_name(function, name)
        if isinstance(aliases, str):
            raise OptionError(f"task {given}: aliases takes a list of names, not the text {aliases!r}")
        if "connection" in options:
            raise OptionError(f"task {given}: connection belongs to one call: task.using(connection=…)")
        names = (given, *(checked_name(alias) for alias in aliases))
        for each in names:
            if each in self._tasks:
                raise OptionError(
                    f"task {each} is defined already, as {self._tasks[each].function!r}; "
                    "two functions need two names: @app.task(name=…)"
                )
        checked = Options().changed(given, options)
        made = Task[..., Any](self._engine, function, name=given, options=checked, aliases=names[1:])
        # The same class at run time as the type checker was told.
        made.__class__ = CoroutineTask if made.is_async else FunctionTask
        for each in names:
            self._tasks[each] = made
            self._engine.results[each] = made.result_loader
            self._engine.policies[each] = made.retry
        return made


def _refuse_generators(function: Callable[..., Any]) -> None:
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise OptionError(f"{function!r} is a generator; a task returns its result once")


def _data_url(url: str) -> str:
    """The default place for tables: a folder beside the file of the database."""
    path = sqlite_path(url) if url.startswith("sqlite") else ":memory:"
    if path == ":memory:":
        raise SettingsError(
            f"this app keeps its tasks in {masked_url(url)}, so its tables have no place by default; set data_url, or "
            "HEADRACE_DATA_URL, to a folder that every worker reaches, or to s3://…, or clickhouse://…"
        )
    return f"{path}.data"


def _full_url(url: str) -> str:
    """A relative SQLite path belongs to the working directory of now, not to the one of the first use."""
    scheme = url.partition("://")[0].partition("+")[0] if "://" in url else ""
    if scheme in ("postgresql", "postgres", "http", "https"):
        return url
    if scheme != "sqlite":
        raise SettingsError(
            f"database URL {masked_url(url)!r} is not understood; "
            "write sqlite:///headrace.db, postgresql://user@host/database, or https://host of a headrace server"
        )
    path = sqlite_path(url)
    return url if path == ":memory:" else f"sqlite:///{quote(str(Path(path).absolute()))}"
