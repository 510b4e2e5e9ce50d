"""Instants as people write them on a command line."""

from datetime import UTC, datetime, timedelta

from headrace.cli.failures import CommandError
from headrace.core.durations import written_seconds
from headrace.core.errors import OptionError


def instant_before(text: str, now: datetime) -> datetime:
    """`90s`, `15m`, `2h`, `3d`, `1w` ago, or an ISO instant; one without a zone is UTC."""
    text = text.strip()
    try:
        if text.endswith(("s", "m", "h", "d", "w")):  # digits alone are a date
            return now - timedelta(seconds=written_seconds(text, name="time"))
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (OptionError, OverflowError, ValueError):
        raise _refused(text) from None


def _refused(text: str) -> CommandError:
    return CommandError(f"{text!r} is no time: write 90s, 15m, 2h, 3d or 1w for so long ago, or 2026-05-01T08:00")
