"""The arithmetic: medians, percentiles and the ratio of interleaved runs."""

import statistics
from collections.abc import Sequence


def median(values: Sequence[float]) -> float | None:
    return statistics.median(values) if values else None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    if not values:
        raise ValueError("no values, no percentile")
    ordered = sorted(values)
    rank = -int(-share * len(ordered) // 1)  # rounded up
    return ordered[min(len(ordered), max(1, rank)) - 1]


def pair_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float | None:
    """The median of ours / theirs, pair by pair: what slows down a whole pair, such as a hot processor, cancels out."""
    if len(ours) != len(theirs):
        raise ValueError(f"{len(ours)} runs of ours stand against {len(theirs)} of theirs; pairs have one of each")
    return median([one / other for one, other in zip(ours, theirs, strict=True) if other])
