"""Runs what is in a ledger, one claim after the other, through the store's verbs and the app's own entries."""

import json
import random
import traceback
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from headrace import App
from headrace.core.lanes import Lane
from headrace.core.outcome import Completed, Failed, Outcome
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, settle
from headrace.core.task import ClaimedTask, ErrorInfo, Pool, Want, WorkerRecord
from headrace.executors.context import Context, QuietChannel, running
from headrace.store.base import Store

POOLS: tuple[Pool, ...] = ("coroutine", "child", "thread", "command")


async def drain(app: App, *, queues: Sequence[str] = ("default",), resources: dict[str, Any] | None = None) -> int:
    """Run everything that is ready; how many executions that took."""
    store = app.new_store()
    await store.open()
    try:
        return await _drain(app, store, queues, resources or {})
    finally:
        await store.close()


async def _drain(app: App, store: Store, queues: Sequence[str], resources: dict[str, Any]) -> int:
    worker = await registered(store)
    wants = [
        Want(queue=queue, pool=pool, lane=lane, n=50)
        for queue in queues
        for pool in POOLS
        for lane in (Lane.PRIMARY, Lane.RETRY)
    ]
    executions = 0
    while claims := await store.claim(worker, wants):
        for claim in claims:
            outcome, policy = await _execute(app, claim, resources)
            settlement = settle(
                claim, outcome, policy, rng=random.Random(1), execution=Execution(ran_for=0.001, executor="test")
            )
            report = await store.finish(worker, [settlement])
            assert report.accepted
            executions += 1
    await store.deregister(worker)
    return executions


async def registered(store: Store, *, lease: float = 30.0) -> str:
    now = datetime.now(UTC)
    worker = f"test:1:{uuid.uuid4().hex}"
    await store.register(
        WorkerRecord(
            id=worker, kind="worker", hostname="test", pid=1, state="active", beat=0, lease=lease, queues=("default",),
            version="0", started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
        )
    )  # fmt: skip
    return worker


async def _execute(app: App, claim: ClaimedTask, resources: dict[str, Any]) -> tuple[Outcome, Retry]:
    options = json.loads(claim.options)
    policy = app.settings.retry
    try:
        entry = app.resolve(claim.name, options)
        policy = Retry.from_dict(options["retry"]) if "retry" in options else entry.retry
        context = Context(claim, channel=QuietChannel(), options=options, worker="test")
        args, kwargs = entry.load_arguments(claim.arguments)
        token = running.set(context)
        try:
            value = entry.function(*args, **kwargs, **entry.inject(context, resources))
            value = await value if entry.is_async else value
        finally:
            running.reset(token)
        return Completed(result=entry.dump_result(value)), policy
    except Exception as error:
        info = ErrorInfo(
            error_class=f"{type(error).__module__}.{type(error).__qualname__}",
            message=str(error),
            traceback="".join(traceback.format_exception(error)),
        )
        return Failed(error=info, signature=ErrorSignature.of(error, policy)), policy
