"""Reading a cron expression: five fields or an alias, refused with a sentence that names the bad part.

cronsim does the calendar arithmetic. It is asked about wall times only, without a zone: what happens when clocks
change is decided in `cron`.
"""

from collections.abc import Iterator
from datetime import datetime

from cronsim import CronSim, CronSimError

from headrace.core.errors import OptionError

ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}

_FIELDS = (
    ("minute", "0 to 59"),
    ("hour", "0 to 23"),
    ("day of month", "1 to 31, L (the last day) or LW (the last weekday)"),
    ("month", "1 to 12 or JAN to DEC"),
    ("day of week", "0 to 7 or SUN to SAT (0 and 7 are Sunday), MON#2 (the second Monday) or 5L (the last Friday)"),
)

_LONGEST = 500
_EVERY_HOUR = set(range(24))
# Only a start for questions that have the same answer from any day on.
_SOME_DAY = datetime(2000, 1, 1)  # noqa: DTZ001 - a wall time, which has no zone


def read(text: str) -> str:
    """`text` as five fields with single spaces between them. What is no cron expression, or never fires, is refused."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"a cron expression is text such as '*/5 * * * *', not {text!r}")
    if len(text) > _LONGEST:
        raise OptionError(f"a cron expression has at most {_LONGEST} characters; this one has {len(text)}")
    fields = _expanded(text).split()
    if len(fields) != len(_FIELDS):
        raise OptionError(
            f"the cron expression {text[:80]!r} has {_count(len(fields), 'field')}; it must have exactly 5: "
            "minute, hour, day of month, month, day of week, as in '30 2 * * 1-5'"
        )
    for position, field in enumerate(fields):
        _check(field, position, text)
    expression = " ".join(fields)
    try:
        next(wall_times_after(expression, _SOME_DAY))
    except (CronSimError, StopIteration):
        raise OptionError(
            f"the cron expression {text[:80]!r} never fires: no date has that month, day of month and day of week; "
            "for the last day of a month write L, as in '0 0 L 2 *'"
        ) from None
    return expression


def wall_times_after(expression: str, wall: datetime) -> Iterator[datetime]:
    """The wall times after `wall` that match, on a clock that is never changed. Ends after fifty years without one."""
    return CronSim(expression, wall)


def has_fixed_hours(expression: str) -> bool:
    """Whether there are hours of the day at which it never fires."""
    return CronSim(expression, _SOME_DAY).hours != _EVERY_HOUR


def in_words(expression: str) -> str:
    """An English phrase."""
    return CronSim(expression, _SOME_DAY).explain()


def _expanded(text: str) -> str:
    word = text.strip().lower()
    if not word.startswith("@"):
        return text
    if word == "@reboot":
        raise OptionError("@reboot is no schedule here: enqueue the task where the program starts instead")
    if word not in ALIASES:
        raise OptionError(f"{text[:80]!r} is no alias of a cron expression; there are {', '.join(ALIASES)}")
    return ALIASES[word]


def _check(field: str, position: int, text: str) -> None:
    """Each term on its own, with `*` in the other fields: cronsim names the field, and here the term is named too."""
    name, allowed = _FIELDS[position]
    for term in field.split(","):
        alone = ["*"] * len(_FIELDS)
        alone[position] = term
        try:
            CronSim(" ".join(alone), _SOME_DAY)
        except (CronSimError, ValueError):  # ValueError: a number of thousands of digits
            what = f"{term[:40]!r}" if term else "an empty part (a comma too many?)"
            raise OptionError(
                f"the {name} field of the cron expression {text[:80]!r} has {what}; it takes {allowed}, `*`, "
                "and of these ranges from low to high (1-5), steps (*/2) and lists (1,3)"
            ) from None


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
