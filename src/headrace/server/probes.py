"""What probes are told, for a second: they need no token and are not counted, so a flood of them must cost nothing."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends
from fastapi.requests import HTTPConnection

from headrace.core.values import value

KEPT_FOR = 1.0  # seconds


@value
class _Kept:
    answer: Any
    until: float


class Probes:
    """One look at a time for each question, and none while the last answer is fresh."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._kept: dict[str, _Kept] = {}
        self._looking: dict[str, asyncio.Task[Any]] = {}

    async def ask[T](self, question: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        kept = self._kept.get(question)
        if kept is not None and kept.until > self._clock():
            return kept.answer
        looking = self._looking.get(question)
        if looking is None:
            looking = self._looking[question] = asyncio.create_task(self._look(question, look))
        # Whoever asked first may go: the others still wait for this.
        return await asyncio.shield(looking)

    async def _look[T](self, question: str, look: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            answer = await look()
            self._kept[question] = _Kept(answer=answer, until=self._clock() + KEPT_FOR)
            return answer
        finally:
            del self._looking[question]


async def the_probes(connection: HTTPConnection) -> Probes:
    return cast("Probes", connection.app.state.probes)


TheProbes = Annotated[Probes, Depends(the_probes)]
