"""The loop behind the screen: look, draw, wait for a key, a new size or the next look."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Generator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from headrace.cli.board.snapshot import Rates, Snapshot, look
from headrace.cli.board.view import Board
from headrace.core.errors import HeadraceError
from headrace.store.base import Store

_PATIENCE = 5.0  # seconds after which a store that does not answer is shown as away


async def once(store: Store, place: str, *, over: float) -> tuple[Snapshot, Board]:
    """Two looks, so that there is a rate."""
    rates = Rates()
    rates.note(await look(store))
    await asyncio.sleep(over)
    snapshot = await look(store)
    return snapshot, Board(place=place, snapshot=snapshot, rates=rates.note(snapshot), keys=False)


async def watch(store: Store, place: str, *, interval: float) -> None:
    """Until `q`. What goes wrong with the store is shown, and tried again at the next look."""
    rates = Rates()
    board = Board(place=place, snapshot=None, rates={})
    woken = asyncio.Event()  # a key was pressed, or the terminal has another size
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGWINCH, woken.set)
    try:
        with _keys(woken) as pressed, Live(board, console=Console(), screen=True, auto_refresh=False) as live:
            while True:
                board = await _looked(store, board, rates)
                due = loop.time() + interval
                while loop.time() < due:
                    live.update(board, refresh=True)
                    await _wait(woken, due - loop.time())
                    if {"q", "Q"} & pressed:
                        return
    finally:
        loop.remove_signal_handler(signal.SIGWINCH)


async def _looked(store: Store, before: Board, rates: Rates) -> Board:
    try:
        async with asyncio.timeout(_PATIENCE):
            snapshot = await look(store)
    except TimeoutError:
        outage = f"trying again: the store has not answered for {_PATIENCE:g} s"
        return Board(place=before.place, snapshot=before.snapshot, rates=before.rates, outage=outage)
    except (HeadraceError, OSError) as error:
        outage = f"trying again: {error}"
        return Board(place=before.place, snapshot=before.snapshot, rates=before.rates, outage=outage)
    return Board(place=before.place, snapshot=snapshot, rates=rates.note(snapshot))


async def _wait(woken: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            await woken.wait()
    except TimeoutError:
        return
    woken.clear()


@contextmanager
def _keys(woken: asyncio.Event) -> Generator[set[str]]:
    """Keys as they are pressed, without Enter and unseen; the terminal is given back as it was."""
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    pressed: set[str] = set()
    loop = asyncio.get_running_loop()

    def read() -> None:
        typed = os.read(descriptor, 1024)
        pressed.update(typed.decode(errors="ignore") if typed else "q")  # the terminal is gone
        woken.set()

    tty.setcbreak(descriptor)
    loop.add_reader(descriptor, read)
    try:
        yield pressed
    finally:
        loop.remove_reader(descriptor)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
