"""Late start: `running` is written for what still runs after a moment, and beforehand where it must be known.

Beforehand means: for suspects (a process that dies on one must find it charged), for commands (another worker may adopt
them), and for whatever waited in the buffer long enough that it may have been given back meanwhile.
"""

import asyncio
import time
from collections.abc import Callable, Sequence

from headrace.core.errors import StoreUnavailable
from headrace.core.task import Ref
from headrace.runtime.faults import reached
from headrace.runtime.service import Pace, Service
from headrace.store.base import Started, Store
from headrace.worker.holding import Held, Holding, Stage

_BATCH = 500


class Starter(Service):
    """Writes the starts of tasks that run on; what the ledger refuses is no longer ours."""

    name = "starter"

    def __init__(
        self,
        *,
        store: Store,
        worker: Callable[[], str],
        holding: Holding,
        late: float,
        verify_after: float,
        answered: Callable[[Held, Started], None],
        executor_of: Callable[[Held], str],
        inside: Callable[[Held], bool],
    ) -> None:
        super().__init__(Pace(interval=late / 2, jitter=0.0))
        self._store = store
        self._worker = worker
        self._holding = holding
        self._late = late
        self._verify_after = verify_after
        self._answered = answered
        self._executor_of = executor_of
        self._inside = inside
        self._one_suspect = asyncio.Lock()
        self.suspect_since = 0.0  # when the lock was last taken
        self._line: list[tuple[Held, asyncio.Future[Started]]] = []  # to be written before they begin
        self._writing: asyncio.Task[None] | None = None

    async def run_once(self) -> None:
        late = time.monotonic() - self._late
        due = [
            held
            for held in self._holding.at(Stage.RUNNING)
            if not held.start_written and held.entered is not None and held.entered <= late and self._inside(held)
        ]
        by_executor: dict[str, list[Held]] = {}
        for held in due[:_BATCH]:
            by_executor.setdefault(self._executor_of(held), []).append(held)
        for executor, group in by_executor.items():
            answers = await self._write([held.ref for held in group], executor)
            for held in group:
                held.start_written = True
                self._answered(held, answers.get(held.ref, Started.REFUSED))

    @property
    def suspect_lock(self) -> asyncio.Lock:
        """A process runs one suspect at a time: when it dies, the guilty one is known."""
        return self._one_suspect

    @property
    def suspect_for(self) -> float:
        """For how many seconds the suspect that runs now has been running."""
        return time.monotonic() - self.suspect_since if self._one_suspect.locked() else 0.0

    def needed_before(self, held: Held, now: float) -> bool:
        return held.suspect or held.claim.kind != "function" or now - held.since > self._verify_after

    async def before(self, held: Held) -> Started:
        """Write the start of one task before its code is entered; waits out an unreachable store.

        Those that are asked for while others are being written are written together. On a machine that is short of time
        the whole buffer grows old at once: a commit for each of a hundred tasks would make it older still.
        """
        written: asyncio.Future[Started] = asyncio.get_running_loop().create_future()
        self._line.append((held, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_line(), name="headrace.starts")
        return await written

    async def _write_line(self) -> None:
        try:
            while self._line:
                taken, self._line = self._line[:_BATCH], self._line[_BATCH:]
                by_executor: dict[str, list[tuple[Held, asyncio.Future[Started]]]] = {}
                for held, written in taken:
                    if not written.done():  # nobody wants to know any more
                        by_executor.setdefault(self._executor_of(held), []).append((held, written))
                for executor, group in by_executor.items():
                    await self._write_group(executor, group)
        finally:
            self._writing = None

    async def _write_group(self, executor: str, group: Sequence[tuple[Held, asyncio.Future[Started]]]) -> None:
        pause = 0.05
        while not all(written.done() for _, written in group):
            try:
                answers = await self._write([held.ref for held, _ in group], executor)
            except StoreUnavailable:
                await asyncio.sleep(pause)
                pause = min(5.0, pause * 2)
                continue
            except Exception as error:
                for _, written in group:
                    if not written.done():
                        written.set_exception(error)
                return
            for held, written in group:
                held.start_written = True
                if not written.done():
                    written.set_result(answers.get(held.ref, Started.REFUSED))

    async def _write(self, refs: Sequence[Ref], executor: str) -> dict[Ref, Started]:
        reached("start.before_commit")
        answers = await self._store.start(self._worker(), refs, executor=executor)
        reached("start.after_commit")
        return answers
