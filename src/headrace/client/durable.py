"""The ledger of a task's durable calls (executors.ledger.Ledger), on the app's own store: the same in a worker process,
in its children and in tests.
"""

import asyncio
import dataclasses
import time
from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from headrace.client.arguments import Result
from headrace.client.bridge import on_store, run_blocking
from headrace.client.engine import Engine
from headrace.client.events import payload_of
from headrace.client.flows import flows_of
from headrace.client.handles import failure_of
from headrace.client.results import result_text
from headrace.core import payload
from headrace.core.errors import (
    ArgumentError,
    LeaseLost,
    NotFound,
    ResultError,
    StoreUnavailable,
    TaskCancelled,
    TaskFailed,
)
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, NewTask, Received, Ref
from headrace.store.base import Store
from headrace.workflows.signatures import Signature

if TYPE_CHECKING:
    from headrace.client.current_job import CurrentJob

# An outage shorter than this costs no attempt. A repeat does no harm: each act is stored once.
_PATIENCE = 30.0
_LONGEST_PAUSE = 1.0


class DurableLedger:
    """Of one attempt: every write carries its claim."""

    def __init__(self, engine: Engine, claim: ClaimedTask, worker: str) -> None:
        self._engine = engine
        self._claim = claim
        self._ref = Ref(claim.id, claim.claim_no)
        self._worker = worker

    def block[T](self, name: str, work: Coroutine[Any, Any, T], /) -> T:
        return run_blocking(name, work)

    async def checkpoints(self) -> Mapping[str, str]:
        return await self._insist(lambda store: store.checkpoints(self._claim.id))

    def decode(self, stored: str) -> str:
        return self._engine.codecs.get(self._claim.codec).decode(stored)

    async def save(self, name: str, text: str) -> str:
        value = self._engine.codecs.get(self._claim.codec).encode(text)
        stands = await self._insist(lambda store: store.save_checkpoint(self._worker, self._ref, name, value))
        return self.decode(self._held(stands, name))

    async def now(self) -> datetime:
        return await self._insist(lambda store: store.now())

    async def receive(self, step: str, *, event: str, key: str, timeout: float | None) -> Received | None:
        return await self._insist(
            lambda store: store.receive(self._worker, self._ref, step, event=event, key=key, timeout=timeout)
        )

    async def spawn(self, name: str, call: Any) -> int:
        # What the task handles or raises decides about its job; a child that fails on its own must not.
        task = dataclasses.replace(_prepared(self._engine, call), job=self._claim.job, critical=False)
        with self._engine.around([task]) as changed:
            (new,) = changed
            child = await self._insist(lambda store: store.spawn(self._worker, self._ref, name, new))
        return self._held(child, name)

    async def ended(self, task: int) -> str | None:
        record = (await self._insist(lambda store: store.get([task]))).get(task)
        if record is None:
            raise NotFound(f"task {self._claim.id} called task {task}, and history keeps that no longer")
        if not record.state.terminal:
            return None
        if record.state is TaskState.COMPLETED:
            return f'{{"name":{payload.dumps(record.name)},"result":{await result_text(self._engine, record)}}}'
        return payload.dumps(_described(await failure_of(self._engine, record)))

    def succeeded(self, ended: str) -> bool:
        return "result" in payload.loads(ended)

    def result(self, ended: str) -> Any:
        found = payload.loads(ended)
        if "result" not in found:
            raise _raised(found)
        loader = self._engine.results.get(found["name"])
        return found["result"] if loader is None else loader.load(payload.dumps(found["result"]))

    def dump(self, function: Callable[..., Any], value: Any) -> str:
        return Result(function, name=self._claim.name).dump(value)

    def load(self, function: Callable[..., Any], text: str) -> Any:
        return Result(function, name=self._claim.name).load(text)

    def payload(self, text: str) -> Any:
        return payload_of(self._engine, text)

    def job(self) -> "CurrentJob":
        from headrace.client.current_job import CurrentJob
        from headrace.client.jobs import Jobs

        assert self._claim.job is not None  # `Context.job` has looked
        return CurrentJob(Jobs(self._engine), self._claim.job, self._claim.id)

    def _held[T](self, answer: T | None, name: str) -> T:
        if answer is None:
            raise LeaseLost(
                f"task {self._claim.id}: {name!r} was not stored, because this attempt no longer holds the task; "
                "another one goes on with it"
            )
        return answer

    async def _insist[T](self, act: Callable[[Store], Coroutine[Any, Any, T]]) -> T:
        deadline, pause = time.monotonic() + _PATIENCE, 0.05
        while True:
            try:
                return await self._engine.run(act)
            except StoreUnavailable:
                if time.monotonic() > deadline:
                    raise
            await on_store(lambda pause=pause: asyncio.sleep(pause))
            pause = min(_LONGEST_PAUSE, pause * 2)


def _prepared(engine: Engine, call: Any) -> NewTask:
    if isinstance(call, NewTask | Signature):
        return flows_of(engine).one(cast("Signature[Any] | NewTask", call), "what current.call runs")
    raise ArgumentError(f"current.call takes a signature, as in current.call(child.s(1)), not {call!r:.200}")


def _described(error: ResultError) -> dict[str, Any]:
    found: dict[str, Any] = {"message": str(error), "cancelled": isinstance(error, TaskCancelled)}
    return found | {
        name: getattr(error, name, None) for name in ("task_id", "reason", "error_class", "remote_traceback")
    }


def _raised(found: Mapping[str, Any]) -> ResultError:
    message, task, reason = found["message"], found["task_id"], found["reason"]
    if found["cancelled"]:
        return TaskCancelled(message, task_id=task, reason=reason)
    return TaskFailed(
        message,
        task_id=task,
        reason=reason,
        error_class=found["error_class"],
        remote_traceback=found["remote_traceback"],
    )
