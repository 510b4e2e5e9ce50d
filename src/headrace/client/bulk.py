"""Acts on whatever matches a filter: `app.tasks.retry_where(…)`, `cancel_where`, `delete_where`."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from enum import StrEnum
from typing import TypedDict

from headrace.client.engine import Engine
from headrace.client.searching import Search, answer_found
from headrace.client.selecting import Selection, answer_for
from headrace.core.errors import ArgumentError
from headrace.core.states import LIVE, TERMINAL, TaskState
from headrace.core.task import TaskRecord
from headrace.store.base import CancelAnswer, Store
from headrace.store.blobs.base import remove as remove_blobs
from headrace.store.expecting import Expected
from headrace.store.removing import DeleteAnswer


class Filters(TypedDict, total=False):
    """As `app.tasks.list` takes them; at least one of them says what a bulk act is about."""

    states: Iterable[TaskState | str]
    queues: Iterable[str]
    names: Iterable[str]
    job: int | None
    worker: str | None
    dead_letter: bool | None
    owner: str | None


class RetryAnswer(StrEnum):
    RETRIED = "retried"
    REFUSED = "refused"  # it was not any more as it was found, or another task holds its unique key


type Which = Selection | Search  # by what a list goes by, or by what tasks say of themselves as well


async def retry_where(engine: Engine, filters: Filters, limit: int | None) -> dict[str, int]:
    return await retry_all(engine, selected("retried", filters, limit, among=TERMINAL, unless_said=(TaskState.FAILED,)))


async def cancel_where(engine: Engine, filters: Filters, limit: int | None, reason: str) -> dict[str, int]:
    return await cancel_all(engine, selected("cancelled", filters, limit, among=LIVE), reason)


async def delete_where(engine: Engine, filters: Filters, limit: int | None) -> dict[str, int]:
    return await delete_all(engine, selected("deleted", filters, limit))


async def retry_all(engine: Engine, which: Which) -> dict[str, int]:
    async def retry(store: Store, page: Sequence[TaskRecord], expected: Expected) -> Iterable[str]:
        changed = set(await store.retry([record.id for record in page], expected=expected))
        return [RetryAnswer.RETRIED if record.id in changed else RetryAnswer.REFUSED for record in page]

    answers = await _act(engine, which, retry, RetryAnswer)
    await engine.readied()
    return answers


async def cancel_all(engine: Engine, which: Which, reason: str = "user") -> dict[str, int]:
    async def cancel(store: Store, page: Sequence[TaskRecord], expected: Expected) -> Iterable[str]:
        return (await store.cancel([record.id for record in page], reason=reason, expected=expected)).values()

    return await _act(engine, which, cancel, CancelAnswer)


async def delete_all(engine: Engine, which: Which) -> dict[str, int]:
    async def delete(store: Store, page: Sequence[TaskRecord], expected: Expected) -> Iterable[str]:
        answers = await store.delete([record.id for record in page], expected=expected)
        await drop_results(engine, page, answers)
        return answers.values()

    return await _act(engine, which, delete, DeleteAnswer)


async def drop_results(engine: Engine, records: Iterable[TaskRecord], answers: dict[int, DeleteAnswer]) -> None:
    """What large results of deleted tasks left beside the ledger. Whatever this misses is found as nobody's later."""
    references = tuple(
        record.result_ref
        for record in records
        if record.result_ref is not None and answers.get(record.id) is DeleteAnswer.DELETED
    )
    if references and engine.blobs is not None:
        await remove_blobs(engine.blobs, references)


def selected(
    done: str,
    filters: Filters,
    limit: int | None,
    *,
    among: Iterable[TaskState] = tuple(TaskState),
    unless_said: Iterable[TaskState] | None = None,
) -> Selection:
    """What an act is about, whose past participle is `done`. It concerns the states of `among`, by itself those of
    `unless_said`."""
    if not any(value is not None and value != () for value in filters.values()):
        names = ", ".join(Filters.__annotations__)
        raise ArgumentError(f"say which tasks are to be {done}, by at least one of {names}")
    if limit is not None and limit < 1:
        raise ArgumentError(f"limit is how many tasks are {done} at most, from 1 on, not {limit!r}")
    given = dict(filters)
    try:
        states = tuple(TaskState(state) for state in filters.get("states", ()))
    except ValueError as error:
        raise ArgumentError(f"states: {error}; there are {', '.join(TaskState)}") from None
    concerns = concerned(done, states, among=among, unless_said=unless_said)
    given |= {name: tuple(filters.get(name, ())) for name in ("queues", "names")}
    given["states"] = concerns
    return Selection(**given, limit=limit)  # pyright: ignore[reportArgumentType]


def concerned(
    done: str,
    states: Iterable[TaskState],
    *,
    among: Iterable[TaskState] = tuple(TaskState),
    unless_said: Iterable[TaskState] | None = None,
) -> tuple[TaskState, ...]:
    """The states that an act is about, whose past participle is `done`. ArgumentError for one that is none of them."""
    given, possible = tuple(states), tuple(among)
    if wrong := [state for state in given if state not in possible]:
        allowed = ", ".join(state for state in TaskState if state in possible)
        raise ArgumentError(f"tasks that are {' or '.join(wrong)} cannot be {done}, but those that are {allowed}")
    return given or tuple(possible if unless_said is None else unless_said)


async def _act(
    engine: Engine,
    which: Which,
    act: Callable[[Store, Sequence[TaskRecord], Expected], Awaitable[Iterable[str]]],
    answers: type[StrEnum],
) -> dict[str, int]:
    async def work(store: Store) -> dict[str, int]:
        if isinstance(which, Search):
            found = await answer_found(store, which, lambda page, expected: act(store, page, expected))
        else:
            found = await answer_for(store, which, lambda page, expected: act(store, page, expected))
        return {answer.value: found[answer] for answer in answers}

    return await engine.run(work)
