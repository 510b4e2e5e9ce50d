"""The screen of `headrace demo`: what happened so far, line by line, and below it the ledger as it is right now."""

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

type Counts = Mapping[str, int]

_FRAMES = 8  # a second
_LOOK_EVERY = 0.25  # the counts are a query of the ledger that the demo is busy with
_SHOWN = {"pending": "yellow", "running": "cyan", "completed": "green", "failed": "red"}


class Screen(Protocol):
    def say(self, text: str) -> None:
        """Something happened: one line, in Rich's markup."""
        ...

    def wait_for(self, what: str) -> None:
        """What the demo is waiting for now."""
        ...


class Silent:
    """For `--json`, which prints one thing at the end."""

    def say(self, text: str) -> None:
        pass

    def wait_for(self, what: str) -> None:
        pass


class Lines:
    """Not a terminal: the lines alone."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, text: str) -> None:
        self._console.print(text)

    def wait_for(self, what: str) -> None:
        pass


class LiveScreen:
    """A terminal. `look` is asked from the thread that draws, also while the demo waits."""

    def __init__(self, console: Console, look: Callable[[], Counts]) -> None:
        self._look = look
        self._counts: Counts = {}
        self._seen = 0.0
        self._began = time.monotonic()
        self._spinner = Spinner("dots", "")
        self._live = Live(
            console=console,
            get_renderable=self._draw,
            refresh_per_second=_FRAMES,
            transient=True,
            redirect_stderr=False,
        )

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def say(self, text: str) -> None:
        self._live.console.print(text)

    def wait_for(self, what: str) -> None:
        self._spinner.update(text=Text(what))

    def _draw(self) -> Group:
        now = time.monotonic()
        if now - self._seen >= _LOOK_EVERY:
            self._counts, self._seen = self._look(), now
        table = Table.grid(padding=(0, 2))
        table.add_row(
            *(f"[{color}]{state}[/] {self._counts.get(state, 0)}" for state, color in _SHOWN.items()),
            f"[dim]{now - self._began:.0f} s[/]",
        )
        return Group(Text(""), table, self._spinner)
