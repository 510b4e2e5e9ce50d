"""A job's graph out of the store: page by page, with nothing kept that the drawing does not need."""

import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

from headrace.cli.graph.folding import Folded, Folding
from headrace.cli.output import as_json, redacted, visible
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


async def pages(store: Store, job: int, *, edges: bool = True) -> AsyncIterator[tuple[list[Outlined], Sequence[Edge]]]:
    """Its tasks in the order of their ids, and what they wait for."""
    after = 0
    while page := await store.outline(job, after=after, limit=_PAGE):
        yield page, await store.edges([row.id for row in page]) if edges else []
        after = page[-1].id
        if len(page) < _PAGE:
            return


async def print_json_of(store: Store, record: JobRecord, hooks: JobHooks) -> None:
    """As one JSON object, written as it is read: a page of it is in memory. Edges come behind the nodes, so the job is
    read twice."""
    _write(f'{{"job": {as_json(record)}, "hooks": {as_json(hooks)}, "nodes": [')
    written = 0
    async for page, _ in pages(store, record.id, edges=False):
        written = _write_items([_node(row) for row in page], written)
    _write('\n], "edges": [')
    written = 0
    async for _, edges in pages(store, record.id):
        written = _write_items([_edge(edge) for edge in edges], written)
    _write("\n]}\n")


def _node(row: Outlined) -> dict[str, Any]:
    """As `app.jobs.graph` has it: called by its label where it has one."""
    found = row._asdict() | {"id": str(row.id), "name": row.label or row.name, "task": row.name}
    del found["label"]
    return found | {"error": None if row.error is None else redacted(row.error)}


def _edge(edge: Edge) -> dict[str, Any]:
    passes = edge.input is not None
    return {"task": str(edge.task), "upstream": str(edge.upstream), "kind": edge.kind, "passes": passes}


def _write_items(items: Sequence[dict[str, Any]], before: int) -> int:
    import orjson

    if items:
        text = ",\n".join(orjson.dumps(item).decode() for item in items)
        _write(f"{',' if before else ''}\n{text}")
    return before + len(items)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _shown(row: Outlined) -> Outlined:
    """Without secrets, and on one line: an error's message is a text of the task."""
    if row.error is None and row.label is None and row.name.isprintable():
        return row
    label = None if row.label is None else visible(redacted(row.label))
    error = None if row.error is None else visible(" ".join(redacted(row.error).split()))
    return row._replace(name=visible(row.name), label=label, error=error)
