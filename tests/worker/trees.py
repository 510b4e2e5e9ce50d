"""`headrace worker` as real processes: a supervisor, its worker processes and their children."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from headrace.worker.options import WorkerOptions
from tests.support.processes import command_has
from tests.worker.application import said

ROOT = Path(__file__).parents[2]
_START = "import sys; from headrace.worker.supervisor import run; from headrace.worker.options import WorkerOptions; "
_START += "sys.exit(run('tests.worker.application:app', WorkerOptions.from_json(sys.argv[1])))"


@dataclass(slots=True)
class Tree:
    process: "subprocess.Popen[bytes]"
    side: str
    log: Path

    def workers(self) -> list[int]:
        """The worker processes that live below the supervisor."""
        below = psutil.Process(self.process.pid).children()
        return [child.pid for child in below if command_has(child, "headrace.worker.process")]

    def everyone(self) -> list[psutil.Process]:
        supervisor = psutil.Process(self.process.pid)
        return [supervisor, *supervisor.children(recursive=True)]

    def said(self, word: str) -> list[list[str]]:
        """The executions that announced themselves with this word: [word, task, attempt, pid]."""
        return said(word, self.side)

    def stop(self, number: int = signal.SIGTERM, timeout: float = 30) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout)


@contextmanager
def tree(url: str, directory: Path, options: WorkerOptions, **variables: str) -> Iterator[Tree]:
    """Whatever happens, nothing of it is left running."""
    side, log = str(directory / "said"), directory / "worker.log"
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_TEST_SIDE": side, **variables}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _START, options.to_json()],
            cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    made = Tree(process, side, log)
    known: list[psutil.Process] = []
    try:
        yield made
    finally:
        if process.poll() is None:
            known = made.everyone()
        for one in known:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        process.wait(10)
        print(log.read_text()[-4000:])
