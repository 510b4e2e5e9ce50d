"""Where secrets stand in a text: after a name (`password=…`, `"token": "…"`, `--api-key …`), in URLs, and what is one
by its shape (bearer tokens, JSON Web Tokens, private keys). Pure; which names are secret is for the caller to say.
"""

import re
from collections.abc import Callable

# Nothing below can match a text without one of these; most texts have none.
_HINT = re.compile(r"[=:]|--|bearer|basic|eyJ", re.IGNORECASE)

# A password may hold `/` and `@`; what looks like a port and a path is none.
_URL = re.compile(r"(?P<before>\b[a-z][a-z0-9+.-]*://[^\s:/@\"'<>]*:)(?!\d{1,5}/)[^\s\"'<>]+(?=@)", re.IGNORECASE)
_SHAPES = re.compile(
    r"(?P<before>\b(?:Bearer|Basic|Digest)\s+)[A-Za-z0-9._~+/=-]{8,}"
    r"|\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# A name, then what parts it from its value: `=`, `:`, or, after dashes, a space. Quotes may stand around the name. Not
# what messages say of `task refresh_token: …`, nor the id of a worker on a host of such a name (`auth-1:4711:17948`).
_NAMED = re.compile(
    r"""(?<![\w.-])(?<!\btask )(?P<dashes>--?)?(?P<name>[A-Za-z_][\w.-]*)(?:\\?["'])?"""
    r"""(?P<sign>\s*(?:=>|=|:(?!/|\d+:\d))\s*|(?<=\w)[ ](?=\S))"""
)
# How an error is called is no name of a value: `KeyError: 'color'`.
_ERROR = re.compile(r"(?:Error|Exception|Warning|Expired|Failed|Refused|Exceeded)$")
_OPENING, _CLOSING = "{[(", "}])"
_ENDS_BARE = re.compile(r"[\s,;&\"'<>)\]}|]")
_ENDS_HEADER = re.compile(r"[\n\"']")
_HEADERS = ("authorization", "cookie")
_SCHEME = re.compile(r"(?:Bearer|Basic|Digest|Token)\s+", re.IGNORECASE)


def without_secrets(text: str, *, is_secret: Callable[[str], bool], mark: str) -> str:
    """The text with `mark` in the place of each secret; the very same object where there was none."""
    if not _HINT.search(text):
        return text
    found = _without_named(text, is_secret, mark)
    if "://" in found:
        found = _URL.sub(lambda match: match["before"] + mark, found)
    found = _SHAPES.sub(lambda match: f"{match['before'] or ''}{mark}", found)
    return text if found == text else found


def _without_named(text: str, is_secret: Callable[[str], bool], mark: str) -> str:
    pieces: list[str] = []
    done = place = 0
    while (match := _NAMED.search(text, place)) is not None:
        place = match.end("name")
        if match["sign"] == " " and not match["dashes"]:
            continue  # two words beside each other
        if not is_secret(match["name"]) or (":" in match["sign"] and _ERROR.search(match["name"])):
            continue
        start, end = _value(text, match.end(), name=match["name"])
        shown = text[start:end]
        if not shown or shown in ("None", "null", "true", "false", "True", "False") or mark in shown:
            place = max(place, end)
            continue
        pieces += [text[done:start], mark]
        done = place = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _value(text: str, start: int, *, name: str) -> tuple[int, int]:
    """Where the value that begins here stands: inside its quotes, its brackets, or up to what ends a bare word."""
    if text[start : start + 2] in ("b'", 'b"', "r'", 'r"', "f'", 'f"'):
        start += 1
    escaped = "\\" if text[start : start + 2] in ('\\"', "\\'") else ""
    start += len(escaped)
    first = text[start : start + 1]
    if first and first in "\"'":
        return start + 1, _end_of_quoted(text, start + 1, escaped + first)
    if first and first in _OPENING:
        return start, _end_of_brackets(text, start)
    ends = _ENDS_HEADER if name.lower().endswith(_HEADERS) else _ENDS_BARE
    scheme = _SCHEME.match(text, start)
    end = ends.search(text, scheme.end() if scheme else start)
    return start, end.start() if end else len(text)


def _end_of_quoted(text: str, start: int, quote: str) -> int:
    place = start
    while (found := text.find(quote, place)) != -1:
        if len(quote) > 1 or text[found - 1] != "\\":
            return found
        place = found + 1
    return len(text)


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for place in range(start, len(text)):
        if text[place] in _OPENING:
            depth += 1
        elif text[place] in _CLOSING:
            depth -= 1
            if not depth:
                return place + 1
    return len(text)
