"""Acts that are on the list before they are done."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from fastapi import Request

from headrace.server.auth.caller import Caller


@asynccontextmanager
async def audited(
    request: Request, caller: Caller, act: str, subject: str, detail: Mapping[str, Any] | None = None
) -> AsyncGenerator[None]:
    yield
