"""Start: `running` and an attempt row, only for the holder."""

from headrace.core.states import AttemptState, TaskState
from headrace.core.task import Ref
from headrace.store.base import Started
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, released, task

cases = Cases("start")


@cases.add("A15", "A16", "A21")
async def claimed_then_running_then_completed(ledger: Ledger) -> None:
    """A16: the three transitions in order; A21: each sets its instant; A15: the words are the specification's."""
    task_id = await ledger.enqueue_one()
    assert await ledger.state(task_id) == "pending"
    await ledger.let_pass(0.01)
    claim = await ledger.claim_one()
    assert await ledger.state(task_id) == "claimed"
    await ledger.let_pass(0.01)
    assert await ledger.store.start("a", [ref(claim)], executor="coroutine") == {ref(claim): Started.STARTED}
    running = await ledger.get(task_id)
    assert running.state is TaskState.RUNNING
    assert running.claimed_at is not None
    assert running.started_at is not None
    assert running.started_at > running.claimed_at > running.created_at
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.claim_no, attempt.state, attempt.worker) == (claim.claim_no, AttemptState.RUNNING, "a")
    assert (attempt.executor, attempt.charged) == ("coroutine", False)
    await ledger.let_pass(0.01)
    await ledger.finish("a", completed(claim))
    done = await ledger.get(task_id)
    assert done.state is TaskState.COMPLETED
    assert done.finished_at is not None
    assert done.started_at is not None
    assert done.finished_at > done.started_at == running.started_at
    assert done.claimed_at == running.claimed_at
    (attempt,) = await ledger.attempts(task_id)
    assert (attempt.state, attempt.charged, attempt.attempt) == (AttemptState.SUCCEEDED, True, 1)


@cases.add()
async def starting_twice_is_one_start(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    first = (await ledger.get(task_id)).started_at
    await ledger.let_pass(0.02)
    assert await ledger.store.start("a", [ref(claim)]) == {ref(claim): Started.STARTED}
    assert (await ledger.get(task_id)).started_at == first
    assert len(await ledger.attempts(task_id)) == 1


@cases.add()
async def only_the_holder_starts(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one("a")
    strangers = {
        "another worker": ("b", ref(claim)),
        "another number": ("a", Ref(claim.id, claim.claim_no + 1)),
        "an unknown task": ("a", Ref(987_654_321, 1)),
    }
    for who, (worker, fence) in strangers.items():
        assert await ledger.store.start(worker, [fence]) == {fence: Started.REFUSED}, who
    assert await ledger.state(task_id) == "claimed"
    await ledger.finish("a", released(claim))
    assert await ledger.store.start("a", [ref(claim)]) == {ref(claim): Started.REFUSED}
    assert await ledger.state(task_id) == "pending"


@cases.add()
async def a_cancelled_claim_is_not_started(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.cancel([task_id])
    assert await ledger.store.start("a", [ref(claim)]) == {ref(claim): Started.CANCELLING}
    assert await ledger.state(task_id) == "cancelling"
    assert await ledger.attempts(task_id) == []


@cases.add()
async def a_mixed_batch_starts_what_it_may(ledger: Ledger) -> None:
    await ledger.enqueue(*[task() for _ in range(4)])
    one, two, three, four = await ledger.claim()
    await ledger.store.cancel([two.id])
    await ledger.finish("a", completed(three))
    answer = await ledger.store.start("a", [ref(c) for c in (one, two, three, four)])
    assert answer == {
        ref(one): Started.STARTED,
        ref(two): Started.CANCELLING,
        ref(three): Started.REFUSED,
        ref(four): Started.STARTED,
    }


@cases.add()
async def each_start_has_its_own_attempt(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    for _ in range(2):
        claim = await ledger.claim_due()
        await ledger.store.start("a", [ref(claim)])
        await ledger.finish("a", failed(claim))
    attempts = await ledger.attempts(task_id)
    assert [attempt.attempt for attempt in attempts] == [1, 2]
    assert [attempt.state for attempt in attempts] == [AttemptState.FAILED] * 2
    assert all(attempt.started_at and attempt.finished_at for attempt in attempts)


@cases.add()
async def a_handle_is_kept_for_its_attempt_only(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)], executor="command")
    assert await ledger.store.record_handle("a", ref(claim), "pid:77")
    assert (await ledger.attempts(task_id))[0].handle == "pid:77"
    assert not await ledger.store.record_handle("b", ref(claim), "pid:1")
    assert not await ledger.store.record_handle("a", Ref(claim.id, claim.claim_no + 1), "pid:2")
    await ledger.finish("a", completed(claim))
    assert not await ledger.store.record_handle("a", ref(claim), "pid:3")
    assert (await ledger.attempts(task_id))[0].handle == "pid:77"


@cases.add()
async def progress_is_the_holders(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    await ledger.store.progress("a", [(ref(claim), '{"done":1}')])
    await ledger.store.progress("b", [(ref(claim), '{"done":99}')])
    await ledger.store.progress("a", [(Ref(claim.id, claim.claim_no + 1), '{"done":98}')])
    assert (await ledger.get(task_id)).progress == '{"done":1}'
