"""Secrets that were not shown: what stands in their place is never taken for a value."""

from collections.abc import Iterator
from typing import Any, cast

from headrace.server.problems import Problem
from headrace.telemetry.redaction import REDACTED

_KEEP = "give its value, or name the argument in `keep` to take it as it was"


def refuse_redacted(value: Any, *, title: str = "Bad copy", instead: str = _KEEP) -> None:
    """Whoever sends back what they were shown would write the mark over the secret. Raises Problem(422)."""
    place = next(_redacted(value, ""), None)
    if place is not None:
        raise Problem(
            422,
            title,
            f"{place} has {REDACTED!r}, which stands for a secret that is not shown: {instead}",
            pointer=place,
        )


def _redacted(value: Any, pointer: str) -> Iterator[str]:
    match value:
        case str():
            if REDACTED in value:
                yield pointer
        case dict():
            for name, each in cast("dict[str, Any]", value).items():
                yield from _redacted(each, f"{pointer}/{name}")
        case list():
            for place, each in enumerate(cast("list[Any]", value)):
                yield from _redacted(each, f"{pointer}/{place}")
        case _:
            pass
