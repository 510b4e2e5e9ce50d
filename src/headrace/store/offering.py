"""How an idle worker gets what is enqueued without asking: its claim goes with the transaction that brings the task."""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol, runtime_checkable

from headrace.core.task import ClaimedTask, Pool, Want


class Offer(Protocol):
    """A claim that waits to go with a transaction of this process that brings work."""

    @property
    def answer(self) -> Future[list[ClaimedTask]]: ...

    @property
    def taken_at(self) -> float | None:
        """The monotonic instant at which it went along; None until then."""
        ...

    def renew(self) -> None:
        """Its worker's loop still turns. What is not renewed for a while is not taken: it would wait behind whatever
        blocks the loop, while others are idle.
        """
        ...

    def withdraw(self) -> bool:
        """False when it is taken: its answer comes."""
        ...

    def forget(self) -> None:
        """Nobody waits for its answer any more: what it still brings goes back."""
        ...


@runtime_checkable
class Offering(Protocol):
    """A store whose transactions can take a claim along, and with it save a commit."""

    def offer(self, worker: str, wants: Sequence[Want]) -> Offer:
        """As `claim`, at the moment at which something becomes ready."""
        ...


@runtime_checkable
class HandingOver(Protocol):
    """A store in which an enqueue, of whatever process, can claim its task for an idle worker that stands by."""

    async def stand_by(
        self, worker: str, queues: Sequence[str], pools: Sequence[Pool], take: Callable[[ClaimedTask], None]
    ) -> bool:
        """Let the next task of these be handed over; `take` is called with it. Then, it stands by no more.

        False: not now, because word of it would not be heard.
        """
        ...

    async def still_stands(self, worker: str) -> bool:
        """To be asked each second: who is silent for longer is not believed. False: something was handed over, of which
        word comes or was lost (`held` knows), or nobody stands by any more."""
        ...

    async def stand_down(self, worker: str) -> bool:
        """Nothing more is handed over. False: something was before, as of `still_stands`."""
        ...

    def leave(self, worker: str) -> None:
        """Nobody is there any more to take anything."""
        ...
