"""Short words for the tests that speak to a store directly, where the order of two writes must be exact."""

from datetime import UTC, datetime

from headrace.core.lanes import Lane
from headrace.core.settlement import Settlement
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import ClaimedTask, ErrorInfo, NewTask, Ref, Want, WorkerRecord
from headrace.store.base import Store


async def register(store: Store, worker: str, *, lease: float = 30.0, hostname: str = "host", pid: int = 1) -> None:
    now = datetime.now(UTC)
    record = WorkerRecord(
        id=worker, kind="pool", hostname=hostname, pid=pid, state="active", beat=0, lease=lease, queues=(), version="0",
        started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
    )  # fmt: skip
    await store.register(record)


async def enqueue(store: Store, count: int = 1) -> list[int]:
    return [answer.id for answer in await store.enqueue([NewTask(name="nothing")] * count)]


async def claim(store: Store, worker: str, n: int = 1) -> list[ClaimedTask]:
    """From both lanes: a released task keeps its lane, a failed one changes it."""
    claims: list[ClaimedTask] = []
    for lane in (Lane.PRIMARY, Lane.RETRY):
        if len(claims) < n:
            want = Want(queue="default", pool="coroutine", lane=lane, n=n - len(claims))
            claims += await store.claim(worker, [want])
    return claims


def ref(claimed: ClaimedTask) -> Ref:
    return Ref(claimed.id, claimed.claim_no)


def completed(claimed: ClaimedTask, result: str = "1") -> Settlement:
    return Settlement(
        task=claimed.id, claim_no=claimed.claim_no, state=TaskState.COMPLETED, charged=True,
        attempt=AttemptState.SUCCEEDED, result=result, ran_for=0.0,
    )  # fmt: skip


def failed(claimed: ClaimedTask, message: str = "no") -> Settlement:
    return Settlement(
        task=claimed.id, claim_no=claimed.claim_no, state=TaskState.FAILED, reason="error", charged=True,
        attempt=AttemptState.FAILED, error=ErrorInfo(error_class="Error", message=message), ran_for=0.0,
    )  # fmt: skip


def retried(claimed: ClaimedTask) -> Settlement:
    return Settlement(
        task=claimed.id, claim_no=claimed.claim_no, state=TaskState.PENDING, charged=True, lane=Lane.RETRY,
        attempt=AttemptState.FAILED, error=ErrorInfo(error_class="Error", message="again"), ran_for=0.0,
    )  # fmt: skip


def released(claimed: ClaimedTask, *, suspect: bool = False) -> Settlement:
    return Settlement(task=claimed.id, claim_no=claimed.claim_no, state=TaskState.PENDING, suspect=suspect)
