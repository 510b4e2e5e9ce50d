"""From what a caller filters by to what is searched, and to the page that they are shown."""

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated

from fastapi import Query, Request, Response

from headrace.app import App
from headrace.client.searching import Search, count, search
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter
from headrace.server.models.counts import MOST_COUNTED, Count
from headrace.server.models.tasks import BulkAnswer, TaskPage
from headrace.server.overview.showing import searched
from headrace.server.paging import encode, link_next, search_place
from headrace.server.seeing import Seeing

Words = Annotated[list[Annotated[str, Query(max_length=300, pattern=r"^[^\x00]*$")]], Query(max_length=100)]
Word = Annotated[str | None, Query(min_length=1, max_length=300, pattern=r"^[^\x00]*$")]

_PATIENCE = 0.15  # seconds in which a page looks at tasks one by one
_COUNTING = 2.0  # seconds for the count before a bulk act
_OPEN = "*"


def sought(
    app: App,
    *,
    states: Iterable[TaskState] = (),
    queues: Iterable[str] = (),
    names: Iterable[str] = (),
    errors: Iterable[str] = (),
    tags: Iterable[str] = (),
    text: str | None = None,
    ids: Iterable[int] = (),
    job: int | None = None,
    worker: str | None = None,
    dead_letter: bool | None = None,
    owner: str | None = None,
    failure: str | None = None,
    until: datetime | None = None,
    limit: int | None = None,
) -> Search:
    """A name that ends with * is a beginning."""
    named = tuple(names)
    criteria = TaskFilter(
        states=tuple(states),
        queues=tuple(queues),
        names=tuple(name for name in named if not name.endswith(_OPEN)),
        job=job,
        worker=worker,
        dead_letter=dead_letter,
        owner=owner,
    )
    return Search(
        criteria=criteria,
        prefixes=tuple(name.removesuffix(_OPEN) for name in named if name.endswith(_OPEN)),
        errors=tuple(errors),
        tags=tuple(tags),
        text=text,
        failure=failure,
        ids=tuple(dict.fromkeys(ids)),
        until=until,
        limit=limit,
        shown=app.redaction.text,
    )


async def found_page(
    app: App, wanted: Search, request: Request, response: Response, *, limit: int, cursor: str | None
) -> TaskPage:
    place = search_place(cursor)
    found = await app.engine.run(lambda store: search(store, wanted, place=place, limit=limit, seconds=_PATIENCE))
    next = None if found.place is None else encode(*found.place)
    link_next(request, response, next)
    seeing = Seeing(app)
    items = [seeing.summary(record) for record in found.records]
    return TaskPage(items=items, next=next, searched=searched(found.looked))


async def counted(app: App, wanted: Search) -> BulkAnswer:
    """Before the act."""
    found = await app.engine.run(lambda store: count(store, wanted, most=MOST_COUNTED, seconds=_COUNTING))
    return BulkAnswer(dry_run=True, count=Count(n=found.n, more=found.more), answers={}, until=found.until)


def acted(answers: dict[str, int]) -> BulkAnswer:
    return BulkAnswer(dry_run=False, count=Count(n=sum(answers.values()), more=False), answers=answers, until=None)
