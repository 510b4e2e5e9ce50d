"""Secrets in what was written for a URL: `password%3Dhunter2%26page%3D2`, also where it was escaped more than once.
Pure, and linear in the text.
"""

import re
from collections.abc import Callable

_AGAIN = "(?:25){0,4}"  # `%` is `%25` when it is escaped once more
# A name begins where no letter stands before it, or behind an escape; then maybe a quote, then `=` or `:`.
_NAMED = re.compile(
    rf"(?:(?<![\w.%-])|%{_AGAIN}[0-9A-Fa-f]{{2}})(?P<name>[\w.-]++)"
    rf"(?:%{_AGAIN}2[27])?%{_AGAIN}3[ADad](?P<quote>%{_AGAIN}2[27])?"
)
_PLAIN = r"[^\s\"'<>&%]"
_BARE = re.compile(rf"(?:{_PLAIN}|%(?!{_AGAIN}(?:26|2[27]|0[ADad]|3[Bb]|7[Dd])))*+")
_QUOTED = re.compile(rf"(?:{_PLAIN}|%(?!{_AGAIN}2[27]))*+")


def without_escaped(
    text: str, *, is_secret: Callable[[str], bool], is_shown: Callable[[str, str], bool], mark: str
) -> str:
    """`is_shown(value, name)`: it is no secret, although its name is one's."""
    pieces: list[str] = []
    done = place = 0
    while (match := _NAMED.search(text, place)) is not None:
        place, start = match.end("name"), match.end()
        if not is_secret(match["name"]):
            continue
        found = (_QUOTED if match["quote"] else _BARE).match(text, start)
        place = end = start if found is None else found.end()
        if not is_shown(text[start:end], match["name"]):
            pieces += [text[done:start], mark]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text
