"""@app.on_event: tasks that events enqueue; on both stores."""

import asyncio
import sqlite3
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from headrace import App, Retry
from headrace.core.errors import ArgumentError, DefinitionError, OptionError
from headrace.core.payload import Codec
from headrace.core.states import TaskState
from headrace.store.connect import sqlite_path
from headrace.worker.scheduling import declare_schedules
from tests.client.draining import drain


class Reversed(Codec):
    name = "reversed"

    def encode(self, text: str) -> str:
        return text[::-1]

    def decode(self, text: str) -> str:
        return text[::-1]


async def test_an_event_enqueues_its_tasks(app: App):
    heard: list[tuple[str, Any]] = []

    @app.on_event("paid")
    @app.task(name="everything")
    async def everything(event: str, key: str, payload: dict[str, int]) -> None:
        heard.append(("everything", (event, key, payload)))

    @app.on_event("refunded")
    @app.on_event("paid")
    @app.task(name="some")
    async def some(payload: Any, note: str = "by default") -> str:
        heard.append(("some", (payload, note)))
        return note

    @app.on_event("paid")
    @app.task(name="nothing")
    def nothing() -> None:
        heard.append(("nothing", ()))

    await app.asend("paid", "early")  # nobody has declared anything: it is kept, and enqueues nothing
    await app.events.adeclare()
    await app.asend("paid", "order-7", {"total": 5})
    await app.asend("refunded", payload=[1])
    await app.asend("other")
    assert await drain(app) == 4
    assert sorted(heard, key=repr) == sorted(
        [
            ("everything", ("paid", "order-7", {"total": 5})),
            ("some", ({"total": 5}, "by default")),
            ("some", ([1], "by default")),
            ("nothing", ()),
        ],
        key=repr,
    )
    names = [record.name for record in await app.events.asubscriptions()]
    assert len(names) == 4
    assert await app.events.aunsubscribe(names[0])
    assert not await app.events.aunsubscribe(names[0])


async def test_with_a_codec_of_its_own(store_url: str):
    """What is sent is not to be read in the ledger, and neither is what comes of it."""
    app = App(store_url, codec=Reversed())
    try:

        @app.on_event("paid")
        @app.task(name="listener")
        async def listener(payload: dict[str, str]) -> str:
            return payload["secret"]

        await app.events.adeclare()
        await app.asend("paid", payload={"secret": "hidden"})
        await app.asend("paid", payload={"secret": "x", "$codec": "trap"})
        await drain(app)
        records = await app.tasks.alist(names=[listener.name])
        assert {await app.tasks.handle(record.id).aresult(timeout=30) for record in records} == {"hidden", "x"}
        assert all("hidden" not in record.arguments + str(record.result) for record in records)
    finally:
        await app.aclose()


async def test_what_does_not_fit_fails(app: App):
    @app.on_event("paid")
    @app.task(name="listener", retry=Retry(max_attempts=1))
    async def listener(payload: int) -> int:
        return payload

    await app.events.adeclare()
    await app.asend("paid", payload={"not": "a number"})
    await drain(app)
    (record,) = await app.tasks.alist(names=[listener.name])
    assert record.state is TaskState.FAILED


@pytest.fixture
def transactions(app: App) -> Iterator[Any]:
    """A connection of the user's own."""
    if app.url.startswith("sqlite"):
        connection: Any = sqlite3.connect(sqlite_path(app.url))
    else:
        connection = psycopg.connect(app.url)
    yield connection
    connection.close()


@pytest.mark.parametrize("commits", [True, False])
def test_in_a_transaction_of_the_users(app: App, transactions: Any, commits: bool):
    """The task is there if and only if the user commits."""

    @app.on_event("paid")
    @app.task(name="listener")
    async def listener(key: str) -> None: ...

    app.events.declare()
    if app.url.startswith("sqlite"):
        transactions.execute("BEGIN IMMEDIATE")
    with app.transaction(transactions):
        app.send("paid", "k")
    assert app.tasks.list() == []
    transactions.commit() if commits else transactions.rollback()
    assert [record.arguments for record in app.tasks.list()] == ['{"key":"k"}'] * commits


async def test_many_sends_at_once(app: App):
    @app.on_event("paid")
    @app.task(name="listener")
    async def listener(key: str) -> None: ...

    await app.events.adeclare()
    await asyncio.gather(*(app.asend("paid", str(number)) for number in range(40)))
    records = await app.tasks.alist(names=[listener.name])
    assert sorted(record.arguments for record in records) == sorted(f'{{"key":"{number}"}}' for number in range(40))


async def test_the_end_of_a_job(app: App):
    told: list[Any] = []

    @app.on_event("job.completed")
    @app.task(name="completed")
    async def completed(payload: dict[str, Any]) -> None:
        told.append(payload)

    @app.task(name="work")
    async def work() -> None: ...

    await app.events.adeclare()
    job = await app.jobs.acreate("import", tasks=[work.prepare()])
    await drain(app)
    assert told == [{"job": job.id, "name": "import", "state": "completed"}]


def test_mistakes(sqlite_app: App):
    app = sqlite_app

    @app.task(name="fine")
    async def fine(payload: Any) -> None: ...

    @app.task(name="wants_more")
    async def wants_more(payload: Any, user: int) -> None: ...

    @app.task(name="once", unique=True)
    async def once(payload: Any) -> None: ...

    @app.task(name="ordered", order_key="{user}")
    async def ordered(payload: Any, user: int = 1) -> None: ...

    def plain(payload: Any) -> None: ...

    with pytest.raises(DefinitionError, match=r"above @app\.task"):
        app.on_event("paid")(plain)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DefinitionError, match="'user'"):
        app.on_event("paid")(wants_more)
    with pytest.raises(OptionError, match="each time it is sent"):
        app.on_event("paid")(once)
    with pytest.raises(OptionError, match="order_key"):
        app.on_event("paid")(ordered)
    with pytest.raises(DefinitionError, match=r"nobody sends event 'job\.done'"):
        app.on_event("job.done")
    with pytest.raises(DefinitionError):
        app.on_event("")
    app.on_event("paid")(fine)
    with pytest.raises(DefinitionError, match="already"):
        app.on_event("paid")(fine)
    with pytest.raises(DefinitionError, match="another app"):
        App(app.url).on_event("paid")(fine)
    for name in ("job.completed", "task.anything"):
        with pytest.raises(ArgumentError, match="engine"):
            app.send(name)


def test_an_annotation_that_comes_later(sqlite_app: App):
    @sqlite_app.on_event("paid")
    @sqlite_app.task(name="listener")
    async def listener(payload: "Later") -> None: ...

    class Later:  # it is not at module level: nobody finds it, and that is said when the app runs
        ...

    assert Later is not None
    with pytest.raises(OptionError):
        sqlite_app.events.declare()


async def test_a_worker_writes_them_when_it_starts_and_removes_what_the_code_has_no_more(app: App):
    @app.on_event("paid")
    @app.task(name="listener")
    async def listener(key: str) -> None: ...

    async def start(code: App) -> list[tuple[str, str | None]]:
        await app.engine.run(lambda store: declare_schedules(code, store, "shop", stopping=asyncio.Event()))
        return [(record.name, record.declared_by) for record in await app.events.asubscriptions()]

    assert await start(app) == [("listener@paid", "shop:app")]
    assert await start(App(app.url)) == []
