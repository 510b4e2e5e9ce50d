"""Operations handed to the ledger: into the job of the task that runs here, else into a job of their own."""

from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, override

from headrace.core.durations import Duration
from headrace.core.errors import DataError
from headrace.data.objects import Object
from headrace.executors.context import running
from headrace.workflows.base import Flow, Origin, Reference

if TYPE_CHECKING:
    from headrace.data.catalog import Data
    from headrace.workflows.plan import Planner
    from headrace.workflows.value import Output


class Launcher(Protocol):
    """The jobs of an app, as far as operations need them (client.jobs.Jobs)."""

    @property
    def origin(self) -> Origin: ...

    async def aenqueue(self, flow: Flow[Any], *, name: str | None = None) -> Any: ...

    async def aadd(self, id: int, *parts: Any, after: Any = None) -> Sequence[Any]: ...


class FutureObject(Reference):
    """A table that tasks are making. `await future` (or `future.result()`) gives the Object once it is complete, and
    raises TaskFailed, which names the chunk, when it never will be.

    Used as an argument of a signature it is an edge: that task runs when the table is there, and gets it.
    """

    __slots__ = ("_data", "_handle", "id", "job_id")

    def __init__(self, data: "Data", handle: Any, id: str, job_id: int) -> None:
        self._data = data
        self._handle = handle
        self.id = id  # which it will have
        self.job_id = job_id

    async def aresult(self, timeout: Duration | None = None) -> Object:
        await self._handle.aresult(timeout)
        return await self._data.aopen(self.id)

    def result(self, timeout: Duration | None = None) -> Object:
        self._handle.result(timeout)
        return self._data.open(self.id)

    def __await__(self) -> Generator[Any, Any, Object]:
        return self.aresult().__await__()

    @override
    def output(self, planner: "Planner") -> "Output":
        return self._handle.output(planner)

    def __repr__(self) -> str:
        return f"<FutureObject {self.id} of job {self.job_id}>"


async def launched(data: "Data", flow: Flow[Any], to: str, *, name: str) -> FutureObject:
    context = running.get()
    jobs = launcher(data)
    if context is not None and context.job_id is not None:
        (handle,) = await jobs.aadd(context.job_id, flow)
        return FutureObject(data, handle, to, context.job_id)
    handle = await jobs.aenqueue(flow, name=name)
    return FutureObject(data, handle, to, handle.id)


def launcher(data: "Data") -> Launcher:
    if data.jobs is None:
        raise DataError(
            f"{data!r} belongs to no app, so there is nobody to run tasks over its tables; use app.data, or open the "
            "object with it"
        )
    return data.jobs
