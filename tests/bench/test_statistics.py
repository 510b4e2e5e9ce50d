"""The arithmetic of the benchmark."""

import pytest

from bench.statistics import median, pair_ratio, percentile


def test_a_median_of_nothing_is_nothing() -> None:
    assert median([]) is None
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [
        (range(1, 101), 0.5, 50),
        (range(1, 101), 0.99, 99),
        (range(1, 101), 1.0, 100),
        ([7], 0.99, 7),
        ([5, 1, 3], 0.5, 3),
        (range(1, 201), 0.99, 198),
    ],
)
def test_a_percentile_is_one_of_the_values(values: list[int], share: float, expected: int) -> None:
    assert percentile(values, share) == expected


def test_a_percentile_needs_a_value() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 0.5)


def test_the_ratio_is_taken_pair_by_pair() -> None:
    """A whole pair that ran slowly does not move it; one lucky run of a peer does not either."""
    ours, theirs = [30.0, 30.0, 15.0, 33.0, 30.0], [10.0, 20.0, 5.0, 11.0, 10.0]
    assert pair_ratio(ours, theirs) == 3.0


def test_runs_without_their_other_half_are_no_pairs() -> None:
    assert pair_ratio([], []) is None
    with pytest.raises(ValueError, match="2 runs of ours stand against 1"):
        pair_ratio([1, 2], [1])
