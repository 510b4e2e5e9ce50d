"""Payloads are canonical JSON, and what JSON cannot carry is refused with its path."""

import json
import math
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import PayloadError
from headrace.core.payload import JSON_CODEC, Codec, CodecRegistry, dumps, loads


@dataclass
class Point:
    x: int


class Pair(NamedTuple):
    a: int
    b: int


class Colour(Enum):
    RED = "red"
    BROKEN = math.nan
    ODD = object()


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
)
VALUES = st.recursive(SCALARS, lambda v: st.lists(v, max_size=5) | st.dictionaries(st.text(), v, max_size=5))


@given(VALUES)
def test_every_json_value_comes_back_unchanged(value: Any) -> None:
    text = dumps(value)
    assert loads(text) == value
    assert json.loads(text) == value
    assert dumps(loads(text)) == text


@given(st.dictionaries(st.text(), st.integers(-5, 5)))
def test_equal_values_have_equal_text(value: dict[str, int]) -> None:
    assert dumps(value) == dumps(OrderedDict(reversed(value.items())))


@pytest.mark.parametrize(
    "text",
    ["it's", 'say "x"', "a\nb\r\tc", "naïve ☃ 😀", "\\u0041", "\x00\x1f\x7f", "</script>", "\u2028", "%s {x} $1"],
)
def test_text_with_quotes_newlines_and_unicode_comes_back_unchanged(text: str) -> None:
    assert loads(dumps({text: [text]})) == {text: [text]}
    assert "\x00" not in dumps(text), "a NUL must be escaped: PostgreSQL text refuses it"


def test_dates_uuids_enums_and_tuples_become_plain_values() -> None:
    offset = timezone(timedelta(hours=2))
    value = {
        "at": datetime(2030, 1, 2, 3, 4, 5, 6, tzinfo=UTC),
        "local": datetime(2030, 1, 2, tzinfo=offset),
        "day": date(2030, 1, 2),
        "hour": time(3, 4),
        "id": UUID(int=1),
        "colour": Colour.RED,
        "pair": (1, 2),
    }
    assert loads(dumps(value)) == {
        "at": "2030-01-02T03:04:05.000006+00:00",
        "local": "2030-01-02T00:00:00+02:00",
        "day": "2030-01-02",
        "hour": "03:04:00",
        "id": "00000000-0000-0000-0000-000000000001",
        "colour": "red",
        "pair": [1, 2],
    }


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


def circular() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


REFUSED: list[tuple[Any, str, str]] = [
    ({"user": [0, 1, 2, {"score": math.nan}]}, "$.user[3].score", "NaN"),
    ({"a": None, "b": [math.inf]}, "$.b[0]", "infinities"),
    ((1.0, -math.inf), "$[1]", "infinities"),
    (math.nan, "$", "NaN"),
    ([Colour.BROKEN], "$[0]", "NaN"),
    ({"n": [2**64]}, "$.n[0]", "64 bits"),
    ({"n": -(2**63) - 1}, "$.n", "64 bits"),
    ({"a": {1: 2}}, "$.a", "key 1 is a int"),
    ({"a": {None: 2}}, "$.a", "only text keys"),
    ({"a": "\ud800"}, "$.a", "surrogate"),
    ({"\udfff": 1}, "$", "surrogate"),
    ({"a b": {1, 2}}, "$['a b']", "pass a list"),
    ([frozenset()], "$[0]", "frozenset"),
    ([b"x"], "$[0]", "bytes"),
    ([bytearray(b"x")], "$[0]", "bytearray"),
    ([Decimal(1)], "$[0]", "decimal.Decimal"),
    ([object()], "$[0]", "object"),
    ([Colour.ODD], "$[0]", "object"),
    ([Point(1)], "$[0]", "Point"),
    ([Pair(1, 2)], "$[0]", "Pair"),
    ([1j], "$[0]", "complex"),
    ([timedelta(1)], "$[0]", "timedelta"),
    ({"at": [datetime(2030, 1, 1)]}, "$.at[0]", "naive"),  # noqa: DTZ001
    ([time(1, tzinfo=UTC)], "$[0]", "timezone"),
    (nested(300), "$[0][0]", "nested"),
    (circular(), "$[0][0]", "contains itself"),
]


@pytest.mark.parametrize(("value", "path", "reason"), REFUSED)
def test_what_json_cannot_carry_is_refused_with_its_path(value: Any, path: str, reason: str) -> None:
    """Each value is refused, naming where it stands and why."""
    with pytest.raises(PayloadError) as refusal:
        dumps(value)
    message = str(refusal.value)
    assert message.startswith(path), message
    assert reason in message


@given(VALUES, st.sampled_from([math.nan, math.inf, -math.inf]))
def test_a_nan_is_found_wherever_it_hides(value: Any, bad: float) -> None:
    for hidden in ([value, bad], {"a": value, "b": {"c": (bad,)}}, [[bad], value]):
        with pytest.raises(PayloadError, match="NaN"):
            dumps(hidden)


def test_the_text_null_is_no_nan() -> None:
    assert dumps({"null": ["null", None, 1.5]}) == '{"null":["null",null,1.5]}'


@pytest.mark.parametrize("text", ["", "{", "NaN", "[1,]", b"\xff"])
def test_stored_text_that_is_no_json_is_named_as_such(text: str | bytes) -> None:
    with pytest.raises(PayloadError, match="not JSON"):
        loads(text)


class Reversing:
    name = "reversed/1"

    def encode(self, text: str, /) -> str:
        return text[::-1]

    def decode(self, text: str, /) -> str:
        return text[::-1]


def test_codecs_are_found_by_the_name_in_the_row() -> None:
    own: Codec = Reversing()
    registry = CodecRegistry(default=own)
    assert registry.default is own
    stored = registry.default.encode(dumps({"a": 1}))
    assert stored == '}1:"a"{'
    assert loads(registry.get("reversed/1").decode(stored)) == {"a": 1}
    assert registry.get("json/1") is JSON_CODEC, "rows written before the change stay readable"
    with pytest.raises(PayloadError, match=r"'aes/k2'.*json/1, reversed/1"):
        registry.get("aes/k2")
