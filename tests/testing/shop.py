"""An app with tasks of every kind, made anew for each test."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from headrace import App, Context, Resource, Retry, Snooze, current, injected


@dataclass
class Mailbox:
    """What the lifespan of the app opens."""

    loop: asyncio.AbstractEventLoop
    sent: list[str] = field(default_factory=list[str])
    closed: bool = False


def make_shop() -> SimpleNamespace:
    """The app, its tasks, and what they did."""
    app = App("sqlite:////nowhere/production.db", name="shop")
    shop = SimpleNamespace(app=app, ran=[], mailboxes=[])

    @app.lifespan
    async def resources() -> AsyncGenerator[dict[str, Any]]:
        mailbox = Mailbox(asyncio.get_running_loop())
        shop.mailboxes.append(mailbox)
        await asyncio.sleep(0)
        yield {"mailbox": mailbox}
        mailbox.closed = True

    @app.task(name="add")
    def add(a: int, b: int) -> int:
        shop.ran.append(("add", a, b))
        return a + b

    @app.task(name="greet", queue="mail")
    async def greet(name: str, mailbox: Resource[Mailbox] = injected, context: Context = injected) -> str:
        assert asyncio.get_running_loop() is mailbox.loop
        await asyncio.sleep(0)
        mailbox.sent.append(name)
        shop.ran.append(("greet", name))
        context.log("greeted", name=name)
        return f"hello {name}"

    @app.task(name="flaky", retry=Retry(max_attempts=3, base=60, jitter=0))
    def flaky(good_at: int = 3) -> int:
        shop.ran.append(("flaky", current.attempt))
        if current.attempt < good_at:
            raise ConnectionError(f"attempt {current.attempt}")
        return current.attempt

    @app.task(name="sleepy")
    async def sleepy() -> str | Snooze:
        shop.ran.append(("sleepy",))
        return "awake" if len(shop.ran) >= 3 else Snooze(timedelta(hours=1))

    @app.task(name="parent")
    def parent(n: int) -> int:
        """A `def` that enqueues an `async def` and a `def`, and waits for both."""
        shop.ran.append(("parent", n))
        return len(greet.enqueue(str(n)).result()) + add.enqueue(n, n).result()

    @app.task(name="aparent")
    async def aparent(n: int) -> int:
        shop.ran.append(("aparent", n))
        return len(await (await greet.aenqueue(str(n))).aresult()) + await (await add.aenqueue(n, n)).aresult()

    for task in (add, greet, flaky, sleepy, parent, aparent):
        setattr(shop, task.name, task)
    return shop
