"""A server, over HTTP: as much of what tasks need as can be seen without its database."""

from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from headrace._version import __version__
from headrace.cli.diagnosis.findings import Finding, Level, fine, problem, warning
from headrace.cli.diagnosis.ledger import clock, queues, schedules
from headrace.cli.target import shown_url
from headrace.client.reasons import LIVE
from headrace.core.errors import HeadraceError
from headrace.store.base import Store

_TIMEOUT = httpx.Timeout(10.0, connect=5.0)
_SOON = timedelta(days=7)
_ADDRESS = "see that `headrace server` or `headrace up` runs there, and that address and port are right"


async def examine_server(url: str, token: str | None, store: Store, *, thorough: bool) -> AsyncIterator[Finding]:
    """`store` speaks to that server, too. It ends where nothing behind can be reached."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=_TIMEOUT) as client:
            yield fine("url", shown_url(url))
            for path, read in (("/live", _live), ("/ready", _ready)):
                finding = read(await client.get(path))
                yield finding
                if finding.level is Level.PROBLEM:
                    return
            answer = await client.get("/api/v1/session")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        yield problem("server", f"{shown_url(url)} does not answer ({type(error).__name__}: {error})", _ADDRESS)
        return
    if not answer.is_success:
        yield _refused(answer, token)
        return
    who = answer.json()
    for finding in (_version(who["version"]), _token(who, datetime.now(UTC))):
        yield finding
    try:
        async for finding in _inside(store, sees_all=who["permissions"]["see_all"]):
            yield finding
    except HeadraceError as error:
        yield problem("server", str(error), "see the log of the server")
        return
    yield _from_here(thorough=thorough)


def _live(answer: httpx.Response) -> Finding:
    if answer.is_success and _body(answer).get("live") is True:
        return fine("server", "it answers")
    what = f"{answer.url.path} answers {answer.status_code}, and not as a headrace server does"
    return problem("server", what, f"{_ADDRESS}; the path /api/v1 is no part of it")


def _ready(answer: httpx.Response) -> Finding:
    if answer.is_success:
        return fine("database", "the server's database answers")
    said = _body(answer).get("detail") or f"/ready answers {answer.status_code}"
    return problem("database", str(said), "see that the database of the server runs, and the log of the server")


def _refused(answer: httpx.Response, token: str | None) -> Finding:
    makes = "`headrace tokens create USER` makes one where the database can be reached"
    if answer.status_code == 401:
        what = "the server does not take this token" if token else "the server has users, and no token is given"
        return problem("token", what, f"set HEADRACE_TOKEN, or App(token=…), to one that is good there; {makes}")
    said = _body(answer).get("detail") or "nothing more"
    mend = f"give a token of the scope read; {makes}" if answer.status_code == 403 else "see the log of the server"
    return problem("token", f"the server answers {answer.status_code}: {said}", mend)


def _version(found: str) -> Finding:
    if found == __version__:
        return fine("version", f"headrace {found}, there as here")
    return warning(
        "version",
        f"the server is headrace {found}, and this is {__version__}",
        "let both be of one version: what one of them does not know it refuses",
    )


def _token(who: Mapping[str, Any], now: datetime) -> Finding:
    if not who["auth"]:
        return fine("token", "none is needed: the server has no users, and everybody may do everything")
    what = f"of {who['name']}, whose role is {who['role']}, for {', '.join(who['scopes'])}"
    ends = who["expires_at"]
    if ends is None:
        return fine("token", what)
    at = datetime.fromisoformat(ends)
    what = f"{what}, until {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    if at - now < _SOON:
        return warning("token", what, f"make another before: headrace tokens create {who['name']}")
    return fine("token", what)


async def _inside(store: Store, *, sees_all: bool) -> AsyncIterator[Finding]:
    await store.open()
    before = datetime.now(UTC)
    now = await store.now()
    yield clock(before, now, datetime.now(UTC))
    for finding in queues(await store.queues(), await store.workers(states=LIVE), now):
        yield finding
    if sees_all:
        async for finding in schedules(store):
            yield finding


def _from_here(*, thorough: bool) -> Finding:
    what = "not looked at: the schema, its invariants and who holds what are seen where the database can be reached"
    mend = "headrace doctor --database URL, with the URL of the database"
    return warning("ledger", what, mend) if thorough else fine("ledger", what)


def _body(answer: httpx.Response) -> Mapping[str, Any]:
    try:
        found: Any = answer.json()
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}  # pyright: ignore[reportUnknownVariableType]
