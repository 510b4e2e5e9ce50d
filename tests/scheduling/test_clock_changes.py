"""The written rule for both edges of daylight saving, zone by zone."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from headrace.scheduling.cadence import Cron

BERLIN = "Europe/Berlin"  # 2026-03-29 02:00 -> 03:00, 2026-10-25 03:00 -> 02:00
NEW_YORK = "America/New_York"  # 2026-03-08 02:00 -> 03:00, 2026-11-01 02:00 -> 01:00
LORD_HOWE = "Australia/Lord_Howe"  # 2026-10-04 02:00 -> 02:30, 2026-04-05 02:00 -> 01:30
KOLKATA = "Asia/Kolkata"  # never
APIA = "Pacific/Apia"  # had no 30 December 2011


def on(day: str, expression: str, zone: str) -> list[str]:
    """The fires of one day of that zone, as its clocks show them, with the offset."""
    tz = ZoneInfo(zone)
    start = datetime.fromisoformat(day).replace(tzinfo=tz)
    end = start + timedelta(days=1)  # the next midnight on the wall, 23 to 25 hours later
    found = Cron(expression, zone).fires(
        start.astimezone(UTC) - timedelta(seconds=1), end.astimezone(UTC) - timedelta(seconds=1)
    )
    return [fire.astimezone(tz).strftime("%H:%M%z") for fire in found]


@pytest.mark.parametrize(
    ("zone", "day", "expression", "expected"),
    [
        (BERLIN, "2026-03-29", "30 2 * * *", ["03:00+0200"]),
        (BERLIN, "2026-03-29", "0 2 * * *", ["03:00+0200"]),
        (BERLIN, "2026-03-29", "0 3 * * *", ["03:00+0200"]),
        (BERLIN, "2026-03-29", "59 1 * * *", ["01:59+0100"]),
        (NEW_YORK, "2026-03-08", "15 2 * * SUN", ["03:00-0400"]),
        (LORD_HOWE, "2026-10-04", "15 2 * * *", ["02:30+1100"]),
        (LORD_HOWE, "2026-10-04", "30 2 * * *", ["02:30+1100"]),
        ("America/Havana", "2026-03-08", "@daily", ["01:00-0400"]),  # midnight itself is skipped
        (KOLKATA, "2026-03-29", "30 2 * * *", ["02:30+0530"]),
    ],
)
def test_a_wall_time_that_is_skipped_fires_once_after_the_gap(
    zone: str, day: str, expression: str, expected: list[str]
) -> None:
    assert on(day, expression, zone) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("0,20,40 2 * * *", ["03:00+0200"]),
        ("0 2,3 * * *", ["03:00+0200"]),
        ("*/10 2 * * *", ["03:00+0200"]),
        ("30 1-4 * * *", ["01:30+0100", "03:00+0200", "03:30+0200", "04:30+0200"]),
        ("0 */6 * * *", ["00:00+0100", "06:00+0200", "12:00+0200", "18:00+0200"]),
    ],
)
def test_several_that_are_skipped_are_one_fire(expression: str, expected: list[str]) -> None:
    assert on("2026-03-29", expression, BERLIN) == expected


def test_a_day_that_is_skipped_fires_at_the_start_of_the_next() -> None:
    fires = Cron("30 12 * * *", APIA).fires(datetime(2011, 12, 29, tzinfo=UTC), datetime(2011, 12, 31, tzinfo=UTC))
    walls = [fire.astimezone(ZoneInfo(APIA)).strftime("%d %H:%M") for fire in fires]
    assert walls == ["29 12:30", "31 00:00", "31 12:30"]


@pytest.mark.parametrize(
    ("zone", "day", "expression", "expected"),
    [
        (BERLIN, "2026-10-25", "30 2 * * *", ["02:30+0200"]),
        (BERLIN, "2026-10-25", "0 2 * * *", ["02:00+0200"]),
        (BERLIN, "2026-10-25", "0 3 * * *", ["03:00+0100"]),
        (BERLIN, "2026-10-25", "0,30 2,3 * * *", ["02:00+0200", "02:30+0200", "03:00+0100", "03:30+0100"]),
        (NEW_YORK, "2026-11-01", "30 1 * * *", ["01:30-0400"]),
        (NEW_YORK, "2026-11-01", "*/20 1 1 NOV *", ["01:00-0400", "01:20-0400", "01:40-0400"]),
        (LORD_HOWE, "2026-04-05", "45 1 * * *", ["01:45+1100"]),
        (LORD_HOWE, "2026-04-05", "15 1 * * *", ["01:15+1100"]),
        ("America/Havana", "2026-11-01", "@daily", ["00:00-0400"]),
        (KOLKATA, "2026-10-25", "30 2 * * *", ["02:30+0530"]),
    ],
)
def test_a_wall_time_that_comes_twice_fires_the_first_time(
    zone: str, day: str, expression: str, expected: list[str]
) -> None:
    assert on(day, expression, zone) == expected


def test_asked_in_the_second_pass_of_an_hour_its_fires_are_over() -> None:
    """02:10 the second time, 01:10 UTC: what fired at 02:30 the first time does not come back."""
    cron = Cron("30 2 * * *", BERLIN)
    assert cron.next_after(datetime(2026, 10, 25, 1, 10, tzinfo=UTC)) == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "edge"),
    [
        (BERLIN, datetime(2026, 3, 29, 1, tzinfo=UTC)),
        (BERLIN, datetime(2026, 10, 25, 1, tzinfo=UTC)),
        (NEW_YORK, datetime(2026, 3, 8, 7, tzinfo=UTC)),
        (NEW_YORK, datetime(2026, 11, 1, 6, tzinfo=UTC)),
        (KOLKATA, datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ],
)
@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        ("@hourly", 60),
        ("17 * * * *", 60),
        ("17 0-23 * * *", 60),
        ("*/15 * * * *", 15),
        ("0/20 */1 * * *", 20),
        ("* * * * *", 1),
    ],
)
def test_what_fires_every_hour_follows_real_time(zone: str, edge: datetime, expression: str, minutes: int) -> None:
    fires = list(Cron(expression, zone).fires(edge - timedelta(hours=6), edge + timedelta(hours=6)))
    assert len(fires) == 12 * 60 // minutes
    assert {b - a for a, b in pairwise(fires)} == {timedelta(minutes=minutes)}


@pytest.mark.parametrize("edge", [datetime(2026, 10, 3, 15, 30, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC)])
def test_half_hours_follow_real_time_where_clocks_move_by_half_an_hour(edge: datetime) -> None:
    """And hours keep to the minute on the wall: the one interval across the edge takes 90 minutes."""
    start, end = edge - timedelta(hours=6), edge + timedelta(hours=6)
    halves = list(Cron("*/30 * * * *", LORD_HOWE).fires(start, end))
    assert {b - a for a, b in pairwise(halves)} == {timedelta(minutes=30)}
    hours = list(Cron("@hourly", LORD_HOWE).fires(start, end))
    assert {fire.astimezone(ZoneInfo(LORD_HOWE)).minute for fire in hours} == {0}
    assert sorted(b - a for a, b in pairwise(hours))[-2:] == [timedelta(minutes=60), timedelta(minutes=90)]
    assert min(b - a for a, b in pairwise(hours)) == timedelta(minutes=60)


@pytest.mark.parametrize("zone", [BERLIN, NEW_YORK, LORD_HOWE, KOLKATA])
@pytest.mark.parametrize("expression", ["30 2 * * *", "30 1 * * *", "0 2 * * *", "45 1 * * *", "0 0 * * *"])
def test_a_daily_schedule_fires_once_on_every_day_of_the_year(zone: str, expression: str) -> None:
    tz = ZoneInfo(zone)
    start = datetime(2026, 1, 1, tzinfo=tz).astimezone(UTC) - timedelta(seconds=1)
    end = datetime(2027, 1, 1, tzinfo=tz).astimezone(UTC) - timedelta(seconds=1)
    days = [fire.astimezone(tz).date() for fire in Cron(expression, zone).fires(start, end)]
    assert len(days) == len(set(days)) == 365
