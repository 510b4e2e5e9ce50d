"""One worker process as its supervisor sees it."""

import asyncio
import contextlib
import signal
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

from headrace.worker.process import ProcessConfig
from headrace.worker.spawning import Spawned

_STOPPED = ("T", "t")


@dataclass(slots=True, kw_only=True, eq=False)
class WorkerProcess:
    """A started process. `leased` while the supervisor renews its lease; `spared` when we end it ourselves, so that
    what it ran is not to blame.
    """

    index: int
    id: str
    process: Spawned
    leased: bool = False
    spared: bool = False
    started: float = field(default_factory=time.monotonic)
    stopped_since: float | None = None
    last_busy: float = 0.0
    stall_released: float = 0.0
    outgrown: asyncio.Event = field(default_factory=asyncio.Event)  # another is to take its place
    replaced: bool = False  # another has; it ends when its tasks have ended

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def signal(self, number: int) -> None:
        if self.alive:
            self.process.signal(number)

    def kill(self, *, spared: bool) -> None:
        self.spared = self.spared or spared
        self.signal(signal.SIGKILL)

    def is_stopped(self) -> bool:
        """Whether the kernel says that the process is stopped (SIGSTOP, a debugger)."""
        return process_state(self.pid) in _STOPPED

    def order(self, word: str) -> None:
        """Say a word to one that listens; the end of one that is gone is seen by whoever waits for it."""
        with contextlib.suppress(OSError):
            self.process.tell(word)

    def go(self) -> None:
        """Its row exists and its lease is renewed: it may work."""
        self.process.tell(f"go {self.id}")


def process_state(pid: int) -> str | None:
    """The letter of /proc/<pid>/stat; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


def start_process(config: ProcessConfig, spawned: Spawned | None = None) -> WorkerProcess:
    """A process that knows its part and waits for `go`; `spawned` if one has been started for it already."""
    process = spawned or Spawned()
    with contextlib.suppress(OSError):  # it died already; its end is seen by whoever waits for it
        process.tell(config.to_json())
    identity = f"{socket.gethostname()}:{process.pid}:{time.time_ns() // 1000}"
    return WorkerProcess(index=config.index, id=identity, process=process)
