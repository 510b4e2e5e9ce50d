"""Amounts of memory as users write them (bytes, "512MB", "2GiB"), checked once at the edge."""

import re

from headrace.core.errors import OptionError

type Memory = int | str

_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
# Less than any process of Python needs: a mistake in units.
_LEAST = 1_000_000


def memory_bytes(value: Memory, *, name: str) -> int:
    """`value` in bytes; KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024. A refusal names the option."""
    if isinstance(value, str):
        found = _AMOUNT.fullmatch(value.strip())
        if found is None or (found[3] and not found[2]):
            raise OptionError(f"{name}={value!r} is no amount of memory; write 512MB, 2GiB or a number of bytes")
        amount = int(float(found[1]) * (1024 if found[3] else 1000) ** _POWERS[found[2].lower()])
    else:
        amount = value
    if isinstance(amount, bool) or not isinstance(amount, int):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise OptionError(f"{name} must be a number of bytes or a text like '512MB', not {value!r}")
    if amount < _LEAST:
        raise OptionError(f"{name}={value!r} is less than any process needs; write it with its unit, as in 512MB")
    return amount


def shown_memory(amount: int) -> str:
    """Three digits and a unit, in powers of 1000."""
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if amount >= size:
            return f"{amount / size:.3g} {unit}" if amount < 1000 * size else f"{amount // size} {unit}"
    return f"{amount // 1000} KB"
