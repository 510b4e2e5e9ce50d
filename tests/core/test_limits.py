"""Limits as users write them, gates as they are stored, and the arithmetic of the bucket."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.core.limits import (
    Debounce,
    Gate,
    Limit,
    Rate,
    gates_for,
    gates_from_json,
    gates_to_json,
    resolve_key,
    take,
)


def gates(**options: Any) -> tuple[Gate, ...]:
    return gates_for(task_name="shop.mail", arguments={"user_id": 7, "to": "ann"}, **options)


def test_a_limit_without_a_key_is_the_tasks_own() -> None:
    assert gates(limit=Limit(3)) == (Gate(kind="limit", key="shop.mail", n=3),)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("mail", "mail"),
        ("user-{user_id}", "user-7"),
        ("{to}/{user_id:03d}", "ann/007"),
        (lambda user_id, to: f"{to}:{user_id}", "ann:7"),
        (lambda **arguments: str(len(arguments)), "2"),
        ("{{x}}", "{x}"),
    ],
)
def test_keys_are_constants_templates_or_functions(key: Any, expected: str) -> None:
    for found in (gates(limit=Limit(1, key)), gates(rate=Rate(1, key=key)), gates(order_key=key)):
        assert [gate.key for gate in found] == [expected]


def test_gates_come_in_one_order_so_that_locks_do_too() -> None:
    one = Limit(2, "b")
    two = Limit(5, "a-{user_id}")
    found = gates(limit=[one, two, one], rate=Rate(10, per=timedelta(minutes=1), burst=2), order_key="{to}")
    assert found == (
        Gate(kind="limit", key="a-7", n=5),
        Gate(kind="limit", key="b", n=2),
        Gate(kind="order", key="ann"),
        Gate(kind="rate", key="shop.mail", n=10, per=60.0, burst=2),
    )
    assert found == gates(limit=[two, one], rate=Rate(10, per=60, burst=2), order_key="{to}")


def test_no_options_no_gates() -> None:
    assert gates() == ()
    assert gates_to_json(()) is None
    assert gates_from_json(None) == ()


def test_two_values_for_one_key_are_refused() -> None:
    with pytest.raises(OptionError, match="two different values"):
        gates(limit=[Limit(1, "x"), Limit(2, "x")])


@pytest.mark.parametrize(
    "key", ["{order}", "{user_id.name}", "{to:d}", lambda user_id, to: user_id, lambda user_id, to: ""]
)
def test_a_key_that_does_not_fit_the_arguments_is_refused(key: Any) -> None:
    with pytest.raises(OptionError, match=r"shop\.mail.*limit"):
        gates(limit=Limit(1, key))


def test_a_key_too_long_for_an_index_is_refused() -> None:
    with pytest.raises(OptionError, match="512"):
        resolve_key("{x}", {"x": "y" * 513}, name="unique")
    assert len(resolve_key("{x}", {"x": "y" * 512}, name="unique")) == 512


@pytest.mark.parametrize(
    "make",
    [
        lambda: Limit(0),
        lambda: Limit(True),
        lambda: Limit(1.5),  # type: ignore[arg-type]
        lambda: Limit(1, ""),
        lambda: Limit(1, "user-{"),
        lambda: Limit(1, "user-{}"),
        lambda: Limit(1, "user-{0}"),
        lambda: Limit(1, "a\0b"),
        lambda: Rate(0),
        lambda: Rate(1, per=0),
        lambda: Rate(1, per=-1),
        lambda: Rate(1, burst=0),
        lambda: Debounce("k", wait=-1),
        lambda: Debounce("k", wait=10, max_wait=5),
        lambda: Debounce("{", wait=1),
    ],
)
def test_impossible_limits_are_refused_at_definition(make: Any) -> None:
    with pytest.raises(OptionError):
        make()


GATES = st.lists(
    st.builds(Gate, kind=st.sampled_from(["limit", "order"]), key=st.text(), n=st.integers(1, 100))
    | st.builds(
        Gate,
        kind=st.just("rate"),
        key=st.text(),
        n=st.integers(1, 100),
        per=st.floats(0.001, 1e6),
        burst=st.none() | st.integers(1, 10),
    )
)


@given(GATES)
def test_gates_survive_the_store(stored: list[Gate]) -> None:
    assert gates_from_json(gates_to_json(stored)) == tuple(stored)


def test_rate_of_a_gate() -> None:
    (gate,) = gates(rate=Rate(30, per=60))
    assert gate.rate_per_second == 0.5
    assert gate.capacity == 30
    with pytest.raises(ValueError, match="no rate"):
        _ = gates(limit=Limit(1))[0].rate_per_second


def test_a_bucket_grants_its_burst_then_waits_for_the_next_token() -> None:
    granted, tokens, wait = take(5, 100.0, now=100.0, rate_per_second=2, burst=5, wanted=8)
    assert (granted, tokens, wait) == (5, 0.0, 0.5)
    assert take(tokens, 100.0, now=100.4, rate_per_second=2, burst=5, wanted=1)[0] == 0
    assert take(tokens, 100.0, now=100.5, rate_per_second=2, burst=5, wanted=1) == (1, 0.0, 0.0)


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    assert take(0, 0.0, now=1e6, rate_per_second=10, burst=3, wanted=100)[0] == 3


def test_a_clock_that_went_back_earns_nothing() -> None:
    assert take(0.5, 100.0, now=50.0, rate_per_second=10, burst=3, wanted=1) == (0, 0.5, 0.05)


@given(
    rate=st.floats(0.01, 5000),
    burst=st.integers(1, 50),
    steps=st.lists(st.tuples(st.floats(0, 5), st.integers(0, 100)), min_size=1, max_size=60),
)
def test_never_more_than_burst_plus_rate_times_time(rate: float, burst: int, steps: list[tuple[float, int]]) -> None:
    start = now = updated = 1_900_000_000.0
    tokens, total = float(burst), 0
    for step, wanted in steps:
        now += step
        granted, tokens, wait = take(tokens, updated, now=now, rate_per_second=rate, burst=burst, wanted=wanted)
        updated = max(now, updated)
        assert 0 <= granted <= wanted
        assert (wait == 0) == (granted == wanted) or wait == 0
        total += granted
        # The slack is what a microsecond is worth, and it does not add up.
        assert total <= burst + (now - start) * rate + rate * 1e-5 + 1e-6


def test_tokens_granted_a_microsecond_early_stay_owed() -> None:
    """Each call comes 1 µs before its token. Forgiving that would grant 10,010 in ten seconds instead of 10,000."""
    tokens, updated, total = 0.0, 0, 0
    for microsecond in range(999, 10_000_000, 999):
        now = microsecond / 1e6
        granted, tokens, _ = take(tokens, updated / 1e6, now=now, rate_per_second=1000, burst=2, wanted=2)
        updated = microsecond
        total += granted
    assert 9_990 <= total <= 10_000


@given(rate=st.floats(0.01, 5000), burst=st.integers(1, 5), rounds=st.integers(1, 50))
def test_after_the_stated_wait_a_token_is_there(rate: float, burst: int, rounds: int) -> None:
    now, tokens = 1_900_000_000.0, 0.0
    for _ in range(rounds):
        _, tokens, wait = take(tokens, now, now=now, rate_per_second=rate, burst=burst, wanted=burst + 1)
        # Databases keep microseconds; the wait survives the rounding.
        later = round(now + wait, 6)
        granted, tokens, _ = take(tokens, now, now=later, rate_per_second=rate, burst=burst, wanted=1)
        assert granted == 1
        now = max(now, later)
