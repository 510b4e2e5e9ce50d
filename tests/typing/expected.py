"""Read by a type checker, never run: a wrong line says which rule must refuse it, and an unneeded mark is an error."""

# pyright: reportUnnecessaryTypeIgnoreComment=error

from collections.abc import Coroutine
from typing import Any, assert_type

from headrace import App, Context, Handle, Resource, Retry, Task, injected

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
