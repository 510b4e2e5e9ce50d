"""Services: they run, wait out a store that is away, stop twice, and die loudly."""

import asyncio

import pytest

from headrace.core.errors import LeaseLost, StoreUnavailable
from headrace.runtime.faults import Fault, InjectedFault
from headrace.runtime.service import Pace, Service
from headrace.runtime.supervision import ServiceDied, Supervision
from tests.support.waiting import eventually


class Counting(Service):
    name = "counting"

    def __init__(self, errors: list[Exception] | None = None, *, interval: float = 0.001) -> None:
        super().__init__(Pace(interval=interval))
        self.rounds = 0
        self._errors = errors or []

    async def run_once(self) -> None:
        self.rounds += 1
        if self._errors:
            raise self._errors.pop(0)


async def test_it_runs_in_a_named_task_until_it_is_stopped() -> None:
    service = Counting()
    await service.start()
    await service.start()
    assert service.task is not None
    assert service.task.get_name() == "headrace.counting"
    await eventually(lambda: service.rounds > 3)
    await service.stop()
    await service.stop()
    assert service.task.done()


async def test_a_store_that_is_away_is_waited_out() -> None:
    service = Counting([StoreUnavailable("away"), StoreUnavailable("away")])
    await service.start()
    await eventually(lambda: service.rounds > 4)
    await service.stop()


async def test_a_wake_up_shortens_the_pause() -> None:
    service = Counting(interval=3600)
    await service.start()
    await eventually(lambda: service.rounds == 1)
    service.wake()
    await eventually(lambda: service.rounds == 2)
    await service.stop()


async def test_one_that_dies_takes_the_others_down_by_name() -> None:
    healthy, sick = Counting(), Counting([ValueError("broken")])
    supervision = Supervision([healthy, sick])
    await supervision.start()
    with pytest.raises(ServiceDied, match="counting died"):
        await asyncio.wait_for(supervision.watch(), 5)
    await supervision.stop()
    assert healthy.task is not None
    assert healthy.task.cancelled()


async def test_an_error_of_ours_keeps_its_type() -> None:
    supervision = Supervision([Counting([LeaseLost("gone")])])
    await supervision.start()
    with pytest.raises(LeaseLost):
        await asyncio.wait_for(supervision.watch(), 5)


def test_a_fault_strikes_at_its_point_the_nth_time_and_once(tmp_path) -> None:
    once = str(tmp_path / "once")
    fault = Fault.parse("finish.before_commit:raise:2", once=once)
    fault("claim.before_commit")
    fault("finish.before_commit")
    with pytest.raises(InjectedFault):
        fault("finish.before_commit")
    again = Fault.parse("finish.before_commit:raise", once=once)
    again("finish.before_commit")  # another process has struck already
    with pytest.raises(ValueError, match="HEADRACE_FAULT"):
        Fault.parse("finish:explode")
