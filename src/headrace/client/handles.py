"""What `enqueue` gives back: the task's id, and ways to ask after it."""

from collections.abc import AsyncIterator, Generator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, cast, overload, override

from headrace.client.bridge import sync_form
from headrace.client.engine import Engine, ResultLoader
from headrace.client.feeds import Feed, as_completed_ids, plain_values, task_lines, task_values
from headrace.client.results import result_text
from headrace.core.durations import Duration, seconds
from headrace.core.errors import NotFound, ResultError, TaskCancelled, TaskFailed
from headrace.core.payload import loads
from headrace.core.states import TaskState
from headrace.core.task import TaskRecord
from headrace.store.base import CancelAnswer, LogLine
from headrace.workflows.base import Reference
from headrace.workflows.value import Existing, Output

if TYPE_CHECKING:
    from headrace.workflows.plan import Planner


class Handle[R](Reference):
    """A task in the ledger. `created` is False when `enqueue` found an unfinished task with the same key.

    The async forms start with `a`. The one of `wait` is `await_`, because `await` is a keyword; `await handle` is
    `await handle.aresult()`.
    """

    __slots__ = ("_engine", "_result", "created", "id", "name")

    def __init__(
        self,
        engine: Engine,
        id: int,
        *,
        created: bool = True,
        name: str | None = None,
        result: ResultLoader | None = None,
    ) -> None:
        self._engine = engine
        self._result = result
        self.id = id
        self.created = created
        self.name = name

    async def astate(self) -> TaskState:
        """The state it is in now."""
        return (await self._record()).state

    async def arecord(self) -> TaskRecord:
        """Everything the ledger says of it. NotFound when its transaction is not committed, or history forgot it."""
        return await self._record()

    async def aresult(self, timeout: Duration | None = None) -> R:
        """What the task returned, once it has ended.

        Raises TaskFailed, TaskCancelled or ResultExpired, and TimeoutError when it has not ended within `timeout`.
        """
        record = await self._ended(timeout)
        if record.state is TaskState.COMPLETED:
            return await self._value(record)
        raise await failure_of(self._engine, record)

    async def await_(self, timeout: Duration | None = None) -> TaskState:
        """The state in which it ended; TimeoutError when it has not ended within `timeout`."""
        return (await self._ended(timeout)).state

    async def acancel(self, *, reason: str = "user") -> CancelAnswer:
        """Cancel the task, or tell its worker to stop it; the answer says which, or that it is too late."""
        answers = await self._engine.follow(lambda ledger: ledger.cancel([self.id], reason=reason))
        answer = answers.get(self.id, CancelAnswer.UNKNOWN)
        if answer is CancelAnswer.UNKNOWN:
            raise NotFound(f"no task {self.id} to cancel")
        return answer

    def logs(self, follow: bool = False) -> Feed[LogLine]:
        """The lines that its attempts logged, in order; with `follow` those to come as well, until it has ended.

        `for line in handle.logs()` blocks where it has to wait, `async for` does not.
        """
        return task_lines(self._engine, self.id, follow=follow)

    def alogs(self, follow: bool = False) -> Feed[LogLine]:
        """The same as `logs`, by the name of the async forms."""
        return self.logs(follow)

    @overload
    def stream(self, *, with_attempt: Literal[False] = False) -> Feed[Any]: ...

    @overload
    def stream(self, *, with_attempt: Literal[True]) -> Feed[tuple[int, Any]]: ...

    def stream(self, *, with_attempt: bool = False) -> Feed[Any]:
        """What its code gives to `current.stream(…)`, value by value, from the present attempt on until it has ended;
        how it ended is what `result()` says.

        An attempt that follows another starts over, so its values may come again: `with_attempt` gives pairs of the
        attempt (the number of its claim) and the value. `for` blocks, `async for` does not.
        """
        values = task_values(self._engine, self.id)
        return values if with_attempt else plain_values(values)

    state = sync_form(astate)
    record = sync_form(arecord)
    result = sync_form(aresult)
    wait = sync_form(await_)
    cancel = sync_form(acancel)

    @override
    def output(self, planner: "Planner") -> Output:
        """As an argument of a signature that is added to its job: an edge that passes its result."""
        return Output(value=Existing(self.id), name=f"task {self.id}")

    def __await__(self) -> Generator[Any, Any, R]:
        return self.aresult().__await__()

    def __repr__(self) -> str:
        return f"<Handle {self.id}{f' of {self.name}' if self.name else ''}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Handle) and (other.id, other._engine) == (self.id, self._engine)

    def __hash__(self) -> int:
        return hash(self.id)

    async def _record(self) -> TaskRecord:
        record = (await self._engine.follow(lambda ledger: ledger.get([self.id]))).get(self.id)
        if record is None:
            raise NotFound(
                f"no task {self.id}: its transaction is not committed, or it ended longer ago than history is kept"
            )
        return record

    async def _ended(self, timeout: Duration | None) -> TaskRecord:
        limit = None if timeout is None else seconds(timeout, name="timeout")
        try:
            return await self._engine.ended(self.id, timeout=limit)
        except TimeoutError:
            raise TimeoutError(f"task {self.id} has not ended within {limit:g} s; it goes on") from None

    async def _value(self, record: TaskRecord) -> R:
        return cast("R", await value_of(self._engine, record, self._result))


class as_completed[R]:
    """The handles, each as its task ends, whatever the order in which they were given: `for` blocks, `async for` does
    not. One whose task is not in the ledger comes, too: its `result()` says so.

    TimeoutError when some have not ended within `timeout`. All of them are asked for by one query.
    """

    def __init__(self, handles: Iterable[Handle[R]], timeout: Duration | None = None) -> None:
        self._handles: dict[int, list[Handle[R]]] = {}
        engines: set[Engine] = set()
        for handle in handles:
            if not isinstance(handle, Handle):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"as_completed takes handles of tasks, not {handle!r}")
            self._handles.setdefault(handle.id, []).append(handle)
            engines.add(handle._engine)  # pyright: ignore[reportPrivateUsage]
        if len(engines) > 1:
            raise ValueError("as_completed takes handles of one app: each has a ledger of its own")
        limit = None if timeout is None else seconds(timeout, name="timeout")
        self._ids = as_completed_ids(engines.pop(), self._handles, limit) if engines else ()

    def __iter__(self) -> Iterator[Handle[R]]:
        for id in self._ids:
            yield from self._handles[id]

    async def __aiter__(self) -> AsyncIterator[Handle[R]]:
        if isinstance(self._ids, Feed):
            async for id in self._ids:
                for handle in self._handles[id]:
                    yield handle


async def value_of(engine: Engine, record: TaskRecord, loader: ResultLoader | None = None) -> Any:
    """What a task returned that completed."""
    text = await result_text(engine, record)
    loader = loader or engine.results.get(record.name)
    return loads(text) if loader is None else loader.load(text)


async def failure_of(engine: Engine, record: TaskRecord) -> ResultError:
    """What `result` raises for a task that ended otherwise."""
    what = f"task {record.id} ({record.name})"
    if record.state is not TaskState.FAILED:
        said = f": {record.error_message}" if record.error_message else ""
        why = f" ({record.reason})" if record.reason else ""
        return TaskCancelled(f"{what} was {record.state}{why}{said}", task_id=record.id, reason=record.reason)
    attempts = await engine.follow(lambda ledger: ledger.attempts(record.id))
    traceback = next((attempt.traceback for attempt in reversed(attempts) if attempt.traceback), None)
    return TaskFailed(
        f"{what} failed ({record.reason}) after {record.attempt} attempts: "
        f"{record.error_class or 'error'}: {record.error_message or 'no message'}",
        task_id=record.id,
        reason=record.reason,
        error_class=record.error_class,
        remote_traceback=traceback,
    )
