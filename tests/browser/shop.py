"""The tasks of a small shop, which the worker of these tests runs. The file is copied beside the ledger."""

import asyncio
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Literal

from headrace import App, Queue, Retry, current

_LATER = Retry(max_attempts=5, backoff="fixed", base=timedelta(hours=6))
_ONCE = Retry(max_attempts=1, dead_letter=True)
_TWICE = Retry(max_attempts=2, backoff="fixed", base=0)


QUEUES = ("mail", "orders", "imports", "parked")


class CardDeclined(Exception):
    """The bank says no."""


def make_app(url: str | None = None) -> App:
    app = App(url, queues={name: Queue() for name in QUEUES})

    @app.breaker("postmaster")
    async def hand_over(address: str) -> str:
        return f"sent to {address}"

    @app.breaker("pigeons")
    async def fly(lost: bool) -> str:
        if lost:
            raise ConnectionError("the pigeon has not come back")
        return "arrived"

    @app.task(name="mail.by_pigeon", queue="mail", retry=_LATER)
    async def by_pigeon(lost: bool) -> str:
        return await fly(lost)

    @app.task(name="mail.welcome", queue="mail", tags=["mail"])
    async def welcome(
        user_id: int, greeting: str = "hello", urgent: bool = False, copies: int = 1, password: str | None = None
    ) -> str:
        """Greet somebody who is new.

        The password is never shown to anybody.
        """
        current.log("greeting", user=user_id)
        sealed = " sealed" if password == "hunter2" else ""
        return f"{greeting} {user_id}" + ("!" if urgent else "") + f" x{copies}{sealed}"

    @app.task(name="mail.deliver", queue="mail")
    async def deliver(address: str) -> str:
        """By a service that has a breaker."""
        return await hand_over(address)

    @app.task(name="mail.newsletter", queue="mail", retry=_LATER)
    async def newsletter(issue: int) -> None:
        """Never arrives; tried again much later."""
        raise ConnectionError(f"the mail server refused issue {issue}")

    @app.task(name="orders.charge", queue="orders", retry=_ONCE)
    async def charge(order: int, card: str = "good") -> str:
        """Take the money for an order."""
        current.log("asking the bank", order=order)
        return _ask_the_bank(order, card)

    @app.task(name="orders.place", queue="orders")
    async def place(articles: list[str], speed: Literal["slow", "fast"] = "slow", pieces: dict[str, int] | None = None):
        """Put an order together."""
        return {"articles": articles, "speed": speed, "pieces": pieces}

    @app.task(name="orders.read", queue="orders", retry=Retry(max_attempts=1))
    async def read(text: str) -> int:
        """What the bank sends."""
        return json.loads(text)["order"]

    @app.task(name="orders.ship", queue="orders")
    async def ship(order: int) -> str:
        return f"order {order} is on its way"

    @app.task(name="orders.refund", queue="orders", approval="operator")
    async def refund(order: int, cents: int) -> str:
        """Give money back. Somebody has to look at it first."""
        return f"{cents} cents for order {order}"

    # Its timeout is long: that of the scene runs for as long as there are tests.
    @app.task(name="catalogue.load", queue="imports", timeout=20_000, retry=_TWICE)
    async def load(gate: str, rows: int = 100) -> int:
        """Says how far it is until its gate is opened."""
        place, row = _gates() / gate, 0
        while not place.exists():
            row = min(row + 1, rows - 1)
            current.progress(row, total=rows, message=f"row {row}")
            current.log(f"row {row} of the catalogue", gate=gate)
            await asyncio.sleep(0.2)
        if place.read_text() == "fail":
            raise ValueError("the catalogue has no end")
        current.progress(rows, total=rows)
        return rows

    @app.task(name="catalogue.recite", queue="imports", timeout=600)
    async def recite(lines: int, each_second: int) -> int:
        """Many lines, at an even pace."""
        pause = 0.02
        said = 0
        loop = asyncio.get_running_loop()
        started = loop.time()
        while said < lines:
            due = min(lines, int((loop.time() - started) * each_second) + 1)
            for number in range(said, due):
                current.log(f"line {number} of {lines}")
            said = due
            await asyncio.sleep(pause)
        return lines

    @app.task(name="images.find", queue="imports")
    async def find(album: str, pictures: int = 6) -> list[str]:
        return [f"{album}-{number}" for number in range(pictures)]

    @app.task(name="images.shrink", queue="imports")
    async def shrink(picture: int, gate: str | None = None) -> int:
        if gate is not None:
            await _opened(gate)
        return picture * 2

    @app.task(name="images.bind", queue="imports")
    async def bind(sizes: list[int]) -> int:
        return sum(sizes)

    @app.task(name="images.fragile", queue="imports", retry=Retry(max_attempts=1))
    async def fragile(gate: str) -> str:
        """Fails until its gate is there."""
        if not (_gates() / gate).exists():
            raise OSError(f"no gate {gate}")
        return gate

    @app.task(name="reports.daily", queue="default")
    async def daily(region: str = "all") -> str:
        return f"report for {region}"

    @app.task(name="quick.tick", queue="default", result_ttl=60)
    async def tick(number: int) -> int:
        return number

    @app.task(name="harbour.unload", queue="dock")
    async def unload(crates: int) -> int:
        return crates

    @app.task(name="harbour.moor", queue="jetty")
    async def moor(ship: str) -> str:
        return ship

    daily.schedule("30 2 * * *", region="north")
    return app


def _gates() -> Path:
    return Path(os.environ["SHOP_GATES"])


async def _opened(gate: str) -> None:
    while not (_gates() / gate).exists():  # noqa: ASYNC110 (another process opens it)
        await asyncio.sleep(0.05)


def _ask_the_bank(order: int, card: str) -> str:
    return _answer_of_the_bank(order, card)


def _answer_of_the_bank(order: int, card: str) -> str:
    match card:
        case "declined":
            raise CardDeclined(f"card of order {order} was declined by the bank")
        case "slow":
            raise TimeoutError(f"no answer for order {order} within 30 s")
        case "garbled":
            raise ValueError(f"the bank said '{order:x}', which is no number")
        case _:
            return f"charged order {order}"


if "SHOP_GATES" in os.environ:
    app = make_app()
