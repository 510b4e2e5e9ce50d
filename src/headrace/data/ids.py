"""Ids of objects: `obj_` and 26 characters that sort by time; a suffix names a part of one."""

import re
import secrets

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
# Fit for a folder, a table in a database and a URL, whatever the place.
_ID = re.compile(r"obj_[0-9a-z][0-9a-z_]{0,79}")


def new_id(now: float) -> str:
    """`now` is seconds since the epoch. Two of the same millisecond differ by 80 random bits."""
    number = (int(now * 1000) & (1 << 48) - 1) << 80 | secrets.randbits(80)
    return "obj_" + "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def is_id(text: object) -> bool:
    return isinstance(text, str) and _ID.fullmatch(text) is not None
