"""The stored form."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError
from headrace.scheduling.cadence import Cadence, Cron, Every, Once, cadence_from_json, cadence_to_json

instants = st.datetimes(
    datetime(1900, 1, 1),  # noqa: DTZ001
    datetime(2200, 1, 1),  # noqa: DTZ001
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-9, minutes=-30))]),
)
cadences = st.one_of(
    st.builds(
        Cron,
        st.sampled_from(["@daily", "*/5 9-17 * * mon-fri", "0 0 L * *"]),
        st.sampled_from(["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"]),
    ),
    st.builds(Every, st.timedeltas(timedelta(seconds=1), timedelta(days=36_000)), instants),
    st.builds(Once, instants),
)


@given(cadences)
def test_what_is_stored_comes_back(cadence: Cadence) -> None:
    text = cadence_to_json(cadence)
    assert cadence_from_json(text) == cadence
    assert cadence_to_json(cadence_from_json(text)) == text


def test_the_stored_form_is_plain() -> None:
    """It stands in databases: a change of it would need a migration."""
    assert cadence_to_json(Cron("@daily", "Asia/Tokyo")) == '{"kind":"cron","expression":"0 0 * * *","tz":"Asia/Tokyo"}'
    anchor = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))
    assert cadence_to_json(Every(90, anchor)) == '{"kind":"every","seconds":90.0,"anchor":"2026-01-01T00:00:00+00:00"}'
    assert cadence_to_json(Once(anchor)) == '{"kind":"once","at":"2026-01-01T00:00:00+00:00"}'


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{",
        '{"kind":"lunar"}',
        '{"kind":"cron","expression":"* * * * *"}',
        '{"kind":"cron","expression":5,"tz":"UTC"}',
        '{"kind":"every","seconds":"60","anchor":"2026-01-01T00:00:00+00:00"}',
        '{"kind":"once","at":"tomorrow"}',
    ],
)
def test_what_cannot_be_read_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(OptionError, match="is no cadence that this version of headrace can read"):
        cadence_from_json(text)


def test_what_is_read_is_checked_again() -> None:
    with pytest.raises(OptionError, match="unknown time zone 'Mars/Olympus'"):
        cadence_from_json('{"kind":"cron","expression":"* * * * *","tz":"Mars/Olympus"}')
    with pytest.raises(OptionError, match="must have a time zone"):
        cadence_from_json('{"kind":"once","at":"2026-01-01T00:00:00"}')
