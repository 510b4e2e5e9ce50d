"""How long a retry waits."""

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.retry import ASYNCTASKFLOW_TABLE, Retry, delay


def wait(
    policy: Retry, failures: int, *, error_type: str | None = None, retry_after: float | None = None, seed: int = 1
) -> float:
    return delay(policy, failures=failures, error_type=error_type, retry_after=retry_after, rng=random.Random(seed))


@pytest.mark.requirement("D57")
def test_the_first_retry_waits_the_base_and_each_next_twice_as_long_up_to_the_cap() -> None:
    """D57: 60, 120, 240 ... capped at 3600; the first delay is the base itself (T-D7)."""
    policy = Retry(base=60, cap=3600, jitter=0)
    assert [wait(policy, n) for n in range(1, 9)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.requirement("R9")
def test_exponential_from_one_second_to_six_hundred_with_jitter() -> None:
    """R9: without jitter 1, 2, 4 ... 512, 600; with full jitter each delay lies above zero and up to that, and they
    differ.
    """
    plain = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600]
    assert [wait(Retry(jitter=0), n) for n in range(1, 13)] == plain
    for failures, longest in enumerate(plain, start=1):
        drawn = [wait(Retry(jitter="full"), failures, seed=seed) for seed in range(200)]
        assert all(0 < value <= longest for value in drawn)
        assert max(drawn) > 0.9 * longest
        assert min(drawn) < 0.1 * longest


def test_fixed_waits_the_base_each_time() -> None:
    assert [wait(Retry(backoff="fixed", base=900, jitter=0), n) for n in (1, 2, 50)] == [900, 900, 900]


F29 = {
    "RateLimitError": [60, 120, 300, 600],
    "ServiceUnavailable": [5, 10, 30, 60, 120],
    "NetworkTimeout": [2, 5, 10, 30, 60],
    "Default": [5, 15, 60, 300],
}


@pytest.mark.requirement("F29")
@pytest.mark.parametrize("error_type", list(F29))
def test_the_schedules_by_error_type(error_type: str) -> None:
    """F29: the delays after the 1st, 2nd ... failure are the listed ones, in order."""
    policy = Retry(backoff="table", table=ASYNCTASKFLOW_TABLE, jitter=0)
    schedule = F29[error_type]
    assert [wait(policy, n, error_type=error_type) for n in range(1, len(schedule) + 1)] == schedule
    assert set(ASYNCTASKFLOW_TABLE) == set(F29)


@pytest.mark.requirement("F30")
@pytest.mark.parametrize("error_type", list(F29))
def test_a_table_delay_is_the_entry_plus_up_to_ten_percent(error_type: str) -> None:
    """F30: schedule[min(retry_count, last)] + uniform(0, 10 %), retry_count being failures before this one; both ends
    are reached.
    """
    policy = Retry(backoff="table", table=ASYNCTASKFLOW_TABLE, jitter=0.1)
    schedule = F29[error_type]
    for retry_count in range(len(schedule) + 3):
        entry = schedule[min(retry_count, len(schedule) - 1)]
        drawn = [wait(policy, retry_count + 1, error_type=error_type, seed=seed) for seed in range(200)]
        assert entry <= min(drawn) < 1.01 * entry
        assert 1.09 * entry < max(drawn) <= 1.1 * entry * (1 + 1e-12)


@pytest.mark.parametrize("error_type", [None, "ConnectionLost", "shop.SoldOut"])
def test_an_error_type_that_is_not_listed_has_the_default(error_type: str | None) -> None:
    policy = Retry(backoff="table", table=ASYNCTASKFLOW_TABLE, jitter=0)
    assert wait(policy, 2, error_type=error_type) == 15


POLICIES: st.SearchStrategy[Any] = st.builds(
    Retry,
    backoff=st.sampled_from(["exponential", "fixed"]),
    base=st.floats(0, 600),
    cap=st.floats(600, 1e6),
    jitter=st.just("full") | st.floats(0, 1),
)


@given(POLICIES, st.integers(1, 10**9), st.integers())
def test_an_exponential_delay_never_exceeds_the_cap(policy: Retry, failures: int, seed: int) -> None:
    value = wait(policy, failures, seed=seed)
    assert value >= 0
    if policy.backoff == "exponential":
        assert value <= policy.cap_seconds
    if policy.jitter == "full" and policy.base_seconds > 0:
        assert value > 0


def test_capped_retries_do_not_come_back_in_one_wave() -> None:
    drawn = {wait(Retry(jitter=0.1), 20, seed=seed) for seed in range(100)}
    assert len(drawn) == 100
    assert 600 / 1.1 <= min(drawn) < max(drawn) <= 600


@given(POLICIES, st.integers(1, 20), st.floats(0, 1e6), st.integers())
def test_retry_after_is_a_lower_bound(policy: Retry, failures: int, retry_after: float, seed: int) -> None:
    value = wait(policy, failures, retry_after=retry_after, seed=seed)
    assert value >= retry_after
    assert value >= wait(policy, failures, seed=seed) or policy.jitter == "full"


def test_retry_after_shorter_than_the_delay_changes_nothing() -> None:
    policy = Retry(base=60, jitter=0.1)
    assert wait(policy, 1, retry_after=5) == wait(policy, 1)
    assert wait(Retry(jitter=0), 1, retry_after=30) == 30


def test_a_delay_without_a_failure_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        wait(Retry(), 0)
