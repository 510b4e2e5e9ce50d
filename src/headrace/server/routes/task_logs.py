"""/tasks/{id}/logs: what a task said, page by page, by a word, or as a file."""

from collections.abc import AsyncGenerator, Sequence
from datetime import UTC
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from headrace.app import App
from headrace.core.accounts import Scope
from headrace.server.access import TheApp, permit
from headrace.server.auth.caller import Caller
from headrace.server.finding import seen_task
from headrace.server.models.base import LARGEST, PathId
from headrace.server.models.tasks import LogLineShown, LogPage
from headrace.server.paging import Cursor, decode, encode, link_next
from headrace.server.seeing import Seeing
from headrace.store.base import LogLine, Store

router = APIRouter(prefix="/tasks", tags=["tasks"])

Reader = Annotated[Caller, Depends(permit(Scope.READ))]
Claim = Annotated[int | None, Query(ge=0, le=LARGEST, description="Of this execution alone")]
Lines = Annotated[int, Query(ge=1, le=5000, description="At most so many")]
Word = Annotated[str | None, Query(min_length=1, max_length=300, pattern=r"^[^\x00]*$")]
_AT_ONCE = 1000  # lines of one query
_LOOKED_AT = 20_000  # lines that one page of a search goes through
_TEXT: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/plain": {"schema": {"type": "string"}}}, "description": "All its lines"}
}

type Place = tuple[int, int]


@router.get("/{id}/logs")
async def list_logs(
    id: PathId,
    request: Request,
    response: Response,
    app: TheApp,
    caller: Reader,
    claim: Claim = None,
    search: Annotated[Word, Query(description="In what is shown, in whatever case")] = None,
    stream: Annotated[Word, Query(examples=["info"])] = None,
    limit: Lines = 500,
    cursor: Cursor = None,
) -> LogPage:
    """What the task logged, in order. A search goes through 20,000 lines for a page: then it may have few, or none."""
    await seen_task(app, caller, id)
    seen = None if cursor is None else cast("Place", decode(cursor, 2, most=LARGEST))
    word = None if search is None else search.casefold()
    items: list[LogLineShown] = []
    looked, next = 0, None
    while True:
        # Others are served between two queries: to take secrets out of thousands of lines takes its time.
        at_once = min(_AT_ONCE, limit - len(items)) if word is None and stream is None else _AT_ONCE
        lines = await _lines(app, id, claim, seen, at_once)
        seeing = Seeing(app)
        for line in lines:
            seen = (line.claim_no, line.seq)
            if stream is not None and line.stream != stream:
                continue
            shown = seeing.line(line)
            if word is None or word in shown.line.casefold():
                items.append(shown)
                if len(items) == limit:
                    break
        looked += len(lines)
        if len(items) == limit or (len(lines) == at_once and looked >= _LOOKED_AT):
            next = None if seen is None else encode(*seen)
            break
        if len(lines) < at_once:
            break
    link_next(request, response, next)
    return LogPage(items=items, next=next)


@router.get("/{id}/logs/download", response_class=Response, responses=_TEXT)
async def download_logs(id: PathId, app: TheApp, caller: Reader, claim: Claim = None) -> Response:
    """All its lines as a text file, in order."""
    await seen_task(app, caller, id)
    name = f"task-{id}.log" if claim is None else f"task-{id}-claim-{claim}.log"
    return StreamingResponse(
        _text(app, id, claim),
        media_type="text/plain; charset=utf-8",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


async def _text(app: App, id: int, claim: int | None) -> AsyncGenerator[bytes]:
    seeing, seen = Seeing(app), None
    while lines := await _lines(app, id, claim, seen, _AT_ONCE):
        yield "".join(_written(seeing.line(line)) for line in lines).encode(errors="replace")
        seen = (lines[-1].claim_no, lines[-1].seq)


def _written(line: LogLineShown) -> str:
    at = line.at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{at} [{line.claim_no}] {line.stream}: {line.line}\n"


async def _lines(app: App, id: int, claim: int | None, seen: Place | None, limit: int) -> Sequence[LogLine]:
    async def read(store: Store) -> Sequence[LogLine]:
        return await store.logs(id, claim_no=claim, seen=seen, limit=limit)

    return await app.engine.run(read)
