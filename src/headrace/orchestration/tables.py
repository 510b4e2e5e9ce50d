"""Tasks over the chunks of a table, and the collector of their results."""

import builtins
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, cast, override

from headrace.core.errors import ArgumentError, EntrypointError
from headrace.core.task import NewTask
from headrace.data.operations.callbacks import found_at
from headrace.data.operations.flows import Step
from headrace.data.operations.launching import FutureObject
from headrace.orchestration.context import current_app, get_current_job_id, remembered
from headrace.orchestration.jobs import prepared
from headrace.workflows.base import Reference
from headrace.workflows.compose import chord, group
from headrace.workflows.value import Existing, Output

if TYPE_CHECKING:
    from headrace.workflows.plan import Planner

CHUNK_SIZE = 10_000


class ResultCollector:
    """The results of chunk tasks, in the order of the chunks: `await collector` gives an Object where each of them gave
    one, else the list. TaskFailed when a chunk failed.

    Do not wait for it inside the task that made it: that one would keep its place from those it waits for.
    """

    def __init__(self, handle: Any, *, job_id: int, num_chunks: int) -> None:
        self._handle = handle
        self.job_id = job_id
        self.num_chunks = num_chunks

    async def aresult(self, timeout: float | None = None) -> Any:
        return _opened(await self._handle.aresult(timeout))

    def result(self, timeout: float | None = None) -> Any:
        return _opened(self._handle.result(timeout))

    def __await__(self) -> Generator[Any, Any, Any]:
        return self.aresult().__await__()


async def map(callback: str, obj: Any, *, chunk_size: int = CHUNK_SIZE, **options: Any) -> ResultCollector:
    """Inside a task: a task for each chunk of an object, which is called with `table_id, offset, limit`, and a
    collector of their results, all in one transaction. EntrypointError, and nothing is written, when the callback
    cannot be imported."""
    job_id, app = get_current_job_id(), current_app()
    if not isinstance(callback, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise EntrypointError(f"map takes the dotted path of a function, not {callback!r}; obj.map takes functions")
    found_at(callback)
    views = await obj.views(chunk_size)
    chunks: list[NewTask] = [prepared(app, callback, view.__headrace_json__(), **options) for view in views]
    step = Step(origin=app.jobs.origin, function=collect_results)
    (handle,) = await app.jobs.aadd(job_id, chord(cast("Any", group(*chunks)), step.s(to=app.data.new_id())))
    return ResultCollector(handle, job_id=job_id, num_chunks=len(chunks))


async def filter(callback: Any, obj: Any, *, chunk_size: int = CHUNK_SIZE, **options: Any) -> FutureObject:
    """Inside a task: the rows of an object for which the callback is true, chunk by chunk as `map`; it takes a row, or
    a table where it is annotated so, and gives whether to keep it."""
    get_current_job_id()
    return await obj.filter(callback, chunk_size, **options)


async def create_result_collector(
    job_id: int, num_chunks: int, *, tasks: Sequence[int] | None = None
) -> ResultCollector:
    """A task of the job that waits for others and gives their results in order: `tasks`, else those that were added
    here last. ArgumentError when there are not as many."""
    ids = list(tasks) if tasks is not None else [*remembered(job_id)][-num_chunks:] if num_chunks else []
    if len(ids) != num_chunks:
        raise ArgumentError(
            f"a collector of {num_chunks} chunks needs as many tasks, and {len(ids)} were added to job {job_id} here; "
            "give their ids as tasks="
        )
    app = current_app()
    step = Step(origin=app.jobs.origin, function=collect_results)
    signature = step.s(_Results(ids) if ids else [], to=app.data.new_id())
    (handle,) = await app.jobs.aadd(job_id, signature)
    return ResultCollector(handle, job_id=job_id, num_chunks=num_chunks)


def collect_results(results: builtins.list[Any], to: str) -> Any:
    """The results of chunks: where each is an object, one of that id, which an attempt that is repeated replaces; else
    the list."""
    if not results or not all(_names_table(result) for result in results):
        return results
    from headrace.data.current import current_data

    return current_data().concat([result["table_id"] for result in results], id=to, replace=True)


class _Results(Reference):
    """The results of tasks that are in the ledger, as a list."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = ids

    @override
    def output(self, planner: "Planner") -> Output:
        return Output(value=[Existing(id) for id in self._ids])


def _names_table(value: Any) -> bool:
    return isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"table_id"}


def _opened(value: Any) -> Any:
    if not _names_table(value):
        return value
    from headrace.data.objects import Object

    return Object.load(value)
