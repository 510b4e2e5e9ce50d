"""What running tasks say: log lines and progress, gathered on the loop and written in batches."""

import json
from collections.abc import Callable

from headrace.core.task import Ref
from headrace.executors.context import LogLine, Progress
from headrace.executors.invocation import visible
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.telemetry.logs import redaction

_LINES = 100
_MOST_LINES = 10_000
_MOST_BYTES = 1_000_000
_LONGEST = 100_000  # of one message: it is searched for secrets on the loop


class Words(Service):
    """The channel of every attempt: logs each second or 100 lines, the last progress at most once a second.

    The ledger's log is a sink like any other: secrets are taken out before it is written.
    """

    name = "words"

    def __init__(
        self, *, store: Store, worker: Callable[[], str], holds: Callable[[Ref], bool], interval: float = 1.0
    ) -> None:
        super().__init__(Pace(interval=interval, jitter=0.0))
        self._store = store
        self._worker = worker
        self._holds = holds
        self._lines: list[tuple[Ref, int, str, str]] = []
        self._sizes: dict[Ref, tuple[int, int]] = {}  # lines and bytes of each attempt so far
        self._progress: dict[Ref, str] = {}

    def log(self, ref: Ref, line: LogLine, /) -> None:
        count, size = self._sizes.get(ref, (0, 0))
        if count >= _MOST_LINES or size > _MOST_BYTES:
            return
        rules = redaction()
        text = rules.text(_cut(str(line.message)))
        if line.fields:
            text = f"{text} {json.dumps(rules.value(line.fields), default=str)}"
        self._sizes[ref] = (count + 1, size + len(text))
        if count + 1 == _MOST_LINES or size + len(text) > _MOST_BYTES:
            text = "… the log of this attempt is full; later lines are dropped"
        # Whatever the task gave as level (a number, say) must not be what ends its worker.
        self._lines.append((ref, count, visible(str(line.level)), text))
        if len(self._lines) >= _LINES:
            self.wake()

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        self._progress[ref] = json.dumps(
            {"value": progress.value, "total": progress.total, "message": progress.message}, separators=(",", ":")
        )

    def heartbeat(self, ref: Ref, /) -> None:
        """A worker's lease covers its attempts."""

    def finished(self, ref: Ref) -> None:
        """The attempt is over: its lines go with the next flush, its progress no longer matters."""
        if self._sizes and self._sizes.pop(ref, None) is not None:
            self.wake()
        if self._progress:
            self._progress.pop(ref, None)

    async def run_once(self) -> None:
        await self.flush()
        # A thread that a task left behind may say something after the task has ended.
        self._sizes = {ref: sizes for ref, sizes in self._sizes.items() if self._holds(ref)}

    async def flush(self) -> None:
        if self._lines:
            lines, self._lines = self._lines, []
            try:
                await self._store.append_logs(lines)
            except BaseException:
                self._lines = lines + self._lines  # a line written twice is kept once
                raise
        if self._progress:
            values, self._progress = self._progress, {}
            await self._store.progress(self._worker(), list(values.items()))


def _cut(message: str) -> str:
    """Not longer than is kept. It is cut between words: half a URL does not look like one that holds a password."""
    if len(message) <= _LONGEST:
        return message
    ends = max(message.rfind(end, _LONGEST // 2, _LONGEST) for end in " \n\t,;")
    place = ends if ends > 0 else _LONGEST
    return f"{message[:place]} … {len(message) - place:,} characters left out"
