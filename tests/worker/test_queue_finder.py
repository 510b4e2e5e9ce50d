"""A worker that takes every queue looks for new ones, as often as that is cheap."""

from collections.abc import Sequence
from typing import Any

import pytest

from headrace.worker.services import depth
from headrace.worker.services.depth import QueueFinder


class SlowStore:
    """Answers after `seconds` of a clock that stands still otherwise."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    async def queue_names(self) -> list[str]:
        self.now += self._seconds
        return ["mail"]


@pytest.mark.parametrize(("seconds", "pause"), [(0.001, 2.0), (0.2, 10.0), (5.0, 30.0)])
async def test_looking_for_queues_takes_a_fiftieth_of_the_time(
    monkeypatch: pytest.MonkeyPatch, seconds: float, pause: float
) -> None:
    """Each two seconds where it is cheap, and once in half a minute whatever it takes."""
    store: Any = SlowStore(seconds)
    monkeypatch.setattr(depth, "time", store)
    found: list[Sequence[str]] = []
    finder = QueueFinder(store=store, declared=["default"], found=found.append)
    assert await finder.run_once() == pytest.approx(pause)
    assert found == [["default", "mail"]]
