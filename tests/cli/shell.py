"""A shell for tests: commands in this process, in the folder of the test, with a module of tasks there."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from headrace.cli.failures import OK, explained
from headrace.cli.root import application
from headrace.store.base import StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import Ledger

TASKS = """
import asyncio

from headrace import App, Retry, current

app = App({url!r})


@app.task
async def double(n: int) -> int:
    return 2 * n


@app.task(retry=Retry(max_attempts=1))
async def broken() -> None:
    raise ValueError("it is broken")


@app.task(retry=Retry(max_attempts=1))
async def refuse(text: str) -> None:
    raise ValueError(text)


@app.task(retry=Retry(max_attempts=1, dead_letter=True))
async def dying(n: int = 0) -> None:
    raise LookupError(f"nothing at {{n}}")


@app.task
async def talk(gate: str) -> str:
    '''Says something, and goes on when the file is there.'''
    import pathlib

    current.log("before the gate")
    while not pathlib.Path(gate).exists():
        await asyncio.sleep(0.02)
    current.log("after the gate", level="warning")
    return "said"
"""


class Shell:
    """`shell("tasks", "list")` gives the exit code, and what was printed on stdout and stderr."""

    def __init__(self, capsys: pytest.CaptureFixture[str], folder: Path, url: str) -> None:
        self._capsys = capsys
        self.folder = folder
        self.url = url
        self.module = f"tasks_{folder.name.replace('-', '_')}"
        self.target = f"{self.module}:app"
        (folder / f"{self.module}.py").write_text(TASKS.format(url=url))

    def __call__(self, *words: str) -> tuple[int, str, str]:
        def run() -> None:
            try:
                application(list(words), standalone_mode=True)
            except SystemExit as end:
                codes.append(int(end.code or 0))

        codes: list[int] = []
        code = explained(run)
        printed = self._capsys.readouterr()
        return codes[0] if codes and code == OK else code, printed.out, printed.err

    def ledger[T](self, act: Callable[[Ledger], Awaitable[T]]) -> T:
        """Do something with the store itself."""
        return on_ledger(self.url, act)


def on_ledger[T](url: str, act: Callable[[Ledger], Awaitable[T]]) -> T:
    async def run() -> T:
        ledger = Ledger(lambda: connect(url, StoreOptions()), None)
        await ledger.open()
        try:
            return await act(ledger)
        finally:
            await ledger.close()

    return asyncio.run(run())


def environment(url: str) -> dict[str, str]:
    """Of a command in a process of its own."""
    return {**os.environ, "HEADRACE_DATABASE_URL": url, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "30"}
