"""Task functions of a module, to be registered with an app on any database.

The test makes an app on its own database with `on(url)`; the worker's processes import the module's `app`, whose
database comes from the environment.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace import App, current

SIDE = "HEADRACE_TEST_SIDE"


class Declared:
    def __init__(self) -> None:
        self._tasks: list[tuple[Callable[..., Any], dict[str, Any]]] = []

    def task[F: Callable[..., Any]](self, **options: Any) -> Callable[[F], F]:
        def register(function: F) -> F:
            self._tasks.append((function, options))
            return function

        return register

    def on(self, url: str | None = None) -> "Tasks":
        app = App(url) if url else App()
        made = {f.__name__: app.task(name=f.__name__, **options)(f) for f, options in self._tasks}
        return Tasks(app, made)


class Tasks:
    """`tasks.spin` is the task made of the function `spin`."""

    def __init__(self, app: App, tasks: dict[str, Any]) -> None:
        self.app = app
        self._tasks = tasks

    def __getattr__(self, name: str) -> Any:
        return self._tasks[name]


def side() -> Path:
    return Path(os.environ[SIDE])


def note(word: str, *more: object) -> None:
    """One line in the file `notes`: word, task, attempt, claim, pid, instant, then `more`. Whole even after kill -9."""
    words = [word, current.task_id, current.attempt, current.claim_no, os.getpid(), f"{time.monotonic():.6f}", *more]
    descriptor = os.open(side() / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        os.write(descriptor, (" ".join(map(str, words)) + "\n").encode())
    finally:
        os.close(descriptor)


class Note:
    """A line of `notes`."""

    def __init__(self, line: str) -> None:
        words = line.split(" ")
        self.word = words[0]
        self.task, self.attempt, self.claim_no, self.pid = (int(word) for word in words[1:5])
        self.at = float(words[5])
        self.more = words[6:]

    def __repr__(self) -> str:
        return f"<{self.word} task {self.task} attempt {self.attempt} at {self.at:.3f} {self.more}>"


def notes(folder: Path, word: str | None = None) -> list[Note]:
    path = folder / "notes"
    if not path.exists():
        return []
    found = [Note(line) for line in path.read_text().splitlines()]
    return [each for each in found if word is None or each.word == word]


def opened(gate: str) -> bool:
    return (side() / f"gate-{gate}").exists()
