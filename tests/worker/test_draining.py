"""What a worker that drains waits for, and what may end the wait."""

import asyncio
from typing import NoReturn

import pytest

from headrace.worker.application import Unstartable
from headrace.worker.worker import _until  # pyright: ignore[reportPrivateUsage]


async def _fails(error: Exception) -> NoReturn:
    raise error


async def test_children_that_do_not_start_do_not_cut_the_drain_short() -> None:
    """What runs goes on, what ended is still written; the reason comes afterwards."""
    over, reason = asyncio.Event(), Unstartable("they do not start")
    waited = asyncio.create_task(over.wait())
    living: set[asyncio.Task[None]] = {asyncio.create_task(_fails(reason))}
    draining = asyncio.create_task(_until({waited}, living, timeout=30))
    await asyncio.wait(set(living))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not draining.done()
    over.set()
    assert await asyncio.wait_for(draining, 10) is reason
    assert living == set()


async def test_the_error_of_any_other_part_ends_the_drain() -> None:
    waited = asyncio.create_task(asyncio.Event().wait())
    with pytest.raises(ZeroDivisionError):
        await asyncio.wait_for(_until({waited}, {asyncio.create_task(_fails(ZeroDivisionError()))}), 10)
    waited.cancel()


async def test_a_drain_ends_with_its_time() -> None:
    waited = asyncio.create_task(asyncio.Event().wait())
    assert await asyncio.wait_for(_until({waited}, set(), timeout=0.01), 10) is None
    assert not waited.done()
    waited.cancel()
