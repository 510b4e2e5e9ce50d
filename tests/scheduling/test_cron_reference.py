"""Random expressions around both edges of several zones, against a clock that is looked at each minute."""

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.scheduling.cadence import Cron
from tests.scheduling.reference import Expression, Field, edges, fires
from tests.support.sizes import sized

# Shifts of an hour to both sides of midnight, of half an hour, at midnight itself, and none.
ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "America/Havana",
    "America/Santiago",
    "Asia/Kolkata",
    "UTC",
]
WINDOW = timedelta(days=3)
MOST = 400
MINUTES = int(WINDOW / timedelta(minutes=1))

MONTHS = "JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC"
WEEKDAYS = "SUN MON TUE WED THU FRI SAT"
MICROSECOND = timedelta(microseconds=1)


def field(low: int, high: int, *, names: str = "", most: int | None = None) -> st.SearchStrategy[Field]:
    """A list of stars, values (up to `most`), ranges and steps, with what they stand for."""
    value = st.integers(low, high if most is None else most)
    words = names.split()

    def written(n: int) -> st.SearchStrategy[str]:
        plain = st.just(str(n))
        return plain | st.sampled_from([words[n - low], words[n - low].lower()]) if words else plain

    def single(n: int) -> st.SearchStrategy[Field]:
        return written(n).map(lambda text: Field(text, frozenset([n])))

    def span(ends: tuple[int, int]) -> st.SearchStrategy[Field]:
        first, last = sorted(ends)
        texts = st.tuples(written(first), written(last))
        return texts.map(lambda pair: Field("-".join(pair), frozenset(range(first, last + 1))))

    def stepped(part: Field, step: int) -> Field:
        return Field(f"{part.text}/{step}", frozenset(sorted(part.values)[::step]))

    star = st.just(Field("*", frozenset(range(low, high + 1))))
    ends = st.tuples(value, value).filter(lambda pair: pair[0] != pair[1])
    ranges = star | ends.flatmap(span)
    term = value.flatmap(single) | ranges | st.builds(stepped, ranges, st.integers(1, high))
    return star | term | st.lists(term, min_size=2, max_size=3).map(_listed)


def _listed(terms: list[Field]) -> Field:
    return Field(",".join(term.text for term in terms), frozenset().union(*(term.values for term in terms)))


expressions = st.builds(
    Expression,
    minute=field(0, 59),
    # Mostly hours near those at which clocks are changed, and often all of them.
    hour=st.just(Field("*", frozenset(range(24)))) | field(0, 23, most=4) | field(0, 23),
    day=st.just(Field("*", frozenset(range(1, 32)))) | field(1, 31),
    month=st.just(Field("*", frozenset(range(1, 13)))) | field(1, 12, names=MONTHS),
    weekday=st.just(Field("*", frozenset(range(7)))) | field(0, 6, names=WEEKDAYS),
)


def made(expression: Expression, zone: str) -> Cron | None:
    """None for what is refused because it never fires."""
    try:
        return Cron(expression.text, zone)
    except OptionError as error:
        if "never fires" in str(error):
            return None
        raise


@st.composite
def places(draw: st.DrawFn) -> tuple[str, datetime]:
    """A zone, and the start of a window with one of its edges in it (or anywhere, where it has none)."""
    zone = draw(st.sampled_from(ZONES))
    known = edges(zone, draw(st.sampled_from([2026, 2027])))
    edge = draw(st.sampled_from(known)) if known else datetime(2026, draw(st.integers(1, 12)), 14, tzinfo=UTC)
    return zone, edge - timedelta(hours=draw(st.sampled_from([1, 2, 5, 30])), minutes=draw(st.sampled_from([0, 17])))


@pytest.mark.chaos
@pytest.mark.timeout(600)
@settings(max_examples=sized(small=200, full=3000), deadline=None)
@given(expression=expressions, place=places())
def test_the_fires_are_those_of_a_clock_that_is_looked_at_each_minute(
    expression: Expression, place: tuple[str, datetime]
) -> None:
    zone, start = place
    end = start + (MINUTES - 1) * timedelta(minutes=1)
    expected = list(islice(fires(expression, zone, start, MINUTES), MOST))
    cron = made(expression, zone)
    assert (list(cron.fires(start, end, limit=MOST)) if cron else []) == expected


@pytest.mark.chaos
@pytest.mark.timeout(600)
@settings(max_examples=sized(small=100, full=1000), deadline=None)
@given(expression=expressions, place=places(), data=st.data())
def test_the_next_fire_is_the_same_from_wherever_one_asks(
    expression: Expression, place: tuple[str, datetime], data: st.DataObject
) -> None:
    """From any instant, with seconds and microseconds, inside the repeated hour too: strictly after, none left out."""
    zone, start = place
    cron = made(expression, zone)
    assume(cron is not None)
    assert cron
    expected = list(fires(expression, zone, start, MINUTES))
    for _ in range(10):
        instant = start + timedelta(
            microseconds=data.draw(st.integers(0, int((WINDOW - timedelta(hours=2)) / MICROSECOND)))
        )
        after = [fire for fire in expected if fire > instant]
        found = cron.next_after(instant)
        assert found is None or found > instant
        if after:
            assert found == after[0]
        else:
            assert found is None or found >= start + MINUTES * timedelta(minutes=1)


@pytest.mark.chaos
@pytest.mark.timeout(600)
@settings(max_examples=sized(small=60, full=500), deadline=None)
@given(expression=expressions, place=places(), hours=st.integers(0, 70))
def test_the_latest_is_the_last_of_all(expression: Expression, place: tuple[str, datetime], hours: int) -> None:
    zone, start = place
    cron = made(expression, zone)
    assume(cron is not None)
    assert cron
    until = start + timedelta(hours=hours)
    before = [fire for fire in fires(expression, zone, start, MINUTES) if fire <= until]
    assert cron.latest(start, until) == (before[-1] if before else None)


@pytest.mark.parametrize("zone", ZONES)
def test_the_windows_have_the_edges_they_are_meant_to_have(zone: str) -> None:
    assert len(edges(zone, 2026)) == (0 if zone in ("Asia/Kolkata", "UTC") else 2)
