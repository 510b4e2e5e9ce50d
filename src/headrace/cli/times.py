"""Instants as people write them on a command line."""

import re
from datetime import UTC, datetime, timedelta

from headrace.cli.failures import CommandError

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhdw])")


def instant_before(text: str, now: datetime) -> datetime:
    """`90s`, `15m`, `2h`, `3d`, `1w` ago, or an ISO instant; one without a zone is UTC."""
    if span := _SPAN.fullmatch(text.strip()):
        try:
            return now - timedelta(**{_UNITS[span[2]]: float(span[1])})
        except OverflowError:
            raise _refused(text) from None
    try:
        instant = datetime.fromisoformat(text.strip())
    except ValueError:
        raise _refused(text) from None
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def _refused(text: str) -> CommandError:
    return CommandError(f"{text!r} is no time: write 90s, 15m, 2h, 3d or 1w for so long ago, or 2026-05-01T08:00")
