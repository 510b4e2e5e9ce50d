"""Whether a browser sent this from a page of ours. Browsers say so themselves; programs say nothing, and may."""

from urllib.parse import urlsplit

from starlette.requests import HTTPConnection

from headrace.server.options import is_loopback
from headrace.server.problems import Problem

_OURS = frozenset({"same-origin", "none"})


def require_same_origin(connection: HTTPConnection) -> None:
    """Problem 403 when it comes from a page of another origin."""
    site = connection.headers.get("sec-fetch-site")
    origin = connection.headers.get("origin")
    foreign = origin is not None and urlsplit(origin).netloc.lower() != connection.headers.get("host", "").lower()
    if foreign or (site is not None and site not in _OURS):
        raise Problem(403, "Forbidden", "this was sent by a page of another origin, which may not act here")


def require_loopback_name(connection: HTTPConnection) -> None:
    """A name of the Internet can be pointed to 127.0.0.1, and then its pages are of the same origin as we are."""
    host = urlsplit(f"//{connection.headers.get('host', '')}").hostname or ""
    if not is_loopback(host):
        raise Problem(403, "Forbidden", "a server without users is reached as localhost or 127.0.0.1 only")
