"""Enqueue: everything or nothing, answers in order, instants by the store's clock."""

from datetime import timedelta

from headrace.core.errors import NotFound
from headrace.core.states import TaskState
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, refused, task

cases = Cases("enqueue")


@cases.add("F8")
async def what_was_enqueued_is_read_back(ledger: Ledger) -> None:
    """F8: a new task is pending in the primary lane, whatever its options."""
    arguments = '{"text":"Grüße \\u0000 \\ud83d\\ude00","n":9007199254740993}'
    (task_id,) = await ledger.enqueue(
        task(
            "shop.mail",
            arguments=arguments,
            queue="mail",
            pool="child",
            priority=7,
            max_attempts=2,
            version=3,
            options='{"tags":["x"]}',
            critical=False,
            codec="json/1",
            kind="function",
        )
    )
    record = await ledger.get(task_id)
    assert (record.name, record.queue, record.pool, record.priority) == ("shop.mail", "mail", "child", 7)
    assert (record.arguments, record.options, record.version) == (arguments, '{"tags":["x"]}', 3)
    assert (record.state, record.reason, record.lane.value) == (TaskState.PENDING, None, 0)
    assert (record.attempt, record.claim_no, record.losses, record.run_no) == (0, 0, 0, 1)
    assert (record.max_attempts, record.critical, record.job, record.worker) == (2, False, None, None)
    assert record.result is None
    assert record.finished_at is None
    assert record.created_at == record.enqueued_at == record.eligible_at
    assert abs(record.created_at - await ledger.store.now()) < timedelta(seconds=30)


@cases.add()
async def ten_thousand_in_one_call(ledger: Ledger) -> None:
    answers = await ledger.store.enqueue([task(arguments=f'{{"i":{i}}}') for i in range(10_000)])
    ids = [answer.id for answer in answers]
    assert len(set(ids)) == 10_000
    assert all(answer.created for answer in answers)
    # Answers are in the order of the tasks.
    for i in (0, 1, 99, 100, 101, 4_999, 9_999):
        assert (await ledger.get(ids[i])).arguments == f'{{"i":{i}}}'
    assert (await ledger.store.counts())["pending"] == 10_000
    claimed = await ledger.claim(n=500)
    assert len({claim.id for claim in claimed}) == 500


@cases.add()
async def nothing_is_an_empty_answer(ledger: Ledger) -> None:
    assert await ledger.store.enqueue([]) == []


@cases.add()
async def an_unknown_job_refuses_all_of_it(ledger: Ledger) -> None:
    await refused(ledger.store.enqueue([task(), task(job=987_654_321)]), NotFound)
    assert await ledger.claim() == []
    assert (await ledger.store.counts()).get("pending", 0) == 0


@cases.add("F10")
async def a_future_task_waits_for_its_instant(ledger: Ledger) -> None:
    """F10: before `eligible_at` a claim gets nothing; after it the task comes, by delay and by instant."""
    start = await ledger.store.now()
    later = await ledger.enqueue_one(delay=0.2)
    at = await ledger.enqueue_one(run_at=start + timedelta(seconds=0.2), delay=500.0)
    assert (await ledger.get(at)).eligible_at == start + timedelta(seconds=0.2)
    if await ledger.store.now() < start + timedelta(seconds=0.1):
        assert await ledger.claim() == []
    assert (await ledger.get(later)).state is TaskState.PENDING
    await ledger.let_pass(0.25)
    assert {claim.id for claim in await ledger.claim()} == {later, at}


@cases.add()
async def an_instant_in_the_past_is_due_now(ledger: Ledger) -> None:
    past = await ledger.enqueue_one(run_at=await ledger.store.now() - timedelta(days=400))
    assert (await ledger.claim_one()).id == past


@cases.add()
async def a_far_future_is_not_lost(ledger: Ledger) -> None:
    far = await ledger.store.now() + timedelta(days=365 * 100)
    task_id = await ledger.enqueue_one(run_at=far)
    assert (await ledger.get(task_id)).eligible_at == far
    assert await ledger.claim() == []
    assert [record.id for record in [await ledger.get(task_id)]] == [task_id]


@cases.add()
async def a_task_that_needs_approval_is_not_claimable(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(approval=True)
    assert await ledger.state(task_id) == "pending_approval"
    assert await ledger.claim() == []


@cases.add()
async def text_comes_back_as_it_went_in(ledger: Ledger) -> None:
    """A megabyte, quotes, backslashes, newlines, and characters beyond the basic plane."""
    nasty = '{"a":"' + "x" * 1_000_000 + "'\\\\\"--;$1 ? :p %s \\n\U0001f600é" + '"}'
    task_id = await ledger.enqueue_one(name="möd.ülé", arguments=nasty, queue="q'; DROP TABLE tasks; --")
    record = await ledger.get(task_id)
    assert record.arguments == nasty
    assert record.name == "möd.ülé"
    (claimed,) = await ledger.claim(queue="q'; DROP TABLE tasks; --")
    assert claimed.arguments == nasty


@cases.add()
async def ids_are_never_given_twice(ledger: Ledger) -> None:
    another = await ledger.another_store()
    ids = [
        answer.id
        for store in (ledger.store, another, ledger.store, another)
        for answer in await store.enqueue([task() for _ in range(150)])
    ]
    assert len(set(ids)) == 600
    assert all(0 < i < 2**63 for i in ids)


@cases.add()
async def max_age_becomes_an_instant(ledger: Ledger) -> None:
    task_id = await ledger.enqueue_one(max_age=60.0)
    record = await ledger.get(task_id)
    assert record.expires_at == record.enqueued_at + timedelta(seconds=60)
    assert (await ledger.get(await ledger.enqueue_one())).expires_at is None
