"""A long text in parts that each fit into one call. Pure."""

import re
from collections.abc import Iterator, Sequence

_PARAGRAPHS = re.compile(r"\n\s*\n")
_SENTENCES = re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])")
_WORDS = re.compile(r"\s+")
_LEVELS = ((_PARAGRAPHS, "\n\n"), (_SENTENCES, " "), (_WORDS, " "))


def tokens(text: str) -> int:
    """An estimate that is rather too high: four letters of ASCII are a token, anything else is one by itself."""
    plain = len(text.encode("ascii", "ignore"))
    return -(-plain // 4) + len(text) - plain


def split(text: str, limit: int) -> list[str]:
    """Parts of at most `limit` tokens, in order; together they have every letter of the text. Cut between paragraphs
    where that is possible, else between sentences, else between words, else anywhere."""
    text = text.strip()
    return list(_packed(text, limit, 0)) if text else []


def _packed(text: str, limit: int, level: int) -> Iterator[str]:
    if tokens(text) <= limit:
        yield text
        return
    if level == len(_LEVELS):
        yield from _cut(text, limit)
        return
    pattern, joint = _LEVELS[level]
    room: list[str] = []
    used = 0
    for piece in (piece.strip() for piece in pattern.split(text)):
        if not piece:
            continue
        # One for the joint, and for what rounding each piece up may hide.
        size = tokens(piece) + 1
        if room and used + size > limit:
            yield joint.join(room)
            room, used = [], 0
        if size > limit:
            *whole, last = _packed(piece, limit, level + 1)
            yield from whole
            piece, size = last, tokens(last) + 1
        room.append(piece)
        used += size
    if room:
        yield joint.join(room)


def _cut(text: str, limit: int) -> Iterator[str]:
    # A token is at least one character, so a part of so many is never too long.
    for start in range(0, len(text), limit):
        yield text[start : start + limit]


def joined(summaries: Sequence[str]) -> str:
    return "\n\n".join(summaries)
