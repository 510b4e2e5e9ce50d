"""The API and the dashboard of `headrace demo`: on a free port of this machine, without users, while it runs."""

import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

from headrace.server.listening import listen, url_of


class DemoServer:
    """A process of its own, which ends with this one however that ends."""

    def __init__(self, target: str, log: Path) -> None:
        self._target = target
        self._log = log
        # Bound here, so that the address is known before anything answers, and holds.
        self._listener = listen("127.0.0.1", 0)
        self.url = url_of(self._listener)
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        channel = f"{os.getpid()},{self._listener.fileno()},1"
        command = [sys.executable, "-m", "headrace.cli", "server", self._target, "--no-auth", "--up-channel", channel]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                pass_fds=(self._listener.fileno(),),
                start_new_session=True,  # Ctrl-C is for this process, which then ends that one
            )
        self._listener.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    @property
    def invitation(self) -> str:
        """Where to look; without the pages, what there is to see nevertheless."""
        from headrace.server.dashboard import is_built

        if is_built():
            return f"the dashboard: [link={self.url}]{self.url}[/link]"
        return f"the API: {self.url}/api/docs (make dashboard builds the pages for people)"

    def wait(self) -> None:
        """Until it ends, which it does not by itself."""
        if self._process is not None:
            self._process.wait()
