"""Another program that runs for as long as a supervisor does, in a process of its own: `headrace up` serves the API so.

Both stop together: it is told to when the supervisor is, and when it ends by itself the supervisor stops, too.
"""

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence

_KILL_AFTER = 15.0
log = logging.getLogger("headrace.worker")


class Beside:
    def __init__(self, name: str, words: Sequence[str], *, descriptors: Sequence[int] = ()) -> None:
        self.name = name
        self._words = words
        self._descriptors = descriptors
        self._process: asyncio.subprocess.Process | None = None
        self._told = False
        self._asked = False  # a second signal would cut off what it still answers
        self.failed = False  # it ended although nobody had told it to

    @contextlib.asynccontextmanager
    async def running(self, ended: Callable[[], None]) -> AsyncGenerator[None]:
        """`ended` is called when it ends by itself. It has the descriptors from here on, and nobody else.

        A group of its own: Ctrl-C is for the supervisor, which tells it.
        """
        process = self._process = await asyncio.create_subprocess_exec(
            *self._words, stdin=asyncio.subprocess.DEVNULL, pass_fds=self._descriptors, process_group=0
        )
        for descriptor in self._descriptors:
            os.close(descriptor)
        watching = asyncio.create_task(self._watch(process, ended), name=f"headrace.{self.name}")
        if self._told:  # while it was being started
            self.stop()
        try:
            yield
        finally:
            self.stop()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.shield(watching), _KILL_AFTER)
            if process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
            await watching

    def stop(self) -> None:
        """It answers what it was asked, and ends. Told again, it is not disturbed in that."""
        self._told = True
        if self._process is not None and not self._asked:
            self._asked = True
            self._signal(signal.SIGTERM)

    def stop_now(self) -> None:
        """Somebody insists. Another signal than the first, because the kernel folds equal ones that are pending."""
        self.stop()
        self._signal(signal.SIGINT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(number)

    async def _watch(self, process: asyncio.subprocess.Process, ended: Callable[[], None]) -> None:
        code = await process.wait()
        if not self._told:
            self.failed = True
            log.error("%s has ended by itself (exit %s), and so everything stops", self.name, code)
            ended()
