"""The two lanes of a queue and the choice between them.

The choice is deterministic: among any ten consecutive picks that were made while both lanes had work, the retry lane
gets exactly its tenths (3, 2 or 1), so there are no long runs of bad luck and the promise can be tested.
"""

import random
from collections.abc import Sequence
from enum import IntEnum

from headrace.core.errors import OptionError


class Lane(IntEnum):
    """New work and repeated work, kept apart so that a storm of retries does not starve new work."""

    PRIMARY = 0
    RETRY = 1


DEFAULT_RETRY_RATIO = 0.3
_WARNING_RATIO = 0.2
_CRITICAL_RATIO = 0.1


def retry_ratio(
    depth: int, *, default: float = DEFAULT_RETRY_RATIO, warning: int = 1000, critical: int = 5000
) -> float:
    """The share of the retry lane when `depth` retries wait.

    Below `warning` it is the default, up to and including `critical` 0.2, above that 0.1.

    A deeper backlog never raises the share, so a configured default below 0.2 stays as it is. The lower share cannot
    drain a backlog while the primary lane is busy; that wants an alarm, not a larger share.
    """
    if depth < warning:
        return default
    if depth <= critical:
        return min(default, _WARNING_RATIO)
    return min(default, _CRITICAL_RATIO)


# The credit is counted in thousandths: integers, so that no rounding drifts over millions of picks.
_WHOLE = 1000


class LaneCredit:
    """A smooth weighted choice between the lanes; one per worker process and queue.

    Each counted pick adds the ratio to a credit, and a full credit buys one retry. For a ratio in tenths every ten
    consecutive counted picks hold exactly that many retries, wherever the ten begin and whatever credit was carried
    over from an earlier ratio.
    """

    __slots__ = ("_credit", "_step")

    def __init__(self, ratio: float = DEFAULT_RETRY_RATIO) -> None:
        self._credit = 0
        self._step = _thousandths(ratio)

    @property
    def ratio(self) -> float:
        """The share of the retry lane, in (0, 1)."""
        return self._step / _WHOLE

    def set_ratio(self, ratio: float) -> None:
        """Change the share from the next pick on; credit already earned is kept."""
        self._step = _thousandths(ratio)

    def shares(self, n: int) -> tuple[int, int]:
        """How many of the next `n` picks are (primary, retry) if both lanes have work; consumes nothing."""
        retry = (self._credit + n * self._step) // _WHOLE
        return n - retry, retry

    def pick(self, primary_available: bool, retry_available: bool) -> Lane | None:
        """The lane of the next start, or None when neither has work. A pick without a choice costs no credit."""
        if primary_available and retry_available:
            return self._choose()
        if primary_available:
            return Lane.PRIMARY
        return Lane.RETRY if retry_available else None

    def _choose(self) -> Lane:
        self._credit += self._step
        if self._credit < _WHOLE:
            return Lane.PRIMARY
        self._credit -= _WHOLE
        return Lane.RETRY


class RandomLaneCredit(LaneCredit):
    """The same share, but only on average: each pick is drawn from `rng`. For comparisons and simulations."""

    __slots__ = ("_rng",)

    def __init__(self, ratio: float = DEFAULT_RETRY_RATIO, *, rng: random.Random) -> None:
        super().__init__(ratio)
        self._rng = rng

    def _choose(self) -> Lane:
        return Lane.RETRY if self._rng.random() < self.ratio else Lane.PRIMARY


def interleave[T](primary: Sequence[T], retry: Sequence[T], credit: LaneCredit) -> list[T]:
    """The claimed tasks of both lanes in the order in which they start; the order within a lane is kept.

    A claim asks each lane for its share, so the last task of a lane in the buffer says nothing about the lane in the
    store: a lane that delivered its whole share is taken to have more, and only one that fell short counts as empty
    once it is used up. Without this a worker that claims one task at a time would never earn credit for a retry.
    """
    asked_primary, asked_retry = credit.shares(len(primary) + len(retry))
    more_primary, more_retry = len(primary) >= asked_primary, len(retry) >= asked_retry
    order: list[T] = []
    p = r = 0
    while p < len(primary) or r < len(retry):
        lane = credit.pick(p < len(primary) or more_primary, r < len(retry) or more_retry)
        # A random credit may ask for a lane that is used up here; then the other one's task starts.
        if (lane is Lane.RETRY and r < len(retry)) or p == len(primary):
            order.append(retry[r])
            r += 1
        else:
            order.append(primary[p])
            p += 1
    return order


def _thousandths(ratio: float) -> int:
    step = round(ratio * _WHOLE) if 0 < ratio < 1 else 0
    if not 0 < step < _WHOLE:
        raise OptionError(f"the retry ratio must lie between 0 and 1 so that neither lane starves, not {ratio!r}")
    return step
