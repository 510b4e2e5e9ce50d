"""Errors that are the same but for their numbers, ids and texts. Pure.

"user 17 has no mail" and "user 4711 has no mail" are one failure to whoever reads a list of them.
"""

import hashlib
import re

_LONGEST = 300  # characters of a message that tell failures apart
# In this order: what is longer is taken first.
_VARYING = (
    (re.compile(r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"), "#"),  # UUIDs
    (re.compile(r"\b\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?"), "#"),  # instants
    (re.compile(r"0x[0-9a-fA-F]+"), "#"),
    (re.compile(r"\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b"), "#"),  # digests
    (re.compile(r"'[^'\n]{1,200}'"), "'…'"),
    (re.compile(r'"[^"\n]{1,200}"'), '"…"'),
    (re.compile(r"\d+(?:[.,:]\d+)*"), "#"),
)


def likeness(message: str | None) -> str:
    """What the messages of one failure have in common; the first line of them."""
    first = (message or "").strip().partition("\n")[0][:_LONGEST]
    for pattern, mark in _VARYING:
        first = pattern.sub(mark, first)
    return first


def failure_key(error_class: str | None, message: str | None) -> str:
    """The same for all of one failure, in every process."""
    text = f"{error_class or ''}\0{likeness(message)}"
    return hashlib.blake2b(text.encode(errors="replace"), digest_size=10).hexdigest()
