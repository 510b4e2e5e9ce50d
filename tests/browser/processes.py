"""`headrace server` and `headrace worker` as they are typed, on an address that stays the same after a kill."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

import httpx

from tests.support.waiting import wait_until

CEILING = 90.0


def free_port() -> int:
    with socket.socket() as asked:
        asked.bind(("127.0.0.1", 0))
        return asked.getsockname()[1]


class Command:
    """One command of headrace, in the folder of its tasks. What it says is in a file beside them."""

    def __init__(self, folder: Path, *words: str, **variables: str) -> None:
        self.name = words[0]
        self._folder = folder
        self._words = words
        self._variables = variables
        self.log = folder / f"{words[0]}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        assert self.process is None, f"{self.name} runs already"
        # Settings of whoever runs the tests are not those of the shop.
        outside = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_")}
        with self.log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headrace.cli", *self._words],
                cwd=self._folder, env={**outside, **self._variables}, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
        return self

    def kill(self) -> None:
        """Without a word, as a machine that goes dark."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(CEILING)
        self.process = None

    def freeze(self) -> None:
        """It does nothing until it is thawed, and does not notice. Every thread of it stands still after this."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def thaw(self) -> None:
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGCONT)

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.terminate()
        try:
            self.process.wait(CEILING)
        except subprocess.TimeoutExpired:
            self.kill()
        self.process = None

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def check(self) -> None:
        """AssertionError with its last words when it has ended by itself."""
        assert self.process is not None, f"{self.name} was not started"
        assert self.process.poll() is None, f"{self.name} has ended:\n{self.said[-4000:]}"


class Server(Command):
    def __init__(self, folder: Path, *, auth: bool = True, **variables: str) -> None:
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        options = () if auth else ("--no-auth",)
        super().__init__(folder, "server", "shop:app", "--port", str(self.port), *options, **variables)

    def start(self) -> Self:
        super().start()
        wait_until(self._answers, CEILING, message="the server answers")
        return self

    def _answers(self) -> bool:
        self.check()
        try:
            return httpx.get(f"{self.address}/ready", timeout=5).status_code == 200
        except httpx.TransportError:
            return False
