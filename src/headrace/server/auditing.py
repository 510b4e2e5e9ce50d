"""Every act is on the list before it is done, and how it ended after.

async with audited(app, caller, "tasks.retry", f"task/{id}"):
    …
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from headrace.app import App
from headrace.core import payload
from headrace.core.accounts import NewAudit
from headrace.core.errors import PayloadError, StoreError
from headrace.server.auth.caller import Caller
from headrace.server.middleware.request_ids import request_id
from headrace.server.problems import problem_of

ANYONE_NAME = "anyone"  # who acts in a server without users
DONE = "done"
log = logging.getLogger("headrace.server")


@asynccontextmanager
async def audited(
    app: App, caller: Caller | str, act: str, subject: str, detail: Mapping[str, Any] | None = None
) -> AsyncGenerator[None]:
    """Nothing inside begins before the entry is durable. An entry without an outcome: the server died meanwhile.

    `detail` is redacted by the rules of the app; leave values out that a reader of the list must not see.
    """
    name = caller if isinstance(caller, str) else caller.name
    entry = NewAudit(
        actor=name or ANYONE_NAME, act=act, subject=subject, detail=_text(app, detail or {}), request=request_id()
    )
    ids = await app.engine.run(lambda store: store.write_audit([entry]))
    try:
        yield
    except BaseException as error:
        await asyncio.shield(_close(app, ids, outcome_of(error)))
        raise
    await asyncio.shield(_close(app, ids, DONE))


def outcome_of(error: BaseException) -> str:
    """The title of the problem that the caller is told."""
    if isinstance(error, Exception):
        problem = problem_of(error)
        return "Internal Server Error" if problem is None else problem.title
    return "interrupted"


async def _close(app: App, ids: list[int], outcome: str) -> None:
    try:
        await app.engine.run(lambda store: store.close_audit(ids, outcome))
    except StoreError as error:
        # What was done is done, and that it was begun is written: the caller must not be told to repeat it.
        log.warning("the outcome %r of audit entries %s could not be written: %s", outcome, ids, error)


def _text(app: App, detail: Mapping[str, Any]) -> str:
    """Redacted as plain JSON, so that what an enum or an instant becomes is looked at like any text."""
    try:
        plain = payload.loads(payload.dumps(dict(detail)))
    except PayloadError:
        plain = {name: repr(each) for name, each in detail.items()}
    return payload.dumps(app.redaction.value(plain))
