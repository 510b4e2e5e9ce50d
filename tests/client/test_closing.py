"""What is begun while an app is closed is neither lost nor refused: it is written before, or opens the app again."""

import asyncio
import threading

from headrace import App
from headrace.client.task import Task
from headrace.core.task import NewTask
from headrace.store.base import Store
from tests.support.waiting import eventually

_CEILING = 60


def define(app: App) -> Task[[int], None]:
    @app.task(name="note")
    async def note(number: int) -> None: ...

    return note


async def written(app: App) -> int:
    """Seen by a store of its own."""
    store = app.new_store()
    await store.open()
    try:
        return (await store.counts()).get("pending", 0)
    finally:
        await store.close()


async def test_what_was_begun_before_is_written_when_close_returns(app: App):
    """Plain calls, which share a commit, and keyed ones, which do not; from the first use on."""
    note = define(app)
    expected = 0
    for round in range(5):
        async with asyncio.timeout(_CEILING):
            calls = [
                asyncio.create_task((note.using(unique=f"{round}.{n}") if n % 5 == 0 else note).aenqueue(n))
                for n in range(40)
            ]
            await asyncio.sleep(0)  # each has begun
            await app.aclose()
            expected += 40
            assert await written(app) == expected
            handles = await asyncio.gather(*calls)
            assert len({handle.id for handle in handles}) == 40


async def test_close_waits_for_what_uses_the_store_and_who_comes_meanwhile_opens_it_again(app: App):
    engine = app.engine
    begun, gate = asyncio.Event(), asyncio.Event()
    background = None

    async def hold(store: Store) -> list[int]:
        nonlocal background
        background = asyncio.get_running_loop()
        begun.set()
        await gate.wait()
        return [answer.id for answer in await store.enqueue([NewTask(name="slow")])]

    slow = asyncio.create_task(engine.run(hold))
    await eventually(begun.is_set)
    closing = asyncio.create_task(app.aclose())
    await eventually(lambda: engine._connected is None)
    # Of many, because on PostgreSQL a single one goes from the caller's own loop.
    later = asyncio.create_task(define(app).aenqueue_many([{"number": 1}]))
    await eventually(lambda: bool(engine._coalescer()._commits))
    assert not closing.done()
    assert not later.done(), "one store at a time: it opens once the last one is closed"
    assert background is not None
    background.call_soon_threadsafe(gate.set)
    async with asyncio.timeout(_CEILING):
        await closing
        assert (await slow)[0] != (await later)[0].id
    assert await written(app) == 2


def test_threads_that_enqueue_while_another_closes(app: App):
    """The blocking face; none hangs, none gets an error, nothing is lost or written twice."""
    note = define(app)
    over = threading.Event()
    made: list[int] = []
    errors: list[BaseException] = []

    def enqueue(number: int) -> None:
        try:
            while not over.is_set():
                made.append((note.using(unique=f"{number}.{len(made)}") if number == 0 else note).enqueue(number).id)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=enqueue, args=(number,), daemon=True) for number in range(4)]
    for thread in threads:
        thread.start()
    for round in range(25):
        asyncio.run(eventually(lambda least=4 * round: len(made) > least or bool(errors), _CEILING))
        app.close()
    over.set()
    for thread in threads:
        thread.join(_CEILING)
    assert not any(thread.is_alive() for thread in threads)
    assert errors == []
    assert len(set(made)) == len(made) == asyncio.run(written(app))


async def test_many_calls_go_on_through_a_close(app: App):
    note = define(app)
    many = asyncio.create_task(note.aenqueue_many({"number": number} for number in range(8000)))
    while not many.done():
        await app.aclose()
        await asyncio.sleep(0)
    assert len(await many) == await written(app) == 8000


def test_closing_what_was_never_used_does_nothing(sqlite_url: str):
    app = App(sqlite_url)
    app.close()
    app.close()
    assert app.engine._connected is None
