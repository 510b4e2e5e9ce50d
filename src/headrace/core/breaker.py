"""A circuit breaker as pure functions over a frozen state; whoever calls the service keeps the state.

CLOSED counts calls in a sliding window and opens when enough of them failed. OPEN refuses until the timeout has passed,
then one probe is let through (HALF_OPEN): its success closes the breaker with fresh counts, its failure opens it again.
`now` is in seconds of any one clock.
"""

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from headrace.core.durations import Duration, seconds
from headrace.core.errors import OptionError


class BreakerStatus(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """Opens when `window` holds at least `volume_threshold` calls, and `failure_threshold` of them or more failed."""

    failure_threshold: float = 0.5
    volume_threshold: int = 10
    timeout: Duration = 60
    window: Duration = 60

    def __post_init__(self) -> None:
        if not 0 < self.failure_threshold <= 1:
            raise OptionError(f"failure_threshold must be above 0 and at most 1, not {self.failure_threshold!r}")
        if isinstance(self.volume_threshold, bool) or self.volume_threshold < 1:
            raise OptionError(f"volume_threshold must be a whole number from 1, not {self.volume_threshold!r}")
        for name, value in (("timeout", self.timeout), ("window", self.window)):
            if seconds(value, name=name) == 0:
                raise OptionError(f"{name} must be longer than zero")

    @property
    def timeout_seconds(self) -> float:
        return seconds(self.timeout, name="timeout")

    @property
    def window_seconds(self) -> float:
        return seconds(self.window, name="window")


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Calls of one slice of the window."""

    slice_no: int
    calls: int
    failures: int


# Ten slices bound the state whatever the traffic; the window is exact to a tenth of its length.
_SLICES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerState:
    """`opened_at` is set while not CLOSED, `probe_at` while a probe is under way."""

    policy: BreakerPolicy = field(default_factory=BreakerPolicy)
    status: BreakerStatus = BreakerStatus.CLOSED
    buckets: tuple[Bucket, ...] = ()
    opened_at: float | None = None
    probe_at: float | None = None

    @property
    def calls(self) -> int:
        return sum(bucket.calls for bucket in self.buckets)

    @property
    def failures(self) -> int:
        return sum(bucket.failures for bucket in self.buckets)


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRecord:
    """A breaker as every process sees it. `revision` rises with each change of its state."""

    service: str
    status: BreakerStatus  # open past `until` is half open: see the store's clock
    forced: bool  # open by hand: no probe, until it is reset
    until: datetime | None  # of one that is open
    probe_by: str | None
    calls: int  # that its opener had counted
    failures: int
    revision: int
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerChange:
    """What a breaker was from one of its revisions on: closed, or open until a time."""

    revision: int
    status: BreakerStatus
    forced: bool
    until: datetime | None
    calls: int  # that its opener had counted
    failures: int
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True)
class Allow:
    """Make the call and record it."""


@dataclass(frozen=True, slots=True)
class Probe:
    """Make the call; it alone decides what becomes of the breaker."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Make no call; ask again at `until`."""

    until: float


type Admission = Allow | Probe | Refuse


def allow(state: BreakerState, now: float) -> tuple[Admission, BreakerState]:
    """Whether a call may be made now. Keep the returned state: it remembers the probe."""
    if state.status is BreakerStatus.CLOSED:
        return Allow(), state
    # A probe whose caller died would keep the breaker half open for ever; after one more timeout another is let
    # through.
    since = state.probe_at if state.probe_at is not None else state.opened_at
    until = (now if since is None else since) + state.policy.timeout_seconds
    if since is not None and now < until:
        return Refuse(until), state
    return Probe(), replace(state, status=BreakerStatus.HALF_OPEN, probe_at=now)


def record(state: BreakerState, ok: bool, now: float, *, probe: bool = True) -> BreakerState:
    """Count the outcome of a call.

    `ok` says whether the service did its part: a 404 is ok, a 503 is not. While half open the outcome is taken as the
    probe's; pass `probe=False` for a call that was allowed before the breaker opened and ends only now, which then
    counts for nothing.
    """
    match state.status:
        case BreakerStatus.OPEN:
            return state
        case BreakerStatus.HALF_OPEN:
            if not probe:
                return state
            return BreakerState(policy=state.policy) if ok else _open(state, now)
        case BreakerStatus.CLOSED:
            counted = replace(state, buckets=_count(state, ok, now))
            return _open(counted, now) if _must_open(counted) else counted


def abandon_probe(state: BreakerState) -> BreakerState:
    """The probe ended without calling the service (cancelled, worker stopping): the next caller probes at once."""
    if state.status is not BreakerStatus.HALF_OPEN:
        return state
    return replace(state, status=BreakerStatus.OPEN, probe_at=None)


def status_at(state: BreakerState, now: float) -> BreakerStatus:
    """What a reader is shown: an open breaker whose timeout has passed is half open, though nobody has called yet."""
    if state.status is BreakerStatus.OPEN and isinstance(allow(state, now)[0], Probe):
        return BreakerStatus.HALF_OPEN
    return state.status


def _open(state: BreakerState, now: float) -> BreakerState:
    return BreakerState(policy=state.policy, status=BreakerStatus.OPEN, buckets=state.buckets, opened_at=now)


def _must_open(state: BreakerState) -> bool:
    calls = state.calls
    return calls >= state.policy.volume_threshold and state.failures >= state.policy.failure_threshold * calls


def _count(state: BreakerState, ok: bool, now: float) -> tuple[Bucket, ...]:
    current = int(now // (state.policy.window_seconds / _SLICES))
    kept = [bucket for bucket in state.buckets if current - _SLICES < bucket.slice_no]
    # Outcomes can arrive slightly out of order; they join the newest slice rather than open one in the past.
    if kept and kept[-1].slice_no >= current:
        last = kept.pop()
    else:
        last = Bucket(slice_no=current, calls=0, failures=0)
    kept.append(replace(last, calls=last.calls + 1, failures=last.failures + (not ok)))
    return tuple(kept)
