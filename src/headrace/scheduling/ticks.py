"""What is done about the ticks of a schedule. Pure: the present, the policy and what is unfinished come in.

A schedule's row holds a **cursor**: all ticks up to it are decided. A scheduler asks `due`, and in one transaction
moves the cursor, on the condition that it still stands where it was read, enqueues the fires and writes a run for each.
Of many schedulers one moves the cursor. The runs, of which a tick has one at most, stand against whatever brings a tick
back (a cursor that was restored from a backup, a schedule that was changed and changed back).
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.core.schedule import CatchUp
from headrace.scheduling.base import Cadence, in_utc
from headrace.scheduling.interval import EPOCH

_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """What one look at a schedule found."""

    ticks: tuple[datetime, ...]
    """To fire now, oldest first."""
    cursor: datetime
    """The new cursor: the last tick that is decided, fired or not; the old cursor when no tick has passed."""
    next_look: datetime | None
    """When to look again: the next tick, `now` when the limit cut the ticks short, None when none will ever come."""


def due(
    cadence: Cadence, *, cursor: datetime, now: datetime, catch_up: CatchUp, grace: timedelta, limit: int = 100
) -> Due:
    """Decide about the ticks after `cursor` and up to `now`.

    - `coalesce`: the last of them fires, for all.
    - `skip`: each that is not older than `grace` fires, the older ones never will.
    - `all`: each fires.

    At most `limit` fire at one look; the rest are found by the next one. The cursor of a new schedule, and of one that
    was paused, is the instant at which it was made or went on. It never goes back: when the clock is set back, nothing
    is due until it is past the cursor again.
    """
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    cursor, now = in_utc(cursor, name="cursor"), in_utc(now, name="now")
    if catch_up == "coalesce":
        last = cadence.latest(cursor, now)
        ticks = () if last is None else (last,)
        decided = last
    else:
        # A tick exactly as old as the grace still fires, and what is asked for lies strictly after the start.
        start = cursor if catch_up == "all" else max(cursor, now - grace - _MOMENT)
        ticks = tuple(cadence.fires(start, now, limit))
        decided = ticks[-1] if ticks else cadence.latest(cursor, now)
    cursor = decided or cursor
    following = cadence.next_after(cursor)
    return Due(ticks=ticks, cursor=cursor, next_look=None if following is None else max(following, now))


def jitter(schedule_id: int, tick: datetime, spread: timedelta) -> timedelta:
    """How long the fire of `tick` is put off: from zero up to `spread`, the same wherever it is computed.

    The task is enqueued at the tick with that delay, so a scheduler that dies meanwhile has nothing left to do.
    """
    # Seeded by text, which Python hashes alike in every process and version.
    return spread * random.Random(_seed(schedule_id, tick)).random()


def _seed(schedule_id: int, tick: datetime) -> str:
    """Of the jitter of one fire. It names a second, and no two ticks of a schedule lie in one."""
    second = (in_utc(tick, name="tick") - EPOCH) // timedelta(seconds=1)
    return f"schedule:{schedule_id}:{second}"
