"""A job's graph out of the store: page by page, with nothing kept that the drawing does not need."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from headrace.cli.graph.folding import Folded, Folding
from headrace.cli.output import print_json_part, redacted, visible
from headrace.core.errors import NotFound
from headrace.core.task import Edge, JobHooks, JobRecord, Outlined
from headrace.store.base import Store

_PAGE = 10_000
WHOLE = 24  # a job of no more tasks than this is drawn task by task


async def the_job(store: Store, job: int) -> JobRecord:
    record = await store.get_job(job)
    if record is None:
        raise NotFound(f"no job {job}; it never existed, or it ended longer ago than history is kept")
    return record


async def folded(store: Store, record: JobRecord, *, whole: bool) -> Folded:
    folding = Folding(whole=whole or record.total <= WHOLE)
    async for page, edges in pages(store, record.id):
        upstream: dict[int, list[Any]] = {}
        for edge in edges:
            upstream.setdefault(edge.task, []).append((edge.upstream, edge.kind))
        for row in page:
            folding.add(_shown(row), upstream.get(row.id, ()))
    return folding.folded()


async def pages(store: Store, job: int) -> AsyncIterator[tuple[list[Outlined], Sequence[Edge]]]:
    after = 0
    while page := await store.outline(job, after=after, limit=_PAGE):
        yield page, await store.edges([row.id for row in page])
        after = page[-1].id
        if len(page) < _PAGE:
            return


async def print_json_of(store: Store, record: JobRecord, hooks: JobHooks) -> None:
    """As one JSON object, written as it is read: a page of it is in memory. Edges come behind the nodes, so the job is
    read twice."""
    print_json_part('{"job": ', record, ', "hooks": ')
    print_json_part("", hooks, ', "nodes": [')
    first = True
    async for page, _ in pages(store, record.id):
        for row in page:
            print_json_part("\n" if first else ",\n", row._asdict(), "")
            first = False
    print_json_part('\n], "edges": [')
    first = True
    async for _, edges in pages(store, record.id):
        for edge in edges:
            value = {"from": str(edge.upstream), "to": str(edge.task), "kind": edge.kind, "input": edge.input}
            print_json_part("\n" if first else ",\n", value, "")
            first = False
    print_json_part("\n]}\n")


def _shown(row: Outlined) -> Outlined:
    """Without secrets, and on one line: an error's message is a text of the task."""
    name = visible(row.name)
    error = None if row.error is None else visible(" ".join(redacted(row.error).split()))
    if name == row.name and error == row.error:
        return row
    return row._replace(name=name, error=error)
