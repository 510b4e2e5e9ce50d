"""When the claimer asks, and for what."""

import random
import time
from collections.abc import Sequence

from headrace.core.lanes import Lane
from headrace.core.task import ClaimedTask
from headrace.worker.buffer import Buffer
from headrace.worker.claiming import Claimer
from tests.worker.bench import Bench


def claimer_of(bench: Bench, buffer: Buffer, *, answers: list[Sequence[ClaimedTask]] | None = None) -> Claimer:
    claimer = Claimer(
        store=bench.store,
        worker=lambda: "w",
        buffer=buffer,
        free={"coroutine": lambda: 1},
        received=lambda claims, _: (answers if answers is not None else []).append(claims),
        poll=30.0,
        busy=lambda: False,
        rng=random.Random(1),
    )
    claimer.set_queues(["default"])
    return claimer


async def test_work_announced_while_a_claim_finds_nothing_is_asked_for_at_once(bench: Bench) -> None:
    """The claim may have looked before the work was there; and what nobody announced may wait a moment."""
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3))
    claimer.ask_everywhere()
    wants = claimer.begin()
    assert {want.lane for want in wants} == {Lane.PRIMARY, Lane.RETRY}
    claimer.poke("default")
    claimer.end(wants, [], asked_at=time.monotonic())
    assert not claimer.found_nothing
    again = claimer.begin()
    assert again
    claimer.end(again, [], asked_at=time.monotonic())
    assert claimer.found_nothing
    assert claimer.next_in > 0
    assert claimer.begin() == []


async def test_an_empty_answer_is_told_too(bench: Bench) -> None:
    """What waits in the buffer for the other lane's turn would else wait until something else arrives."""
    answers: list[Sequence[ClaimedTask]] = []
    claimer = claimer_of(bench, Buffer(retry_ratio=0.3), answers=answers)
    claimer.end(claimer.begin(), [], asked_at=time.monotonic())
    assert answers == [[]]
