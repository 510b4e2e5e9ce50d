"""Tasks that call a service, in the worker's own process and in its children."""

import os
from pathlib import Path

from headrace import App
from headrace.core.breaker import BreakerPolicy

app = App()
POLICY = BreakerPolicy(volume_threshold=2, timeout=1.0)
LASTING = BreakerPolicy(volume_threshold=2, timeout=600)


def _note(what: str) -> None:
    with Path(os.environ["BREAKER_CALLS"]).open("a") as file:
        file.write(f"{what} {os.getpid()}\n")


@app.task
def send(what: str) -> str:
    """In a child."""
    with app.breaker("mail", POLICY).call():
        _note(what)
        return what


@app.task
@app.breaker("mail", POLICY)
async def send_here(what: str) -> str:
    """On the worker's loop."""
    _note(what)
    return what


@app.task
def fails(what: str) -> None:
    with app.breaker("bank", LASTING).call():
        _note(what)
        raise ConnectionError("the bank is closed")


@app.task
async def pays(what: str) -> str:
    async with app.breaker("bank", LASTING).call():
        _note(what)
        return what
