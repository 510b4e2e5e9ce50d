"""What somebody does to accounts by the command line is on the audit log, as what comes by HTTP is."""

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headrace.store.base import Store

DONE = "done"


def actor() -> str:
    """Who types: the user of the operating system."""
    import getpass

    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError):  # one without a name, as in some containers
        return f"cli:{os.getuid()}"


@asynccontextmanager
async def audited(
    store: "Store", act: str, subject: str, detail: Mapping[str, Any] | None = None
) -> AsyncGenerator[None]:
    """On the list before it is done; how it ended, after."""
    from headrace.core import payload
    from headrace.core.accounts import NewAudit

    entry = NewAudit(actor=actor(), act=act, subject=subject, detail=payload.dumps(dict(detail or {})))
    ids = await store.write_audit([entry])
    try:
        yield
    except BaseException as error:
        await store.close_audit(ids, str(error) or type(error).__name__)
        raise
    await store.close_audit(ids, DONE)
