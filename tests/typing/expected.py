"""Read by a type checker, never run: a wrong line says which rule must refuse it, and an unneeded mark is an error."""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from collections.abc import Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

from headrace import App, Context, Cron, Every, Handle, Once, Resource, Retry, Schedule, Task, injected
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
