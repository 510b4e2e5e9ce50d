"""What goes together to the ledger is bounded, by number and by what it weighs."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from headrace.core.settlement import Settlement
from headrace.core.states import TaskState
from headrace.worker import finishing
from tests.support.waiting import eventually
from tests.worker.bench import Bench, opened


def _waiting(*lengths: int | None) -> Sequence[Settlement]:
    results = [None if length is None else "x" * length for length in lengths]
    return [Settlement(n, 1, TaskState.COMPLETED, result=result) for n, result in enumerate(results)]


@pytest.mark.parametrize(
    ("lengths", "together"),
    [
        ((None, 1, None), 3),
        ((4, 4, 4, 4), 2),
        ((1, None, 9, 1), 3),
        ((50, 1), 1),  # one goes, whatever it weighs
        ((1, 50), 1),
        ((1,) * 7, 5),
        ((), 0),
    ],
)
def test_a_batch_is_bounded_by_number_and_length(
    monkeypatch: pytest.MonkeyPatch, lengths: Sequence[int | None], together: int
) -> None:
    monkeypatch.setattr(finishing, "_LONGEST", 10)
    assert finishing._fitting(_waiting(*lengths), 5) == together


async def test_what_is_left_does_not_wait_for_the_batch_before_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing runs any more and many outcomes wait: they are written beside those that are on their way."""
    monkeypatch.setattr(finishing, "_WORTHWHILE", 20)  # so that the first claim brings all of them
    landing, release, go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()
    sizes: list[int] = []

    async def note() -> None: ...

    async def wait() -> None:
        await go_on.wait()

    bench.app.add(note)
    bench.app.add(wait)
    async with opened(bench):
        finish = bench.store.finish

        async def slow(worker: str, settlements: Sequence[Settlement], **rest: Any) -> Any:
            sizes.append(len(settlements))
            if len(sizes) == 1:
                landing.set()
                await release.wait()
            return await finish(worker, settlements, **rest)

        store: Any = bench.store
        store.finish = slow
        names = ["note", *["wait"] * 20]
        first, *others = [each.id for each in await store.enqueue([bench.app.task(name, {}) for name in names])]
        async with bench.running(lease=60.0, concurrency=100):
            await asyncio.wait_for(landing.wait(), 30)
            go_on.set()
            await eventually(lambda: is_completed(bench, others[-1]))
            assert (sizes[0], await bench.state(first)) == (1, TaskState.CLAIMED)
            release.set()
            await eventually(lambda: is_completed(bench, first))


async def is_completed(bench: Bench, task: int) -> bool:
    return await bench.state(task) == TaskState.COMPLETED
