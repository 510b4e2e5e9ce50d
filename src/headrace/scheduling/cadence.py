"""What a schedule follows: `Cron`, `Every` or `Once`, and the form in which it is stored."""

from datetime import datetime
from typing import Any, cast

import orjson

from headrace.core.errors import OptionError
from headrace.scheduling.base import Cadence
from headrace.scheduling.cron import Cron
from headrace.scheduling.interval import Every, Once

__all__ = ["Cadence", "Cron", "Every", "Once", "cadence_from_json", "cadence_to_json"]


def cadence_to_json(cadence: Cadence) -> str:
    """Stored form. Equal cadences have equal texts, so a changed declaration is seen by comparing them."""
    match cadence:
        case Cron():
            stored = {"kind": "cron", "expression": cadence.expression, "tz": cadence.tz}
        case Every():
            seconds = cadence.interval.total_seconds()  # exact: a hundred years of microseconds fit a double
            stored = {"kind": "every", "seconds": seconds, "anchor": cadence.anchor.isoformat()}
        case Once():
            stored = {"kind": "once", "at": cadence.at.isoformat()}
        case _:
            raise TypeError(f"a cadence is a Cron, an Every or a Once, not {cadence!r}")
    return orjson.dumps(stored).decode()


def cadence_from_json(text: str) -> Cadence:
    """The cadence of a row. It is checked again: who wrote it may know more kinds, or more time zones, than we do."""
    try:
        stored: object = orjson.loads(text)
        match cast(Any, stored):
            case {"kind": "cron", "expression": str(expression), "tz": str(tz)}:
                return Cron(expression, tz)
            case {"kind": "every", "seconds": int() | float() as seconds, "anchor": str(anchor)}:
                return Every(seconds, datetime.fromisoformat(anchor))
            case {"kind": "once", "at": str(at)}:
                return Once(datetime.fromisoformat(at))
            case _:
                pass
    except OptionError:
        raise
    except ValueError:  # no JSON, or no instant
        pass
    raise OptionError(
        f"{text[:200]!r} is no cadence that this version of headrace can read; upgrade it, or write the schedule anew"
    )
