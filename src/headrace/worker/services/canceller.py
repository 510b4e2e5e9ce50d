"""Hears that something this worker holds is to be cancelled."""

from collections.abc import Callable, Iterable

from headrace.core.task import Ref
from headrace.runtime.service import Pace, Service
from headrace.store.base import Store
from headrace.worker.holding import Holding


class Canceller(Service):
    """Asks each quarter of a second while anything is held, and at once when it is woken."""

    name = "canceller"

    def __init__(
        self, *, store: Store, worker: Callable[[], str], holding: Holding, cancel: Callable[[Iterable[Ref]], None]
    ) -> None:
        super().__init__(Pace(interval=0.25))
        self._store = store
        self._worker = worker
        self._holding = holding
        self._cancel = cancel

    async def run_once(self) -> None:
        if self._holding:
            self._cancel(await self._store.cancelling(self._worker()))
