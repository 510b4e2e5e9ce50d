"""What `obj.map(…)` and its kin do: check everything, then write one graph."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.core.errors import DataError
from headrace.data.operations.callbacks import Given, callback
from headrace.data.operations.flows import Maker, Slice
from headrace.data.operations.launching import FutureObject, launched, launcher
from headrace.data.threads import in_thread
from headrace.workflows.base import Flow

if TYPE_CHECKING:
    from headrace.data.objects import Rows

type Made = tuple[str, Flow[Any], str]  # the id of what comes out, its graph, and the name of a job of its own


async def map_rows(
    rows: "Rows", fn: Given, chunk_size: int, *, schema: Any, mode: str | None, **options: Any
) -> FutureObject:
    def plan(maker: Maker) -> tuple[Flow[Any], str]:
        found, cut = callback(fn, mode), _slice(rows, chunk_size)
        return maker.map(cut, found, _schema(schema), rows.known().schema), f"map {found.path}"

    return await _done(rows, plan, options)


async def filter_rows(rows: "Rows", fn: Given, chunk_size: int, *, mode: str | None, **options: Any) -> FutureObject:
    def plan(maker: Maker) -> tuple[Flow[Any], str]:
        found, cut = callback(fn, mode), _slice(rows, chunk_size)
        return maker.filter(cut, found, rows.known().schema), f"filter {found.path}"

    return await _done(rows, plan, options)


async def reduce_rows(rows: "Rows", fn: Given, chunk_size: int, *, mode: str | None, **options: Any) -> FutureObject:
    def plan(maker: Maker) -> tuple[Flow[Any], str]:
        found, cut = callback(fn, mode, rows=2), _slice(rows, chunk_size)
        return maker.reduce(cut, found, rows.known().schema), f"reduce {found.path}"

    return await _done(rows, plan, options)


async def sort_rows(rows: "Rows", by: Any, chunk_size: int, **options: Any) -> FutureObject:
    def plan(maker: Maker) -> tuple[Flow[Any], str]:
        from headrace.data.operations.shuffling import sort_keys

        schema, cut = rows.known().schema, _slice(rows, chunk_size)
        keys = sort_keys(by, schema)
        flow = maker.sort(cut, keys, schema) if len(cut) else maker.nothing(schema)
        return flow, f"sort by {', '.join(name for name, _ in keys)}"

    return await _done(rows, plan, options)


async def join_rows(
    rows: "Rows", other: "Rows", on: Any, how: str, chunk_size: int, *, suffix: str, **options: Any
) -> FutureObject:
    def plan(maker: Maker) -> tuple[Flow[Any], str]:
        from headrace.data.operations.shuffling import checked_join

        if not hasattr(other, "known"):
            raise DataError(f"join takes another object or view, not {other!r}")
        if other.data.url != rows.data.url:
            raise DataError(
                f"{other!r} is kept in {other.data.url} and {rows!r} in {rows.data.url}; join needs one place"
            )
        left, right = _slice(rows, chunk_size), _slice(other, chunk_size)
        keys, schema = checked_join(rows.known().schema, other.known().schema, on, how, suffix)
        # Without rows on one side the answer is known, or needs only the other one.
        if not len(left) or (how == "inner" and not len(right)):
            return maker.nothing(schema), f"join on {', '.join(keys)}"
        return maker.join(left, right, keys, how, suffix, schema), f"join on {', '.join(keys)}"

    return await _done(rows, plan, options)


async def _done(rows: "Rows", plan: Callable[[Maker], tuple[Flow[Any], str]], options: dict[str, Any]) -> FutureObject:
    """Planning blocks: it imports the callback and asks the place."""

    def made() -> Made:
        data = rows.data
        to = data.new_id()
        flow, name = plan(Maker(origin=launcher(data).origin, to=to, shared=data.backend.shared, options=options))
        return to, flow, name

    to, flow, name = await in_thread(made)()
    return await launched(rows.data, flow, to, name=name)


def _slice(rows: "Rows", chunk_size: Any) -> Slice:
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int) or chunk_size < 1:
        raise DataError(f"chunk_size is a number of rows from 1 on, not {chunk_size!r}")
    start, end = rows.span()
    return Slice(id=rows.id, start=start, end=end, chunk_size=chunk_size)


def _schema(given: Any) -> Any:
    if given is None:
        return None
    from headrace.data.formats.schemas import checked_schema

    return checked_schema(given)
