"""Whether a browser sent this from a page of ours. Browsers say so themselves; programs say nothing, and may."""

from contextlib import suppress
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from headrace.server.options import is_loopback
from headrace.server.problems import Problem

_OURS = frozenset({"same-origin", "none"})


def require_same_origin(connection: HTTPConnection) -> None:
    """Problem 403 when it comes from a page of another origin."""
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    foreign = origin is not None and not _is_at(origin, connection.headers.get("host", ""))
    if foreign or (site is not None and site not in _OURS):
        raise Problem(403, "Forbidden", "this was sent by a page of another origin, which may not act here")


def require_loopback_name(connection: HTTPConnection) -> None:
    """A name of the Internet can be pointed to 127.0.0.1, and then its pages are of the same origin as we are."""
    host = ""
    with suppress(ValueError):  # `[` without its end is no name of ours either
        host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
    if not is_loopback(host):
        raise Problem(403, "Forbidden", "a server without users is reached as localhost or 127.0.0.1 only")


def _is_at(origin: str, host: str) -> bool:
    """Whoever writes an address that is none is not at ours."""
    try:
        return urlsplit(origin).netloc.lower() == host.lower()
    except ValueError:
        return False
