"""Which expressions and zones are taken, what they mean, and the sentence with which others are refused."""

import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.scheduling.cadence import Cron

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday


def days(expression: str, n: int) -> list[str]:
    return [fire.strftime("%a %d %b %H:%M") for fire in Cron(expression).upcoming(n, after=NEW_YEAR)]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("*/20 9 * * *", ["Thu 01 Jan 09:00", "Thu 01 Jan 09:20", "Thu 01 Jan 09:40"]),
        ("5/25 9 * * *", ["Thu 01 Jan 09:05", "Thu 01 Jan 09:30", "Thu 01 Jan 09:55"]),
        ("0 8-10/2,23 * * *", ["Thu 01 Jan 08:00", "Thu 01 Jan 10:00", "Thu 01 Jan 23:00"]),
        ("0 0 * feb-Mar mon", ["Mon 02 Feb 00:00", "Mon 09 Feb 00:00", "Mon 16 Feb 00:00"]),
        ("0 0 * * 7", ["Sun 04 Jan 00:00", "Sun 11 Jan 00:00", "Sun 18 Jan 00:00"]),
        ("0 0 * * 5-7", ["Fri 02 Jan 00:00", "Sat 03 Jan 00:00", "Sun 04 Jan 00:00"]),
        ("0 0 13 * FRI", ["Fri 02 Jan 00:00", "Fri 09 Jan 00:00", "Tue 13 Jan 00:00"]),  # either day
        ("0 0 */2 * FRI", ["Fri 09 Jan 00:00", "Fri 23 Jan 00:00", "Fri 13 Feb 00:00"]),  # both: one starts with *
        ("0 0 L * *", ["Sat 31 Jan 00:00", "Sat 28 Feb 00:00", "Tue 31 Mar 00:00"]),
        ("0 0 * * MON#2", ["Mon 12 Jan 00:00", "Mon 09 Feb 00:00", "Mon 09 Mar 00:00"]),
        ("@hourly", ["Thu 01 Jan 01:00", "Thu 01 Jan 02:00", "Thu 01 Jan 03:00"]),
        ("@daily", ["Fri 02 Jan 00:00", "Sat 03 Jan 00:00", "Sun 04 Jan 00:00"]),
        ("@midnight", ["Fri 02 Jan 00:00", "Sat 03 Jan 00:00", "Sun 04 Jan 00:00"]),
        ("@weekly", ["Sun 04 Jan 00:00", "Sun 11 Jan 00:00", "Sun 18 Jan 00:00"]),
        ("@monthly", ["Sun 01 Feb 00:00", "Sun 01 Mar 00:00", "Wed 01 Apr 00:00"]),
        (" @Yearly ", ["Fri 01 Jan 00:00", "Sat 01 Jan 00:00", "Mon 01 Jan 00:00"]),
        ("@annually", ["Fri 01 Jan 00:00", "Sat 01 Jan 00:00", "Mon 01 Jan 00:00"]),
    ],
)
def test_what_an_expression_means(expression: str, expected: list[str]) -> None:
    assert days(expression, 3) == expected


def test_a_rare_day_is_found_and_its_year_is_right() -> None:
    assert Cron("0 0 29 2 *").next_after(NEW_YEAR) == datetime(2028, 2, 29, tzinfo=UTC)
    assert Cron("0 0 29 2 */7").next_after(datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2128, 2, 29, tzinfo=UTC)


@pytest.mark.parametrize(
    ("expression", "told"),
    [
        ("* * * *", "'* * * *' has 4 fields; it must have exactly 5"),
        ("* * * * * *", "has 6 fields; it must have exactly 5"),
        ("", "has 0 fields"),
        ("*", "has 1 field;"),
        ("60 * * * *", "the minute field of the cron expression '60 * * * *' has '60'; it takes 0 to 59"),
        ("* 24 * * *", "the hour field of the cron expression '* 24 * * *' has '24'; it takes 0 to 23"),
        ("* * 0 * *", "day of month field of the cron expression '* * 0 * *' has '0'; it takes 1 to 31"),
        ("* * * 13 *", "month field of the cron expression '* * * 13 *' has '13'; it takes 1 to 12 or JAN to DEC"),
        ("* * * * 8", "day of week field of the cron expression '* * * * 8' has '8'; it takes 0 to 7 or SUN to SAT"),
        ("* * * MON *", "month field of the cron expression '* * * MON *' has 'MON'"),
        ("1,70,2 * * * *", "has '70'"),
        ("30-10 * * * *", "has '30-10'; it takes 0 to 59, `*`, and of these ranges from low to high"),
        ("*/0 * * * *", "has '*/0'"),
        ("*/-1 * * * *", "has '*/-1'"),
        ("1,,2 * * * *", "an empty part (a comma too many?)"),
        ("٣ * * * *", "has '٣'"),
        ("9" * 450 + " * * * *", "has '999"),
        ("9" * 5000 + " * * * *", "at most 500 characters"),
        ("0 0 30 2 *", "'0 0 30 2 *' never fires: no date has that month, day of month and day of week"),
        ("0 0 31 4,6 *", "never fires"),
        ("0 0 */20 * 1L", "never fires"),
        ("@fortnightly", "no alias of a cron expression; there are @yearly"),
        ("@reboot", "enqueue the task where the program starts"),
        (5, "text such as '*/5 * * * *', not 5"),
    ],
)
def test_a_bad_expression_is_refused_in_one_sentence(expression: str, told: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cron(expression)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Europe/Berln", "unknown time zone 'Europe/Berln': did you mean Europe/Berlin"),
        ("europe/berlin", "write 'Europe/Berlin'"),
        ("new york", "did you mean America/New_York"),
        ("Europe", "did you mean Europe/"),
        ("", "an IANA name such as 'Europe/Berlin'"),
        ("../../etc/passwd", "unknown time zone"),
        ("/etc/localtime", "unknown time zone"),
        ("localtime", "unknown time zone"),
        ("right/Europe/Berlin", "did you mean Europe/Berlin"),
        ("UTC+\0", "unknown time zone"),
        ("\ud800", "unknown time zone"),
        ("x" * 5000, "unknown time zone"),
        (timezone(timedelta(hours=2)), "as in tz='Europe/Berlin'"),
    ],
)
def test_an_unknown_zone_is_refused_and_a_near_one_named(zone: str, told: str) -> None:
    with pytest.raises(OptionError) as caught:
        Cron("* * * * *", zone)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40) | st.text("0123456789*/-,#LWMONFEB @", max_size=30))
def test_any_text_is_taken_or_refused_and_never_breaks(text: str) -> None:
    try:
        cron = Cron(text)
    except OptionError:
        return
    assert len(cron.expression.split()) == 5
    assert cron.next_after(NEW_YEAR) is not None
    assert cron.describe().endswith(" (UTC)")


def test_spaces_and_aliases_are_kept_as_five_fields() -> None:
    assert Cron("  0\t2   * * 1-5\n").expression == "0 2 * * 1-5"
    assert Cron("@daily", "Asia/Tokyo") == Cron("0 0 * * *", "Asia/Tokyo") != Cron("0 0 * * *")
    assert hash(Cron("@daily")) == hash(Cron("0 0 * * *"))
    assert repr(Cron("@daily")) == "Cron(expression='0 0 * * *', tz='UTC')"


def test_a_sentence_for_people() -> None:
    assert Cron("0 2 * * 0", "Europe/Berlin").describe() == "At 02:00 on Sunday (Europe/Berlin)"


def test_instants_come_in_any_zone_and_go_out_in_utc() -> None:
    tokyo = timezone(timedelta(hours=9))
    found = Cron("@daily", "Asia/Tokyo").next_after(datetime(2026, 1, 1, 0, 30, tzinfo=tokyo))
    assert found == datetime(2026, 1, 1, 15, tzinfo=UTC)
    assert found.tzinfo is UTC
    with pytest.raises(OptionError, match="must have a time zone"):
        Cron("@daily").next_after(datetime(2026, 1, 1))  # noqa: DTZ001


def test_strictly_after_to_the_microsecond() -> None:
    cron = Cron("@hourly")
    one = datetime(2026, 1, 1, 1, tzinfo=UTC)
    assert cron.next_after(one - timedelta(microseconds=1)) == one
    assert cron.next_after(one) == one + timedelta(hours=1)
    assert cron.next_after(one + timedelta(microseconds=1)) == one + timedelta(hours=1)


def test_the_end_of_the_calendar_is_an_end() -> None:
    last = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)
    for expression in ("* * * * *", "0 0 * * *", "0 0 29 2 *"):
        for zone in ("UTC", "America/New_York", "Asia/Tokyo"):
            assert Cron(expression, zone).next_after(last) is None


def test_it_travels_between_processes() -> None:
    cron = Cron("@daily", "Europe/Berlin")
    again = pickle.loads(pickle.dumps(cron))
    assert again == cron
    assert again.next_after(NEW_YEAR) == cron.next_after(NEW_YEAR)
