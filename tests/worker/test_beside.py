"""A program that runs for as long as a supervisor does."""

import asyncio
import signal
import sys
from pathlib import Path

from headrace.worker.beside import Beside

# It writes down each signal, and ends when a file says so.
PROGRAM = """
import pathlib, signal, sys, time
heard, end = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
def hear(number, frame):
    with heard.open("a") as file:
        file.write(f"{number}\\n")
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, hear)
heard.touch()
while not end.exists():
    time.sleep(0.01)
"""


async def until_said(heard: Path, text: str) -> None:
    async with asyncio.timeout(60):
        while not heard.exists() or heard.read_text() != text:  # noqa: ASYNC110, ASYNC240
            await asyncio.sleep(0.01)


async def test_it_is_told_to_stop_once_and_to_stop_now_by_whoever_insists(tmp_path: Path) -> None:
    heard, end = tmp_path / "heard", tmp_path / "end"
    beside = Beside("the program", [sys.executable, "-c", PROGRAM, str(heard), str(end)])
    asked = f"{signal.SIGTERM.value}\n"
    async with beside.running(lambda: None):
        await until_said(heard, "")
        beside.stop()
        await until_said(heard, asked)
        beside.stop()
        beside.stop_now()
        await until_said(heard, f"{asked}{signal.SIGINT.value}\n")
        end.touch()
    assert not beside.failed


async def test_leaving_does_not_disturb_what_was_told_before(tmp_path: Path) -> None:
    heard, end = tmp_path / "heard", tmp_path / "end"
    beside = Beside("the program", [sys.executable, "-c", PROGRAM, str(heard), str(end)])
    asked = f"{signal.SIGTERM.value}\n"

    async def end_soon() -> None:
        await asyncio.sleep(0.5)
        end.touch()

    async with beside.running(lambda: None):
        await until_said(heard, "")
        beside.stop()
        await until_said(heard, asked)
        ending = asyncio.create_task(end_soon())
    await ending
    assert heard.read_text() == asked
    assert not beside.failed
