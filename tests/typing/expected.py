"""Read by a type checker, never run: a wrong line says which rule must refuse it, and an unneeded mark is an error."""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from headrace import (
    App,
    Context,
    Cron,
    Every,
    Graph,
    Handle,
    JobHandle,
    Once,
    Resource,
    Retry,
    Schedule,
    Signature,
    Task,
    chain,
    chord,
    group,
    injected,
)
from headrace.client.schedules import ScheduleView

app = App()


@app.task
async def welcome(user_id: int, greeting: str = "hello") -> str:
    return f"{greeting} {user_id}"


@app.task(queue="mail", retry=Retry(max_attempts=5))
def count(words: list[str]) -> int:
    return len(words)


@app.task(executor="child", priority=3)
async def heavy(size: float) -> dict[str, float]:
    return {"size": size}


@app.schedule("0 9 * * *", tz="Europe/Berlin", arguments={"user_id": 7})
@app.schedule(
    timedelta(minutes=5), name="often", overlap="queue", catch_up="coalesce", jitter=3, arguments={"user_id": 7}
)
@app.task
async def scheduled(user_id: int) -> str:
    return str(user_id)


class Pool: ...


@app.task
async def uses(number: int, pool: Resource[Pool] = injected, context: Context = injected) -> int:
    assert_type(pool, Pool)
    assert_type(context.attempt, int)
    return number


async def right() -> None:
    assert_type(await welcome.aenqueue(7), Handle[str])
    assert_type(await welcome.aenqueue(user_id=7, greeting="hi"), Handle[str])
    assert_type(await (await welcome.aenqueue(7)).aresult(timeout=3), str)
    assert_type(await (await heavy.aenqueue(0.5)), dict[str, float])
    assert_type(await welcome.using(queue="x", priority=1).aenqueue(1), Handle[str])
    assert_type(await welcome.aenqueue_many([{"user_id": 1}]), list[Handle[str]])
    assert_type(await welcome(7), str)
    await assert_type(welcome(7), Coroutine[Any, Any, str])
    await uses.aenqueue(3)


def right_and_blocking() -> None:
    assert_type(count.enqueue(["a"]), Handle[int])
    assert_type(count.enqueue(["a"]).result(), int)
    assert_type(count.enqueue_many([{"words": ["a"]}]), list[Handle[int]])
    assert_type(count(["a"]), int)
    assert_type(count.using(timeout=5).enqueue(words=[]).result(timeout=1), int)
    task: Task[..., int] = count
    task.enqueue(["a"])


async def right_schedules() -> None:
    assert_type(await scheduled(7), str)
    assert_type(welcome.schedule("0 9 * * *", 7), Schedule)
    welcome.schedule(Schedule(Cron("0 9 * * *", "Asia/Tokyo"), name="x"), user_id=7, greeting="hi")
    welcome.using(queue="mail").schedule(Every(60), 7)
    welcome.schedule(Once(datetime(2030, 1, 1, tzinfo=UTC)), 7)
    assert_type(await app.schedules.aadd(welcome, 60, user_id=7), ScheduleView)
    assert_type(app.schedules.run_now("x"), Handle[Any])
    assert_type(app.schedules.next_fires("x"), list[datetime])
    app.schedules.set("x", when="0 3 * * *", jitter=5, task=welcome.prepare(8))


async def right_workflows() -> None:
    assert_type(welcome.s(7), Signature[str])
    assert_type(welcome.si(7, greeting="hi"), Signature[str])
    assert_type(welcome.s(), Signature[str])  # what comes before gives the first argument
    assert_type(welcome.s(7).using(queue="slow").critical(False), Signature[str])
    assert_type(chain(welcome.s(7), count.s()).enqueue(), JobHandle[int])
    assert_type(chain(welcome.s(7), count.s(), heavy.s()).enqueue().result(timeout=3), dict[str, float])
    assert_type(group(welcome.s(1), welcome.s(2)).enqueue(name="both"), JobHandle[list[str]])
    assert_type(group(count.s(["a"]) for _ in range(3)).enqueue().result(), list[int])
    assert_type(chain(welcome.s(7), group(count.s(), count.s())).enqueue().result(), list[int])
    assert_type(chord([welcome.s(1)], count.s()).enqueue().result(), int)
    assert_type(chord(welcome.s(i) for i in range(3))(count.s()).enqueue().result(), int)
    assert_type(welcome.map([1, 2]).enqueue(), JobHandle[list[str]])
    assert_type(count.starmap([(["a"],)]).enqueue(on_failure=welcome.si(1)).result(), list[int])
    assert_type((welcome.s(7) | count.s() | heavy.s()).enqueue(), JobHandle[dict[str, float]])
    assert_type(await chain(welcome.s(7), count.s()).aenqueue(timeout=60), JobHandle[int])
    assert_type(await (await chain(welcome.s(7), count.s()).aenqueue()), int)
    assert_type(await app.jobs.aenqueue(group(count.s(["a"]))), JobHandle[list[int]])
    graph = Graph("typed")
    graph.add(count.s([graph.add(welcome.s(7))]), after=graph.add(heavy.s(0.5)), kind="on_done")
    app.jobs.create("all kinds", [welcome.prepare(7), welcome.s(7), chain(welcome.s(7)), graph])


def wrong_workflows() -> None:
    welcome.si("seven")  # pyright: ignore[reportArgumentType]
    welcome.si()  # pyright: ignore[reportCallIssue]
    chain(welcome, count)  # pyright: ignore[reportCallIssue, reportArgumentType]
    text: str = chain(welcome.s(7), count.s()).enqueue().result()  # pyright: ignore[reportAssignmentType]
    print(text)
    group(welcome.s(7)).enqueue(colour="red")  # pyright: ignore[reportCallIssue]
    group(welcome.s(7)).enqueue(on_failure=welcome)  # pyright: ignore[reportArgumentType]
    welcome.s(7).on_failure(welcome)  # pyright: ignore[reportArgumentType]
    Graph("typed").add(welcome.s(7), kind="sometimes")  # pyright: ignore[reportArgumentType]


async def wrong_schedules() -> None:
    welcome.schedule("0 9 * * *", "seven")  # pyright: ignore[reportArgumentType]
    welcome.schedule("0 9 * * *")  # pyright: ignore[reportCallIssue]
    welcome.schedule("0 9 * * *", 7, colour="red")  # pyright: ignore[reportCallIssue]
    welcome.using(queue="mail").schedule(60, "seven")  # pyright: ignore[reportArgumentType]
    welcome.schedule(None, 7)  # pyright: ignore[reportArgumentType]
    Schedule("0 9 * * *", catch_up="none")  # pyright: ignore[reportArgumentType]
    Schedule("0 9 * * *", when=5)  # pyright: ignore[reportCallIssue]
    app.schedule("0 9 * * *", overlap="wait")  # pyright: ignore[reportArgumentType]
    app.schedule("0 9 * * *", colour="red")  # pyright: ignore[reportCallIssue]
    await app.schedules.aadd(welcome, 60, user_id="seven")  # pyright: ignore[reportArgumentType]
    await scheduled("seven")  # pyright: ignore[reportArgumentType]
    await app.schedules.aadd(welcome, 60)  # pyright: ignore[reportCallIssue]
    app.schedules.set("x", colour="red")  # pyright: ignore[reportCallIssue]


async def wrong() -> None:
    await welcome.aenqueue("seven")  # pyright: ignore[reportArgumentType]
    await welcome.aenqueue()  # pyright: ignore[reportCallIssue]
    await welcome.aenqueue(7, 8)  # pyright: ignore[reportArgumentType]
    await welcome.aenqueue(user_id=7, colour="red")  # pyright: ignore[reportCallIssue]
    await welcome.using(prioriti=3).aenqueue(7)  # pyright: ignore[reportCallIssue, reportUnknownMemberType]
    await welcome.using(priority="high").aenqueue(7)  # pyright: ignore[reportArgumentType]
    await welcome("seven")  # pyright: ignore[reportArgumentType]
    number: int = await (await welcome.aenqueue(7)).aresult()  # pyright: ignore[reportAssignmentType]
    print(number)


def wrong_and_blocking() -> None:
    count.enqueue([1])  # pyright: ignore[reportArgumentType]
    count.enqueue("words")  # pyright: ignore[reportArgumentType]
    count.enqueue()  # pyright: ignore[reportCallIssue]
    count.prepare(5)  # pyright: ignore[reportArgumentType]
    text: str = count.enqueue(["a"]).result()  # pyright: ignore[reportAssignmentType]
    print(text)
    count.enqueue(["a"]).result(timeout="long")  # pyright: ignore[reportArgumentType]
    App(preset="nothing")  # pyright: ignore[reportArgumentType]


@app.task(colour="red")  # pyright: ignore[reportCallIssue, reportUntypedFunctionDecorator]
def coloured() -> None: ...


@app.schedule("0 9 * * *")  # pyright: ignore[reportArgumentType, reportUntypedFunctionDecorator]
def below() -> None: ...
