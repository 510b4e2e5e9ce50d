"""Percentiles of a sample whose parts stand for different numbers of tasks. Pure."""

from collections.abc import Iterable, Mapping, Sequence


def percentiles(sample: Iterable[tuple[float, float]], wanted: Sequence[float]) -> Mapping[float, float]:
    """By the wanted share (0.95): the least value below or at which that share of the weight lies. The sample is of
    (value, weight). Empty for an empty sample."""
    rows = sorted(sample)
    total = sum(weight for _, weight in rows)
    if not rows or total <= 0:
        return {}
    found: dict[float, float] = {}
    left = sorted(wanted)
    passed = 0.0
    for value, weight in rows:
        passed += weight
        while left and passed >= left[0] * total - 1e-9:
            found[left.pop(0)] = value
    for share in left:  # what rounding left over
        found[share] = rows[-1][0]
    return found
