"""One worker process as its supervisor sees it."""

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from headrace.worker.process import ProcessConfig

_STOPPED = ("T", "t")


@dataclass(slots=True, kw_only=True)
class WorkerProcess:
    """A started process. `leased` while the supervisor renews its lease; `spared` when we end it ourselves, so that
    what it ran is not to blame.
    """

    index: int
    id: str
    process: asyncio.subprocess.Process
    leased: bool = False
    spared: bool = False
    started: float = field(default_factory=time.monotonic)
    stopped_since: float | None = None
    last_busy: float = 0.0
    stall_released: float = 0.0

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.returncode is None

    def signal(self, number: int) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(number)

    def kill(self, *, spared: bool) -> None:
        self.spared = self.spared or spared
        self.signal(signal.SIGKILL)

    def is_stopped(self) -> bool:
        """Whether the kernel says that the process is stopped (SIGSTOP, a debugger)."""
        return process_state(self.pid) in _STOPPED

    async def go(self) -> None:
        """Its row exists and its lease is renewed: it may work."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"go {self.id}\n".encode())
        await self.process.stdin.drain()


def process_state(pid: int) -> str | None:
    """The letter of /proc/<pid>/stat; None where there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return None


async def start_process(config: ProcessConfig) -> WorkerProcess:
    """Start the interpreter that runs this one, in a session of its own: a Ctrl-C is for the supervisor alone."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "headrace.worker.process",
        config.to_json(),
        stdin=asyncio.subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    identity = f"{socket.gethostname()}:{process.pid}:{time.time_ns() // 1000}"
    return WorkerProcess(index=config.index, id=identity, process=process)
