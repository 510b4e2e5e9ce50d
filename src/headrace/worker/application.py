"""What a worker needs of an app, and how it is found from `module:name`. The App itself lies above this layer."""

import contextlib
import importlib
import logging
import os
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypedDict, cast

from headrace.core.errors import HeadraceError, SettingsError, StoreUnavailable
from headrace.core.payload import CodecRegistry
from headrace.executors.base import Source
from headrace.store.base import Store
from headrace.store.blobs.base import Blobs
from headrace.store.moved import moved_to
from headrace.telemetry.tracing import Tracing
from headrace.worker.options import WorkerOptions

logger = logging.getLogger("headrace.worker")


class Unstartable(HeadraceError):
    """User code that has to run before any task raised: the import of the app, its lifespan, its children."""


class Application(Source, Protocol):
    """The public App as a worker sees it."""

    def lifespan_context(self) -> AbstractAsyncContextManager[Mapping[str, Any]]:
        """Opens what `@app.lifespan` yields, once per process."""
        ...

    def new_store(self) -> Store:
        """A store of its own for the worker's event loop, not opened."""
        ...

    def queue_names(self) -> Iterable[str]:
        """The queues that its tasks name."""
        ...


class _Sample(TypedDict):
    n: int


def warm(app: Application) -> None:
    """Import what validates arguments, for apps whose tasks run in this process: it takes a third of a second, which
    the first task would wait for with everything that was claimed beside it. By a type of our own: what belongs to a
    task's annotations is user code, and is run when the task is.
    """
    registry: Mapping[str, Any] = getattr(app, "registry", {})
    if any(task.pool in ("coroutine", "thread") for task in registry.values()):
        from pydantic import TypeAdapter

        TypeAdapter(_Sample)


def warn_of_unserved(app: Application, options: WorkerOptions) -> None:
    """Say which tasks of the app would wait here for ever: those that ask for a thread where there is none."""
    registry: Mapping[str, Any] = getattr(app, "registry", {})
    if options.threads:
        return
    unserved = sorted(
        name
        for name, task in registry.items()
        if task.pool == "thread" and (options.queues is None or task.options.queue in options.queues)
    )
    if unserved:
        logger.warning(
            "%s: executor='thread', and this worker has no threads, so these wait for another worker; "
            "start with --threads N",
            ", ".join(unserved),
        )


async def warn_of_a_move(store: Store) -> None:
    """A ledger that has moved gives no work, and says so nowhere else. Only a hint: an outage is met elsewhere."""
    with contextlib.suppress(StoreUnavailable):
        if (place := await moved_to(store)) is not None:
            logger.warning(
                "this ledger has moved to %s: nothing is claimed here; start the worker with that URL, and run "
                "headrace db move again for what still lands here",
                place,
            )


def has_child_tasks(app: Application) -> bool:
    """Whether a task of the app runs in a child, as far as the app says what it has."""
    registry: Mapping[str, Any] | None = getattr(app, "registry", None)
    return registry is None or any(task.pool == "child" for task in registry.values())


def tracing_of(app: Application) -> Tracing | None:
    """What makes the app's spans, where it asked for them."""
    return getattr(app, "tracing", None)


class Listening(Protocol):
    """The breakers of an app in this process (client.circuits.Sharing)."""

    @property
    def in_use(self) -> bool: ...

    def look(self) -> Future[None]: ...


def sharing_of(app: Application) -> Listening | None:
    """What its breakers hear of those of other processes, where the app has any."""
    return getattr(app, "sharing", None)


def blobs_of(app: Application) -> Blobs | None:
    """Where the app keeps results that are too large for its ledger, if anywhere."""
    return getattr(app, "blobs", None)


def inline_of(app: Application) -> int:
    """Bytes of a result that stays in the ledger where there is such a place."""
    return getattr(getattr(app, "settings", None), "result_inline", 65_536)


def codecs_of(app: Application) -> CodecRegistry:
    return getattr(app, "codecs", None) or CodecRegistry()


def load(target: str) -> Application:
    """The app at `module:name` (or `module`, with an app called `app`); the working directory is importable."""
    module_name, _, attribute = target.partition(":")
    directory = os.getcwd()
    if directory not in sys.path:
        sys.path.insert(0, directory)
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name and not module_name.startswith(f"{error.name}."):
            raise
        raise SettingsError(
            f"there is no module {module_name!r} for {target!r} below {directory}; write module:app, as in tasks:app"
        ) from error
    for part in (attribute or "app").split("."):
        found = getattr(found, part, None)
    if found is None or not hasattr(found, "resolve"):
        raise SettingsError(f"{target!r} is not an App; write module:app, where app = App(...) in that module")
    return cast("Application", found)
