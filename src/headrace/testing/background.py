"""A real worker beside a test, on a thread of its process.

It claims, heartbeats, rescues and finishes as any worker does. What differs: `def` tasks run in threads, not in
children, so that they see the app as the test has set it up; a thread cannot be killed, so a `def` that passes its hard
limit is given up and goes on in its thread.
"""

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from typing import Any, Self

from headrace.core.states import HELD, TaskState
from headrace.core.task import Pool, TaskFilter
from headrace.executors.base import Executor
from headrace.executors.command import CommandExecutor
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import Host
from headrace.executors.thread import ThreadExecutor
from headrace.store.base import Store
from headrace.testing.application import TestedApp
from headrace.testing.errors import StillWaiting
from headrace.testing.overriding import must_be_overridden
from headrace.worker.keeping import result_limit
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker

_GIVE_UP_SECONDS = 5.0
_POLL = 0.02


class BackgroundWorker:
    """`with BackgroundWorker(app) as worker:` works from the first line of the block on, and has drained at its end."""

    def __init__(self, app: TestedApp, *, options: WorkerOptions | None = None, start_timeout: float = 60.0) -> None:
        self.app = app
        self.start_timeout = start_timeout  # in seconds; TimeoutError when it does not work by then
        self.options = options or WorkerOptions(
            concurrency=20, children=4, threads=4, commands=2, poll=0.2, grace=30.0, lease=app.settings.lease
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._worker: Worker | None = None
        self._working: asyncio.Task[None] | None = None
        self._given_up = False
        self._started: Future[None] = Future()
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def id(self) -> str:
        assert self._worker is not None, "the worker has not been started"
        return self._worker.id

    def __enter__(self) -> Self:
        must_be_overridden(self.app, "a background worker")
        # Made here and not by the thread: by then the override may have ended.
        store = self.app.new_store()
        self._thread = threading.Thread(target=self._run, args=(store,), name="headrace-testing-worker", daemon=True)
        self._thread.start()
        try:
            self._started.result(timeout=self.start_timeout)
        except BaseException:
            self._give_up()
            raise
        return self

    def __exit__(self, *exception: Any) -> None:
        """Waits for what runs. Raises what ended the worker, if something did before."""
        assert self._thread is not None, "the worker has not been started"
        self._tell("stop")
        self._thread.join()
        if self._error is not None and exception[0] is None:
            raise self._error

    def wait_until_idle(self, timeout: float = 30.0) -> None:
        """Until nothing is ready and nothing runs; what waits for a later time stays. StillWaiting after `timeout`."""
        assert self._loop is not None, "the worker has not been started"
        future = asyncio.run_coroutine_threadsafe(self._idle(timeout), self._loop)
        future.result()

    def _tell(self, verb: str) -> None:
        if self._loop is not None and self._worker is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(getattr(self._worker, verb))

    def _give_up(self) -> None:
        """Nobody will end this block: the thread must not go on, and begin to work, beside later tests."""
        assert self._thread is not None
        self._given_up = True  # read by a thread that has no loop yet
        if self._loop is not None and self._working is not None:
            with suppress(RuntimeError):  # the loop is closed: it has ended
                self._loop.call_soon_threadsafe(self._working.cancel)
        self._thread.join(_GIVE_UP_SECONDS)  # as a rule it ends at once, still inside of the override

    def _run(self, store: Store) -> None:
        try:
            with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
                runner.run(self._work(store))
        except BaseException as error:
            self._error = error
            if not self._started.done():
                self._started.set_exception(error)

    async def _work(self, store: Store) -> None:
        self._working, self._loop = asyncio.current_task(), asyncio.get_running_loop()
        if self._given_up:
            return
        async with AsyncExitStack() as stack:
            stack.push_async_callback(store.close)
            await store.open()
            self._worker = worker = Worker(self.app, options=self.options, store=store, executors=_in_process)
            running = asyncio.create_task(worker.run())
            started = asyncio.create_task(worker.started())
            try:
                await asyncio.wait({running, started}, return_when=asyncio.FIRST_COMPLETED)
                if started.done():
                    self._started.set_result(None)
                await running
            finally:
                started.cancel()
                running.cancel()  # where it was given up; else it has ended
                await asyncio.wait({running})

    async def _idle(self, timeout: float) -> None:
        store = self.app.new_store()
        await store.open()
        try:
            async with asyncio.timeout(timeout):
                # Twice in a row: between two looks a task may be on its way from one state to the next.
                quiet = 0
                while quiet < 2:
                    await asyncio.sleep(_POLL)
                    quiet = quiet + 1 if not await _busy(store) else 0
        except TimeoutError:
            raise StillWaiting(f"after {timeout:g} s: {await _busy(store)}") from None
        finally:
            await store.close()


async def _busy(store: Store) -> str | None:
    """What is ready or held; None when nothing is."""
    states = (TaskState.PENDING, *HELD)
    now = await store.now()
    for record in await store.list(TaskFilter(states=states, limit=1000)):
        if record.state.held or (record.eligible_at <= now and record.waiting_on is None):
            return f"task {record.id} ({record.name}) is {record.state}"
    return None


def _in_process(worker: Worker, resources: Mapping[str, Any]) -> Mapping[Pool, Executor]:
    options, slots = worker.options, worker.slots
    assert slots is not None
    assert worker.words is not None
    host = Host(
        channel=worker.words,
        resources=resources,
        worker=worker.id,
        source=worker.app,
        result_limit=result_limit(worker.app),
    )
    return {
        "coroutine": CoroutineExecutor(concurrency=options.concurrency, slots=slots, host=host),
        "child": ThreadExecutor(threads=options.children, slots=slots, host=host, supervised=False),
        "thread": ThreadExecutor(threads=options.threads, slots=slots, host=host, supervised=False),
        "command": CommandExecutor(concurrency=options.commands, slots=slots, host=host),
    }
