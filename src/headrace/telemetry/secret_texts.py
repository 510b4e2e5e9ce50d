"""Where secrets stand in a text: after a name (`password=…`, `"token": "…"`, `--api-key …`), between tags, in URLs, and
what is one by its shape (bearer tokens, JSON Web Tokens, private keys, well-known beginnings). Pure; which names are
secret is for the caller to say.

Every search below is linear in the length of the text, whatever the text: it runs on the loops of workers. So no
pattern may begin in the middle of what another beginning has read already without a bound.
"""

import re
from functools import partial
from typing import Protocol

from headrace.telemetry.secret_escapes import without_escaped
from headrace.telemetry.secret_names import names_a_field
from headrace.telemetry.secret_prefixes import HINT as _PREFIXES
from headrace.telemetry.secret_prefixes import without_prefixed
from headrace.telemetry.secret_tags import without_tagged

# Nothing below can match a text without one of these; most texts have none.
_HINT = re.compile(rf"[=:→]|--|->|</|%(?:25)*3[ad]|bearer|basic|digest|eyJ|['\"]\s*,|{_PREFIXES}", re.IGNORECASE)

# What stands before `://`, and where a URL ends: in a list of them, before the next.
_SCHEME_OF_URL = re.compile(r"([a-z0-9+.-]{0,31})(?<=[a-z0-9+.-])://", re.IGNORECASE)
_ENDS_URL = re.compile(r"[\s\"'<>]|[,;|](?=[a-z][a-z0-9+.-]{0,30}://)", re.IGNORECASE)
_USER = re.compile(r"[^\s:/@\"'<>]*")
_PORT_AND_PATH = re.compile(r"\d{1,5}/")
# What stands alone before the `@` is a user there; elsewhere it may be a token.
_WITH_USERS = ("postgres", "mysql", "ssh", "sftp", "git+ssh", "svn+ssh")

# An ordinary word after `Basic` is none: `Basic authentication failed`.
_SHAPES = re.compile(
    r"(?P<before>\b(?:Bearer|Basic|Digest)\s+)(?!(?-i:[A-Za-z]?[a-z]{7,19})[.:]?(?![\w.~+/=-]))[A-Za-z0-9._~+/=-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE | re.DOTALL,
)
# Each run of such characters is read once, from its beginning.
_WEB_TOKEN = re.compile(
    r"(?<![\w-])(?P<before>(?:(?!(?<![A-Za-z0-9])eyJ)[\w-])*+)eyJ[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]{5,}+\.[A-Za-z0-9_-]*"
)
# A name, then what parts it from its value: `=`, `:`, an arrow, or, after dashes, a space. Quotes may stand around the
# name, in JSON within JSON escaped ones, and a bracket after them (`d['password'] = …`). Not the id of a worker on a
# host of such a name (`auth-1:4711:17948`).
_NAMED = re.compile(
    r"""(?<![\w.-])(?P<dashes>--?)?(?P<name>\w[\w.-]*+)(?P<quote>\\*+["']\]?)?"""
    r"""(?P<sign>\s*+(?:=>|->|(?<=[^-]-)>|→|!?={1,3}|:=|:(?!/|\d+:\d))\s*+|(?<=\w)[ ](?=\S))"""
)
# `('x-api-key', '…')`: two texts in brackets, the first of them a name.
_PAIR = re.compile(
    r"""[(\[]\s*+[bu]?(?P<first>\\{0,15}+["'])(?P<name>[\w.-]++)(?P=first)\s*+,\s*+[bu]?(?P<quote>\\{0,15}+["'])"""
    r"""(?P<value>(?>.*?(?P=quote)))\s*+[)\]]""",
    re.DOTALL,
)
# How an error is called is no name of a value: `KeyError: 'color'`, `fernet.InvalidToken: …`.
_ERROR = re.compile(
    r"(?:Error|Exception|Warning|Expired|Failed|Refused|Exceeded)$"
    r"|(?:^|\.)(?:Invalid|Missing|Bad|Wrong|Unknown|Unsupported|Duplicate)[A-Z]\w*$"
)
_TELLS = re.compile(r":|(?<!=)>|→")  # signs that stand in sentences as well
# Of a class only its own name counts, not the modules it is in: `shop.auth.Declined: …`.
_CLASS = re.compile(r"[A-Z]\w*")
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?%?")
_OPENING = ("{", "[", "(")
_BRACKETS = re.compile(r"[{\[(}\])]")
# A comma within a bare word may belong to it, unless another name follows.
_ENDS_BARE = re.compile(r"[\s\"'<>)\]}|]|[,;&](?=\s|\Z|[\"'\\]|[\w.-]{1,100}+\s?[=:])")
_ENDS_HEADER = re.compile(r"[\n\"']")
_HEADERS = ("authorization", "cookie")
_SCHEME = re.compile(r"(?:Bearer|Basic|Digest|Token)\s+", re.IGNORECASE)
_OPENS_QUOTED = re.compile(r"(?:[bruf]{1,2}(?=[\\\"']))?(\\*+(?:\"{3}|'{3}|[\"']))", re.IGNORECASE)
_NO_SECRETS = ("None", "null", "true", "false", "True", "False")


class IsSecret(Protocol):
    def __call__(self, name: str, /, *, of_number: bool = False) -> bool: ...


def without_secrets(text: str, *, is_secret: IsSecret, mark: str) -> str:
    """The text with `mark` in the place of each secret; the very same object where there was none."""
    if not _HINT.search(text):
        return text
    is_shown = partial(_is_shown, is_secret=is_secret, mark=mark)
    found = _without_named(text, is_secret, mark)
    if "%" in found:
        found = without_escaped(found, is_secret=is_secret, is_shown=is_shown, mark=mark)
    if "</" in found:
        found = without_tagged(found, is_secret=is_secret, is_shown=is_shown, mark=mark)
    if "," in found:
        found = _PAIR.sub(lambda match: _pair(match, is_secret, mark), found)
    if "://" in found and "@" in found:
        found = _without_users(found, mark)
    found = _SHAPES.sub(lambda match: f"{match['before'] or ''}{mark}", found)
    found = without_prefixed(found, mark)
    if "eyJ" in found:
        found = _WEB_TOKEN.sub(lambda match: match["before"] + mark, found)
    return text if found == text else found


def _without_named(text: str, is_secret: IsSecret, mark: str) -> str:
    pieces: list[str] = []
    done = place = 0
    while (match := _NAMED.search(text, place)) is not None:
        place = match.end("name")
        if match["sign"] == " " and not match["dashes"]:
            continue  # two words beside each other
        name = _name(text, match)
        if not name or not is_secret(name):
            continue
        start, end = _value(text, match.end(), name=name)
        shown = text[start:end]
        if not shown or shown in _NO_SECRETS or mark in shown or _is_count(shown, name, is_secret):
            place = max(place, end)
            continue
        pieces += [text[done:start], mark]
        done = place = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _name(text: str, match: re.Match[str]) -> str:
    """What counts of the name found; nothing where it names no value."""
    name, start = match["name"], match.start("name")
    if text[start - 1 : start] == "\\" and name[0] in "nrt":
        name = name[1:]  # the end of a line within JSON
    if match["quote"] or not _TELLS.search(match["sign"]):
        return name
    if text[max(start - 5, 0) : start] == "task " or _ERROR.search(name):
        return ""  # what messages say of `task refresh_token: …`
    own = name.rpartition(".")[2]
    return own if _CLASS.fullmatch(own) else name


def _is_count(shown: str, name: str, is_secret: IsSecret) -> bool:
    return _NUMBER.fullmatch(shown) is not None and not is_secret(name, of_number=True)


def _is_shown(value: str, name: str, *, is_secret: IsSecret, mark: str) -> bool:
    return not value or value in (mark, *_NO_SECRETS) or _is_count(value, name, is_secret)


def _pair(match: re.Match[str], is_secret: IsSecret, mark: str) -> str:
    value, quote = match["value"], match["quote"]
    if not is_secret(match["name"]) or value in (quote, mark + quote) or names_a_field(value.removesuffix(quote)):
        return match[0]
    start, end = match.start("value") - match.start(), match.end("value") - match.start()
    return f"{match[0][:start]}{mark}{quote}{match[0][end:]}"


def _without_users(text: str, mark: str) -> str:
    """`scheme://user:[redacted]@host`, and `scheme://[redacted]@host`. A password may hold `/` and `@`; what looks like
    a port and a path is none."""
    pieces: list[str] = []
    done = end = last = 0
    for match in _SCHEME_OF_URL.finditer(text):
        start = match.end()
        if start < done:
            continue
        if start >= end:
            found = _ENDS_URL.search(text, start)
            end = found.start() if found else len(text)
            last = text.rfind("@", start, end)
        if last <= start:
            continue
        colon = _USER.match(text, start).end()  # pyright: ignore[reportOptionalMemberAccess]
        begin, until = colon + 1, last
        if text[colon] == "@" and not match[1].lower().startswith(_WITH_USERS):
            slash = text.find("/", colon, end)
            begin, until = start, text.rfind("@", start, end if slash == -1 else slash)
        elif text[colon] != ":" or _PORT_AND_PATH.match(text, begin):
            continue
        if begin < until and text[begin:until] != mark:
            pieces += [text[done:begin], mark]
            done = until
    return "".join([*pieces, text[done:]]) if pieces else text


def _value(text: str, start: int, *, name: str) -> tuple[int, int]:
    """Where the value that begins here stands: inside its quotes, its brackets, or up to what ends a bare word."""
    if quoted := _OPENS_QUOTED.match(text, start):
        return quoted.end(), _end_of_quoted(text, quoted.end(), quoted[1])
    if text[start : start + 1] in _OPENING:
        return start, _end_of_brackets(text, start)
    ends = _ENDS_HEADER if name.lower().endswith(_HEADERS) else _ENDS_BARE
    scheme = _SCHEME.match(text, start)
    end = ends.search(text, scheme.end() if scheme else start)
    return start, end.start() if end else len(text)


def _end_of_quoted(text: str, start: int, quote: str) -> int:
    """Before the quote that closes it; one with more backslashes is inside."""
    place = start
    while (found := text.find(quote, place)) != -1:
        if found == start or text[found - 1] != "\\":
            return found
        place = found + 1
    return len(text)


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for bracket in _BRACKETS.finditer(text, start):
        depth += 1 if bracket[0] in _OPENING else -1
        if not depth:
            return bracket.end()
    return len(text)
