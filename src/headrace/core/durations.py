"""Durations as users write them (`timedelta` or seconds), checked once at the edge."""

import math
import re
from datetime import timedelta

from headrace.core.errors import OptionError

type Duration = timedelta | int | float

# An instant this far ahead still fits every database's timestamp; anything longer is a mistake in units.
_LONGEST = timedelta(days=36_525)


def seconds(value: Duration, *, name: str) -> float:
    """`value` in seconds; what is no length of time from zero to a hundred years is refused, naming the option."""
    length = value.total_seconds() if isinstance(value, timedelta) else value
    if isinstance(length, bool) or not isinstance(length, int | float):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{name} must be a timedelta or a number of seconds, not {value!r}")
    if isinstance(length, float) and math.isnan(length):
        raise OptionError(f"{name} must be a length of time, not NaN")
    if length < 0:
        raise OptionError(f"{name} must not be negative: {value!r}")
    # Compared before it becomes a float: a huge integer has no float.
    if length > _LONGEST.total_seconds():
        raise OptionError(f"{name} must be at most a hundred years (is it given in milliseconds?): {value!r}")
    return float(length)


def as_timedelta(value: Duration, *, name: str) -> timedelta:
    """`value` as a `timedelta`, checked as by `seconds`."""
    length = seconds(value, name=name)
    return value if isinstance(value, timedelta) else timedelta(seconds=length)


_PART = r"(\d+(?:\.\d+)?)\s*([smhdw])"
_WRITTEN = re.compile(rf"(?:{_PART}\s*)+")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}


def written_seconds(text: str, *, name: str) -> float:
    """`30s`, `15m`, `1h30m`, `7d`, `2w`, or a bare number of seconds, as people write on a command line."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        return seconds(float(text), name=name)
    if not _WRITTEN.fullmatch(text):
        raise OptionError(f"{name} {text!r} is no length of time; write 30s, 1h30m, 7d, 2w or a number of seconds")
    return seconds(sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, text)), name=name)
