"""What running tasks say: log lines, values of streams and progress, gathered on the loop and written in batches."""

import asyncio
import json
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from headrace.core.errors import StoreError
from headrace.core.live import VALUES
from headrace.core.task import Ref
from headrace.executors.context import LogLine, Progress
from headrace.executors.invocation import visible
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.store.watching import task_topic
from headrace.telemetry.logs import redaction

_LINES = 100
_AT_ONCE = 2000  # lines in one statement
_MOST_LINES = 10_000
_MOST_BYTES = 1_000_000
_LONGEST = 100_000  # of one message: it is searched for secrets on the loop
_SOON = 0.050  # seconds until somebody who follows a stream has its next values
_PATIENCE = 5.0  # seconds that an outcome waits for its last words
_KEPT_BYTES = 64_000_000  # that wait for a store which does not take them; what is said beyond that is lost

_logger = logging.getLogger("headrace.worker")

type Line = tuple[Ref, int, str, str]


class _Said:
    """What one attempt has said so far."""

    __slots__ = ("bytes", "lines", "written")

    def __init__(self) -> None:
        self.lines = 0  # of its log
        self.bytes = 0
        self.written = 0  # lines and values: the number that the next one has


class Words(Service):
    """The channel of every attempt: logs each second or 100 lines, streams within a moment, the last progress at most
    once a second, and all of it before the outcome of the attempt.

    The ledger's log is a sink like any other: secrets are taken out before it is written. Values of a stream are data,
    and stay as they are. A write that fails ends no task: what was said is kept, within bounds, and tried again.
    """

    name = "words"

    def __init__(
        self, *, store: Store, worker: Callable[[], str], holds: Callable[[Ref], bool], interval: float = 1.0
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._store = store
        self._worker = worker
        self._holds = holds
        self._lines: list[Line] = []
        self._bytes = 0  # of those lines
        self._owing: dict[Ref, int] = {}  # whose lines they are, and how many bytes of each
        self._writing: dict[Ref, int] = {}  # the same of those that are on their way
        self._said: dict[Ref, _Said] = {}
        self._progress: dict[Ref, str] = {}
        self._one_at_a_time = asyncio.Lock()
        self._soon_after: asyncio.TimerHandle | None = None
        self._announcing: set[asyncio.Task[None]] = set()
        self._failing = False
        self._lost = 0

    # --- the channel ------------------------------------------------------------------------------------------------

    def log(self, ref: Ref, line: LogLine, /) -> None:
        said = self._of(ref)
        if said.lines >= _MOST_LINES or said.bytes > _MOST_BYTES:
            return
        rules = redaction()
        text = rules.text(_cut(str(line.message)))
        if line.fields:
            text = f"{text} {json.dumps(rules.value(line.fields), default=str)}"
        said.lines += 1
        said.bytes += len(text)
        if said.lines == _MOST_LINES or said.bytes > _MOST_BYTES:
            text = "… the log of this attempt is full; later lines are dropped"
        # Whatever the task gave as level (a number, say) must not be what ends its worker.
        self._keep(ref, said, visible(str(line.level)), text)

    def stream(self, ref: Ref, value: str, /) -> None:
        if self._failing and self._owing.get(ref, 0) + self._writing.get(ref, 0) + len(value) > _MOST_BYTES:
            self._lost += 1  # one that goes on and on leaves the others room
            return
        self._keep(ref, self._of(ref), VALUES, value)
        if self._soon_after is None and not self._failing:
            # Where no loop runs, as in a test that blocks, it is written with the end of the attempt.
            with suppress(RuntimeError):
                self._soon_after = asyncio.get_running_loop().call_later(_SOON, self.wake)

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        self._progress[ref] = json.dumps(
            {"value": progress.value, "total": progress.total, "message": progress.message}, separators=(",", ":")
        )

    def heartbeat(self, ref: Ref, /) -> None:
        """A worker's lease covers its attempts."""

    def _of(self, ref: Ref) -> _Said:
        said = self._said.get(ref)
        if said is None:
            said = self._said[ref] = _Said()
        return said

    def _keep(self, ref: Ref, said: _Said, stream: str, text: str) -> None:
        if self._bytes > _KEPT_BYTES:
            self._lost += 1
            return
        self._lines.append((ref, said.written, stream, text))
        self._bytes += len(text)
        self._owing[ref] = self._owing.get(ref, 0) + len(text)
        said.written += 1
        if len(self._lines) >= _LINES and not self._failing:
            self.wake()

    # --- the end of an attempt --------------------------------------------------------------------------------------

    def finished(self, ref: Ref, /) -> bool:
        """The attempt is over: whether it has said anything. Its progress no longer matters."""
        if self._progress:
            self._progress.pop(ref, None)
        # Its count stays for as long as the attempt is held: what is interrupted may say something on its way out.
        return ref in self._said

    def owes(self, ref: Ref, /) -> bool:
        """Whether something that it said is not in the ledger."""
        return ref in self._owing or ref in self._writing

    async def written(self, ref: Ref, /) -> None:
        """Returns when what it said is in the ledger, or one more try has failed. Not for ever: a task must not wait
        for its log.
        """
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._write(for_=ref)
        except TimeoutError:
            _logger.warning("the last lines of task %s are not written yet; its outcome does not wait", ref.id)

    def landed(self, refs: Collection[Ref], /) -> None:
        """Whoever follows them need not find their end by its next look."""
        if refs:
            task = asyncio.create_task(self._announce([task_topic(ref.id) for ref in refs]), name="headrace.announce")
            self._announcing.add(task)
            task.add_done_callback(self._announcing.discard)

    async def _announce(self, topics: Sequence[str]) -> None:
        try:
            await self._store.announce(topics)
        except Exception:  # a hint, and no more
            _logger.debug("who follows %s could not be told", topics, exc_info=True)

    # --- writing ----------------------------------------------------------------------------------------------------

    async def run_once(self) -> float | None:
        await self.flush()
        # Whoever has ended; also a thread that a task left behind may say something after that.
        self._said = {ref: said for ref, said in self._said.items() if self._holds(ref)}
        return self.pace.longest if self._failing else None

    async def flush(self) -> None:
        await self._write()
        if self._progress:
            values, self._progress = self._progress, {}
            await self._store.progress(self._worker(), list(values.items()))

    async def _write(self, *, for_: Ref | None = None) -> None:
        """Everything that was said, in order. Those who come meanwhile find that the one before wrote theirs, too."""
        async with self._one_at_a_time:
            if self._soon_after is not None:
                self._soon_after.cancel()
                self._soon_after = None
            if not self._lines or (for_ is not None and for_ not in self._owing):
                return
            lines, self._lines = self._lines, []
            self._bytes = 0
            # Owed until they are in: an outcome that comes meanwhile waits for them, too.
            self._owing, self._writing = {}, self._owing
            done = 0
            try:
                while done < len(lines):
                    await self._append(lines[done : done + _AT_ONCE])
                    done += _AT_ONCE
            except BaseException as error:
                self._take_back(lines[done:])
                if not isinstance(error, StoreError):
                    raise
                if not self._failing:
                    _logger.warning("log lines of tasks cannot be written: %s; they are kept and tried again", error)
                self._failing = True
                return
            finally:
                self._writing = {}
            if self._failing:
                lost = f"; {self._lost} of them did not fit into memory" if self._lost else ""
                _logger.warning("log lines of tasks are written again%s", lost)
                self._failing, self._lost = False, 0

    def _take_back(self, lines: list[Line]) -> None:
        self._lines = lines + self._lines  # a line written twice is kept once
        self._bytes = sum(len(text) for _, _, _, text in self._lines)
        for ref, _, _, text in lines:
            self._owing[ref] = self._owing.get(ref, 0) + len(text)

    async def _append(self, lines: Sequence[Line]) -> None:
        """What the database refuses is left out, and takes no other line with it."""
        try:
            await self._store.append_logs(lines)
        except StoreError:
            raise
        except Exception as error:
            if len(lines) == 1:
                _logger.warning("a log line of task %s cannot be stored and is lost: %s", lines[0][0].id, error)
                return
            middle = len(lines) // 2
            await self._append(lines[:middle])
            await self._append(lines[middle:])


def _cut(message: str) -> str:
    """Not longer than is kept. It is cut between words: half a URL does not look like one that holds a password."""
    if len(message) <= _LONGEST:
        return message
    ends = max(message.rfind(end, _LONGEST // 2, _LONGEST) for end in " \n\t,;")
    place = ends if ends > 0 else _LONGEST
    return f"{message[:place]} … {len(message) - place:,} characters left out"
