"""Who is dead: a pure judgement over what a rescuer has seen on its own clock.

A beat that has not changed for 0.8 lease means death only if the rescuer itself could reach the store all that time:
otherwise an outage of the database would make everybody dead at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

SHARE_OF_LEASE = 0.8
# Of a sweep: looks do not come closer together than this, however near a verdict is.
_CLOSEST_LOOK = 0.05
# More intervals than this without a heartbeat of one's own, and what was seen before proves nothing.
_LONGEST_GAP = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A worker's heartbeat counter as the store shows it now."""

    worker: str
    beat: int
    lease: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Since when (on the observer's monotonic clock) a worker's counter has stood at `beat`."""

    worker: str
    beat: int
    lease: float
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    worker: str
    beat: int
    silent_for: float


def observe(known: Iterable[Observation], beats: Iterable[Beat], *, now: float) -> tuple[Observation, ...]:
    """What is known after reading the beats at `now`; workers that are gone are forgotten."""
    before = {observation.worker: observation for observation in known}
    seen: list[Observation] = []
    for beat in beats:
        old = before.get(beat.worker)
        if old is not None and old.beat == beat.beat:
            seen.append(replace(old, lease=beat.lease))
        else:
            seen.append(Observation(worker=beat.worker, beat=beat.beat, lease=beat.lease, since=now))
    return tuple(seen)


def judge(
    observations: Iterable[Observation], own_beats: Sequence[float], *, now: float, interval: float
) -> tuple[Verdict, ...]:
    """The dead. `own_beats` are the instants of the judge's own successful heartbeats, oldest first."""
    connected = connected_since(own_beats, now=now, interval=interval)
    if connected is None:
        return ()
    verdicts: list[Verdict] = []
    for observation in observations:
        silent_for = now - max(observation.since, connected)
        if silent_for >= SHARE_OF_LEASE * observation.lease:
            verdicts.append(Verdict(worker=observation.worker, beat=observation.beat, silent_for=silent_for))
    return tuple(verdicts)


def next_look(
    observations: Iterable[Observation], own_beats: Sequence[float], *, now: float, interval: float, sweep: float
) -> float:
    """Seconds until the beats should be read again: a sweep, or less where somebody's silence becomes death sooner."""
    connected = connected_since(own_beats, now=now, interval=interval)
    if connected is None:
        return sweep
    verdicts = (max(each.since, connected) + SHARE_OF_LEASE * each.lease - now for each in observations)
    return min(sweep, max(min(verdicts, default=sweep), sweep * _CLOSEST_LOOK))


def connected_since(own_beats: Sequence[float], *, now: float, interval: float) -> float | None:
    """Since when the judge's own heartbeats have come without a gap; None when the last one is too long ago."""
    longest = _LONGEST_GAP * interval
    since: float | None = None
    later = now
    for instant in reversed(own_beats):
        if later - instant > longest:
            break
        since = later = instant
    return since


def wall_clock_stepped(
    *, wall_before: float, wall_now: float, monotonic_before: float, monotonic_now: float, lease: float
) -> bool:
    """Whether the wall clock moved against the monotonic one by over half a lease (SQLite's clock is the host's)."""
    return abs((wall_now - wall_before) - (monotonic_now - monotonic_before)) > lease / 2
