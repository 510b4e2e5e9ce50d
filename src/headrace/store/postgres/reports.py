"""Settlements as parameters of the server's `finish_v1`.

What most reports of a batch have in common is sent once: each settlement names the `kind` that it is of. The driver
looks at every element of an array from Python, so what differs from task to task travels as the text of an array.
"""

from collections.abc import Sequence
from typing import Any

from headrace.core.settlement import KIND, Settlement


def report_columns(settlements: Sequence[Settlement]) -> tuple[Any, ...]:
    """In the order of `finish_v1`: what each settlement has for itself, then the kinds."""
    kinds: list[tuple[Any, ...]] = []
    places: list[int] = []
    last: tuple[Any, ...] | None = None
    for s in settlements:
        kind = s[KIND]
        # Neighbours are compared: reports of one batch are mostly alike, and a comparison is cheaper than a hash.
        if kind != last:
            kinds.append(kind)
            last = kind
        places.append(len(kinds))
    return (
        _numbers([s.task for s in settlements]),
        _numbers([s.claim_no for s in settlements]),
        _numbers(places),
        _seconds([s.ran_for for s in settlements]),
        _texts([s.result for s in settlements]),
        *_kind_columns(kinds),
    )


def visible(text: str | None) -> str | None:
    """Text that PostgreSQL stores: a NUL is shown as its symbol, a lone surrogate as its escape."""
    if text is None:
        return None
    if "\0" in text:
        text = text.replace("\0", "\N{SYMBOL FOR NULL}")
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def _kind_columns(kinds: Sequence[tuple[Any, ...]]) -> tuple[list[Any], ...]:
    if not kinds:
        return tuple([] for _ in range(16))
    states, reasons, charged, suspect, delays, lanes, attempts, refs, ttls, errors, dead, by, executors = zip(
        *kinds, strict=True
    )
    return (
        [state.value for state in states],
        [*reasons],
        [*charged],
        [*suspect],
        [*delays],
        [*lanes],
        [*attempts],
        [*refs],
        [*ttls],
        [visible(e.error_class) if e else None for e in errors],
        [visible(e.message) if e else None for e in errors],
        [visible(e.traceback) if e else None for e in errors],
        [e.exit_code if e else None for e in errors],
        [*dead],
        [*by],
        [*executors],
    )


def _numbers(values: list[int]) -> str:
    return f"{{{str(values)[1:-1]}}}"


def _seconds(values: list[float | None]) -> str:
    """In microseconds, which is all that an instant has: half the cost of writing and reading all digits of a float."""
    return "{" + ",".join(["NULL" if value is None else f"{int(value * 1e6)}e-6" for value in values]) + "}"


def _texts(values: Sequence[str | None]) -> str:
    """Quoted, each of them, so that nothing in a text can be read as anything but text."""
    return (
        "{"
        + ",".join(
            [
                "NULL" if value is None else '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
                for value in values
            ]
        )
        + "}"
    )
