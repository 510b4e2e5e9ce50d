"""Enqueue inside the user's own transaction: the task appears if and only if they commit."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextvars import ContextVar, Token
from typing import Any

from headrace.client.bridge import BRIDGE, refuse_blocking
from headrace.client.transactions.base import Adapter, adapt
from headrace.client.transactions.identity import Identity, check_same_database
from headrace.client.transactions.refusals import translated
from headrace.core.errors import HeadraceError
from headrace.core.task import Enqueued, NewTask
from headrace.store.base import Program, Store

__all__ = ["TransactionScope", "enqueue_in", "run_in", "transaction_of"]

type _Scopes = Mapping[int, Any]  # by id() of the engine: an app's block is not another app's

_scopes: ContextVar[_Scopes] = ContextVar("headrace_transactions", default={})  # noqa: B039 -- never changed in place


class TransactionScope:
    """`with app.transaction(connection):` and `async with`: enqueues of this context go through the connection."""

    def __init__(self, engine: object, connection: Any) -> None:
        adapt(connection)  # refuses what is no connection before the block begins
        self._engine = engine
        self._connection = connection
        self._token: Token[_Scopes] | None = None

    def __enter__(self) -> None:
        self._token = _scopes.set({**_scopes.get(), id(self._engine): self._connection})

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        _scopes.reset(self._token)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(self, *_: object) -> None:
        self.__exit__()


def transaction_of(engine: object) -> Any:
    """The connection of the innermost `app.transaction` block, if any."""
    return _scopes.get().get(id(engine))


async def enqueue_in(connection: Any, store: Store, tasks: Sequence[NewTask], *, asking: Identity) -> list[Enqueued]:
    """Write tasks through the user's connection; they are there once the user commits.

    `asking` tells which database the store is.
    """
    queues = {task.queue for task in tasks}
    return await run_in(connection, store, store.enqueue_program(tasks), asking=asking, wakes=queues)


async def run_in[T](
    connection: Any, store: Store, program: Program[T], *, asking: Identity, wakes: set[str] | None = None
) -> T:
    """Run a program of the store through the user's connection, and wake these queues once they have committed."""
    adapter = adapt(connection)
    if adapter.awaits:
        refuse_blocking("an async connection")
    await check_same_database(adapter, store, asking)
    ours = await adapter.begin()
    try:
        answers = await _run(adapter, program)
    except BaseException as error:
        if ours:
            await adapter.end(commit=False)
        known = translated(error) if isinstance(error, Exception) and not isinstance(error, HeadraceError) else None
        if known is not None:
            raise known from error
        raise
    if ours:
        await adapter.end(commit=True)
    if wakes:
        adapter.after_commit(_waker(store, wakes))
    return answers


async def _run[T](adapter: Adapter, program: Program[T]) -> T:
    try:
        statement = next(program)
        while True:
            statement = program.send(await adapter.execute(statement))
    except StopIteration as end:
        return end.value


def _waker(store: Store, queues: set[str]) -> Callable[[], None]:
    def wake() -> None:
        # A hint, so nobody waits for it and nobody hears of its failure.
        work: Coroutine[Any, Any, None] = store.wake(queues)
        BRIDGE.submit(work)

    return wake
