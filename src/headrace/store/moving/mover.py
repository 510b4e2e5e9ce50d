"""The order of a move: copy what ended, flip, forward what lives, hand over what was copied.

Every step can be repeated, and every state between two steps is one that another mover goes on from: what is on its
way is sent first, then whatever the source still has. Nothing here is remembered but in the two databases.
"""

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.core.errors import MoveError
from headrace.runtime.faults import reached
from headrace.store.instants import FIRST_POSTGRES_ID
from headrace.store.moving.parcels import Received
from headrace.store.moving.source import Left, Move, Source

if TYPE_CHECKING:
    from headrace.store.postgres.receiving import Receiving

_SHORTEST, _LONGEST = 0.02, 0.25
_ALONE_EVERY = 1.0  # counts and stopped workers trickle in while workers run on the source
_TENDED_EVERY = 1.0


@dataclass(slots=True, kw_only=True)
class Progress:
    """What a mover of this process has done so far, for whoever watches."""

    phase: str = "copying history"
    copied: int = 0
    to_copy: int = 0
    forwarded: int = 0  # live tasks
    jobs: int = 0
    history: int = 0
    left: Left | None = None


async def _nothing() -> None: ...


@dataclass(slots=True, kw_only=True)
class Mover:
    source: Source
    target: "Receiving"
    url: str  # written into the source for handles to follow
    shown: str  # the same for people
    source_shown: str
    follow: bool = False
    until_idle: bool = True  # it ends when the source is empty
    tell: Callable[[Progress], None] = lambda _: None
    tend: Callable[[], Awaitable[None]] = _nothing  # what the source's own workers may not do any more: rescue
    progress: Progress = field(default_factory=Progress)
    move_id: str = ""  # once it has begun
    _alone_at: float = 0.0
    _tended_at: float = 0.0

    async def run(self) -> Received:
        """Until the source is empty (or, when it follows, until it is cancelled); what arrived in all, ever."""
        flipped = await self._begin()
        if not flipped:
            await self._copy_history()
            await self.flip()
        await self._compare()
        pause = _SHORTEST
        while True:
            started = time.monotonic()
            moved = await self._forward() + await self._hand_over()
            self.progress.left = left = await self.source.left()
            self.progress.phase = "moving" if moved or not left.nothing else "following"
            self.tell(self.progress)
            if not moved and left.nothing and self.until_idle:
                await self._alone(now=True)
                return await self.received()
            if not moved and left.tasks and not left.held and await self.source.pack_whatever(self.move_id):
                moved = await self._send()
            pause = _SHORTEST if moved else min(_LONGEST, pause * 1.5)
            await self._tended()
            # A look that costs much, because much waits for something held, is not taken often.
            await asyncio.sleep(0 if moved else max(pause, 5 * (time.monotonic() - started)))

    async def flip(self) -> None:
        await self.source.flip(self.move_id, self.url, while_workers_run=self.follow)
        reached("move.flipped")

    async def deliver(self) -> None:
        """After an interrupt: what is on its way, which nobody could change until the next mover comes, and schedules,
        which nobody would fire."""
        _, moved_to = await self.source.move()
        if self.move_id and moved_to is not None:
            await self._compare()
            await self._send()
            await self._alone(now=True)

    async def received(self) -> Received:
        move, _ = await self.source.move()
        return Received() if move is None else move.received

    async def _begin(self) -> bool:
        """Note the move on both sides, or find the one that was begun; whether the source has flipped."""
        if (highest := await self.source.highest_id()) >= FIRST_POSTGRES_ID:
            raise MoveError(
                f"{self.source_shown} has ids up to {highest}, which PostgreSQL will hand out: it cannot be moved"
            )
        found, moved_to = await self.source.move()
        if moved_to is None and not self.follow and (running := await self.source.running_workers()):
            raise MoveError(
                f"{len(running)} workers run on {self.source_shown} ({', '.join(running[:3])}): stop them, or move "
                "while they run with --follow. Nothing was moved"
            )
        if found is None or (found.target != self.shown and moved_to is None):
            found = await self.source.begin(Move(id=secrets.token_hex(8), target=self.shown))
        if found.target != self.shown and not await self.target.is_of(found.id):
            raise MoveError(
                f"{self.source_shown} has moved to {found.target}, not to {self.shown}: nothing was changed"
            )
        await self.target.begin(found.id, self.source_shown)
        self.move_id = found.id
        await self._agree(found)
        return moved_to is not None

    async def _agree(self, move: Move) -> None:
        """The target has every parcel but perhaps the one on its way; else it is not the database it was."""
        on_its_way = await self.source.outgoing(move.id)
        number = await self.target.number(move.id)
        if number != move.number and not (on_its_way and number == move.number - 1):
            raise MoveError(
                f"{self.shown} has {number} of the {move.number} parcels that it was sent: it was restored from a "
                "backup, or made anew. Nothing was changed"
            )

    async def _copy_history(self) -> None:
        """While the source is used: most of it does not change any more. What does is found when it is handed over."""
        self.progress.to_copy = (await self.source.left()).history
        after = 0
        while (parcel := await self.source.history(after)).size:
            await self.target.ensure(parcel)
            reached("move.copied")
            ids = parcel.task_ids
            after = max(ids)
            self.progress.copied += len(ids)
            self.tell(self.progress)
            await self._tended()

    async def _compare(self) -> None:
        """Forget copies of what was retried or purged here since. Before anything else: whoever retries such a copy in
        the target has the same task in hand at both ends."""
        after = 0
        while copies := await self.target.copies(after):
            stale = await self.source.stale(self.move_id, copies)
            if stale is None:
                return
            if stale:
                await self.target.forget(self.move_id, stale)
            after = copies[-1][0]
        await self.source.compared(self.move_id)
        reached("move.compared")

    async def _forward(self) -> int:
        """Live tasks and jobs, a parcel of each; how many."""
        moved = await self._send()  # what an earlier mover left on its way
        await self._alone()  # schedules above all: from the flip on they fire nowhere else
        if await self.source.pack_tasks(self.move_id):
            moved += await self._send()
        if await self.source.pack_jobs(self.move_id):
            moved += await self._send()
        return moved

    async def _alone(self, *, now: bool = False) -> None:
        if now or time.monotonic() >= self._alone_at:
            while await self.source.pack_alone(self.move_id):
                await self._send()
            self._alone_at = time.monotonic() + _ALONE_EVERY

    async def _send(self) -> int:
        found = await self.source.outgoing(self.move_id)
        if found is None:
            return 0
        number, keys = found
        reached("move.packed")
        received = await self.target.receive(
            self.move_id, number, [lambda key=key: self.source.part(key) for key in keys]
        )
        reached("move.received")
        await self.source.sent(self.move_id, number, received)
        reached("move.sent")
        tables = received.sent
        self.progress.forwarded += tables["tasks"].rows if "tasks" in tables else 0
        self.progress.jobs += tables["jobs"].rows if "jobs" in tables else 0
        self.progress.history += tables["history"].rows if "history" in tables else 0
        self.tell(self.progress)
        return 1

    async def _hand_over(self) -> int:
        """A batch of what ended: the target has it, so it can go here."""
        parcel = await self.source.history(0)
        if not parcel.size:
            return 0
        received = await self.target.ensure(parcel)
        reached("move.ensured")
        removed = await self.source.clear_history(self.move_id, parcel, received)
        reached("move.cleared")
        self.progress.history += removed
        return removed

    async def _tended(self) -> None:
        if time.monotonic() >= self._tended_at:
            self._tended_at = time.monotonic() + _TENDED_EVERY
            await self.tend()
