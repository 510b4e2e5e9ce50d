"""Durations are refused where they are written, by the name of the option."""

import math
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.durations import as_timedelta, seconds, written_seconds
from headrace.core.errors import OptionError


@pytest.mark.parametrize(
    ("value", "expected"), [(0, 0.0), (2, 2.0), (1.5, 1.5), (timedelta(minutes=2), 120.0), (timedelta(0), 0.0)]
)
def test_seconds_of_numbers_and_timedeltas(value: float | timedelta, expected: float) -> None:
    assert seconds(value, name="wait") == expected
    assert as_timedelta(value, name="wait") == timedelta(seconds=expected)


@pytest.mark.parametrize(
    "value",
    [
        -1,
        -0.001,
        math.nan,
        math.inf,
        -math.inf,
        True,
        False,
        "3",
        None,
        timedelta(seconds=-1),
        timedelta.max,
        1e12,
        pytest.param(10**400, id="huge"),
        pytest.param(-(10**400), id="huge-negative"),
    ],
)
def test_what_is_no_length_of_time_is_refused_by_name(value: object) -> None:
    for convert in (seconds, as_timedelta):
        with pytest.raises(OptionError, match="soft_timeout"):
            convert(value, name="soft_timeout")  # type: ignore[arg-type]


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_000)))
def test_a_timedelta_survives_the_way_through_seconds(value: timedelta) -> None:
    assert as_timedelta(seconds(value, name="x"), name="x") - value < timedelta(microseconds=2)
    assert as_timedelta(value, name="x") is value


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("7d", 604_800.0),
        ("12h", 43_200.0),
        ("90m", 5400.0),
        ("30s", 30.0),
        ("3600", 3600.0),
        ("1.5h", 5400.0),
        ("1d 2h30m", 95_400.0),
        (" 2 w ", 1_209_600.0),
        ("1h30m", 5400.0),
    ],
)
def test_lengths_as_they_are_written(text: str, length: float):
    assert written_seconds(text, name="keep") == length


@pytest.mark.parametrize("text", ["", "d", "-1d", "7x", "1d2", "soon", "nan", "1e400", "9" * 400 + "d", "99999w"])
def test_what_is_no_length_is_refused_by_name(text: str):
    with pytest.raises(OptionError, match="keep"):
        written_seconds(text, name="keep")
