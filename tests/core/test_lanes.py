"""The choice between the lanes is exact, not only on average."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.core.lanes import DEFAULT_RETRY_RATIO, Lane, LaneCredit, RandomLaneCredit, interleave, retry_ratio

TENTHS = st.integers(1, 9)


@pytest.mark.requirement("F13")
def test_seven_primary_and_three_retry_in_every_ten_picks() -> None:
    """F13: over 10,000 picks with both lanes non-empty the split is 70/30, and so it is in every aligned ten (no luck,
    T-F3).
    """
    credit = LaneCredit()
    picks = [credit.pick(True, True) for _ in range(10_000)]
    assert Counter(picks) == {Lane.PRIMARY: 7000, Lane.RETRY: 3000}
    for start in range(0, 10_000, 10):
        assert picks[start : start + 10].count(Lane.RETRY) == 3


@given(tenths=TENTHS, before=st.lists(st.tuples(TENTHS, st.integers(0, 25))), picks=st.integers(10, 60))
def test_any_ten_consecutive_picks_are_exact_whatever_ratio_came_before(
    tenths: int, before: list[tuple[int, int]], picks: int
) -> None:
    credit = LaneCredit()
    for earlier, count in before:
        credit.set_ratio(earlier / 10)
        for _ in range(count):
            credit.pick(True, True)
    credit.set_ratio(tenths / 10)
    order = [credit.pick(True, True) for _ in range(picks)]
    for start in range(picks - 9):
        assert order[start : start + 10].count(Lane.RETRY) == tenths


@given(tenths=TENTHS, availability=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=200))
def test_picks_without_a_choice_take_what_is_there_and_cost_nothing(
    tenths: int, availability: list[tuple[bool, bool]]
) -> None:
    credit = LaneCredit(tenths / 10)
    counted: list[Lane | None] = []
    for primary, retry in availability:
        lane = credit.pick(primary, retry)
        if primary and retry:
            counted.append(lane)
        else:
            assert lane is (Lane.PRIMARY if primary else Lane.RETRY if retry else None)
    for start in range(0, len(counted) - 9, 10):
        assert counted[start : start + 10].count(Lane.RETRY) == tenths


@given(tenths=TENTHS, skipped=st.integers(0, 30), n=st.integers(0, 500))
def test_shares_foretell_the_next_picks_and_consume_nothing(tenths: int, skipped: int, n: int) -> None:
    credit = LaneCredit(tenths / 10)
    for _ in range(skipped):
        credit.pick(True, True)
    shares = credit.shares(n)
    assert shares == credit.shares(n)
    picks = [credit.pick(True, True) for _ in range(n)]
    assert shares == (picks.count(Lane.PRIMARY), picks.count(Lane.RETRY))


@pytest.mark.requirement("F15")
@pytest.mark.parametrize(
    ("depth", "ratio"), [(0, 0.3), (999, 0.3), (1000, 0.2), (3000, 0.2), (5000, 0.2), (5001, 0.1), (10**9, 0.1)]
)
def test_the_share_of_retries_falls_with_their_depth(depth: int, ratio: float) -> None:
    """F15: the assertion is the table itself, with both boundaries on the side that T-F4 decides."""
    assert retry_ratio(depth) == ratio


@pytest.mark.parametrize(("depth", "ratio"), [(0, 0.05), (1000, 0.05), (9999, 0.05)])
def test_a_deeper_backlog_never_raises_a_configured_share(depth: int, ratio: float) -> None:
    assert retry_ratio(depth, default=0.05) == ratio


def test_the_default_ratio_can_be_chosen() -> None:
    assert LaneCredit().ratio == DEFAULT_RETRY_RATIO == 0.3
    credit = LaneCredit(retry_ratio(0, default=0.5))
    assert credit.shares(10) == (5, 5)


@pytest.mark.parametrize("ratio", [0, 1, -0.1, 1.5, 0.0001, float("nan")])
def test_a_ratio_that_starves_a_lane_is_refused(ratio: float) -> None:
    with pytest.raises(OptionError, match="starves"):
        LaneCredit(ratio)


@given(
    tenths=TENTHS,
    skipped=st.integers(0, 10),
    primary=st.lists(st.integers(0, 9), max_size=40),
    retry=st.lists(st.integers(10, 19), max_size=40),
)
def test_interleaving_loses_nothing_and_keeps_each_lane_in_order(
    tenths: int, skipped: int, primary: list[int], retry: list[int]
) -> None:
    for credit in (LaneCredit(tenths / 10), RandomLaneCredit(tenths / 10, rng=random.Random(tenths))):
        for _ in range(skipped):
            credit.pick(True, True)
        order = interleave(primary, retry, credit)
        assert [item for item in order if item < 10] == primary
        assert [item for item in order if item >= 10] == retry


@given(tenths=TENTHS, primary=st.integers(0, 60), retry=st.integers(0, 60))
def test_interleaving_is_exact_while_both_lanes_last(tenths: int, primary: int, retry: int) -> None:
    order = interleave(["p"] * primary, ["r"] * retry, LaneCredit(tenths / 10))
    last_of_shorter = min(max((i for i, item in enumerate(order) if item == lane), default=-1) for lane in ("p", "r"))
    for start in range(0, last_of_shorter + 1 - 9, 10):
        assert order[start : start + 10].count("r") == tenths


@given(tenths=TENTHS, sizes=st.lists(st.integers(1, 25), min_size=10, max_size=80))
def test_claims_of_any_size_start_exactly_the_share_of_retries(tenths: int, sizes: list[int]) -> None:
    """With both lanes full in the store, batches asked by share and interleaved keep every ten starts exact, claims of
    one included.
    """
    credit = LaneCredit(tenths / 10)
    started: list[str] = []
    for size in sizes:
        primary, retry = credit.shares(size)
        started += interleave(["p"] * primary, ["r"] * retry, credit)
    assert len(started) == sum(sizes)
    for start in range(len(started) - 9):
        assert started[start : start + 10].count("r") == tenths


def test_a_seeded_random_choice_has_the_share_on_average_and_can_be_repeated() -> None:
    first, again = (RandomLaneCredit(0.3, rng=random.Random(7)) for _ in range(2))
    picks = [first.pick(True, True) for _ in range(10_000)]
    assert picks == [again.pick(True, True) for _ in range(10_000)]
    assert 2800 < picks.count(Lane.RETRY) < 3200
    assert first.pick(False, True) is Lane.RETRY
