"""Reads: by id, by filter, page by page."""

from datetime import timedelta

from headrace.core.limits import Gate
from headrace.core.states import TaskState
from headrace.core.task import TaskFilter, TaskRecord
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, task

cases = Cases("inspection")


async def _ids(ledger: Ledger, criteria: TaskFilter) -> set[int]:
    return {record.id for record in await ledger.store.list(criteria)}


@cases.add()
async def by_id_live_and_done_alike(ledger: Ledger) -> None:
    first, second = await ledger.enqueue(task(), task())
    await ledger.finish("a", completed(await ledger.claim_one()))
    found = await ledger.store.get([first, second, 987_654_321, first])
    assert {task_id: record.state.value for task_id, record in found.items()} == {first: "completed", second: "pending"}
    assert await ledger.store.get([]) == {}
    assert await ledger.store.attempts(987_654_321) == []


@cases.add()
async def filters(ledger: Ledger) -> None:
    mail = await ledger.enqueue(*[task("x.mail", queue="mail") for _ in range(3)])
    web = await ledger.enqueue(task("x.web", queue="web"), task("x.other", queue="web"))
    one, two = await ledger.claim("w1", 2, queue="mail")
    await ledger.finish("w1", completed(one), failed_for_good(two, dead_letter=True))
    (three,) = await ledger.claim("w2", queue="mail")
    assert await _ids(ledger, TaskFilter()) == {*mail, *web}
    assert await _ids(ledger, TaskFilter(queues=("mail",))) == set(mail)
    assert await _ids(ledger, TaskFilter(names=("x.web",))) == {web[0]}
    assert await _ids(ledger, TaskFilter(states=(TaskState.COMPLETED,))) == {one.id}
    assert await _ids(ledger, TaskFilter(states=(TaskState.PENDING, TaskState.FAILED))) == {*web, two.id}
    assert await _ids(ledger, TaskFilter(dead_letter=True)) == {two.id}
    assert three.id in await _ids(ledger, TaskFilter(worker="w2"))
    assert await _ids(ledger, TaskFilter(queues=("web",), states=(TaskState.COMPLETED,))) == set()


@cases.add()
async def paging_sees_every_task_once(ledger: Ledger) -> None:
    """Live and done mixed, with equal instants: no page repeats a row and none is skipped."""
    ids = await ledger.enqueue(*[task() for _ in range(25)])
    await ledger.finish("a", *[completed(claim) for claim in await ledger.claim(n=12)])
    for states in ((), (TaskState.COMPLETED,), (TaskState.PENDING,)):
        seen: list[int] = []
        before = None
        for _ in range(30):
            page: list[TaskRecord] = await ledger.store.list(TaskFilter(limit=4, before=before, states=states))
            if not page:
                break
            assert len(page) <= 4
            seen += [record.id for record in page]
            last = page[-1]
            before = (last.finished_at or last.created_at, last.id)
        assert len(seen) == len(set(seen)), f"{states}: a row came twice"
        expected = {(): ids, (TaskState.COMPLETED,): ids[:12], (TaskState.PENDING,): ids[12:]}[states]
        assert set(seen) == set(expected), states


@cases.add()
async def counts_are_exact(ledger: Ledger) -> None:
    """By state, as the tasks move."""
    await ledger.enqueue(*[task() for _ in range(6)], task(delay=600))
    claims = await ledger.claim(n=3)
    await ledger.store.start("a", [ref(claims[0])])
    await ledger.store.cancel([claims[1].id])
    counts = await ledger.store.counts()
    assert (counts["pending"], counts["claimed"], counts["running"], counts["cancelling"]) == (4, 1, 1, 1)


@cases.add()
async def the_clock_goes_on(ledger: Ledger) -> None:
    first = await ledger.store.now()
    await ledger.let_pass(0.02)
    second = await ledger.store.now()
    assert second - first >= timedelta(seconds=0.02)
    assert first.tzinfo is not None
    assert first.utcoffset() == timedelta(0)


@cases.add("A7")
async def arguments_and_errors_are_typed(ledger: Ledger) -> None:
    """A7: parameters are JSON text; what is not there is None, not an empty or a word."""
    task_id = await ledger.enqueue_one(arguments='{"a":[1,null,true]}')
    record = await ledger.get(task_id)
    assert record.arguments == '{"a":[1,null,true]}'
    assert (record.reason, record.worker, record.job, record.result, record.error_class) == (None,) * 5
    assert (record.progress, record.waiting_on, record.expires_at, record.started_at) == (None,) * 4


@cases.add()
async def names_of_live_tasks(ledger: Ledger) -> None:
    first, *_ = await ledger.enqueue(task("x.mail"), task("x.mail", delay=600), task("x.web", queue="web"))
    await ledger.finish("a", completed(await ledger.claim_one(queue="web")))
    assert [(found.name, found.kind, found.n, found.oldest) for found in await ledger.store.live_names()] == [
        ("x.mail", "function", 2, first)
    ]
    assert [found.n for found in await ledger.store.live_names(limit=1)] == [1]


@cases.add()
async def whom_a_parked_task_waits_for(ledger: Ledger) -> None:
    limit = (Gate(kind="limit", key="printer", n=1),)
    order = (Gate(kind="order", key="account"),)
    await ledger.enqueue(*[task(gates=limit) for _ in range(2)], *[task(gates=order) for _ in range(2)])
    claims = await ledger.claim()
    answer = await ledger.store.admit("a", claims)
    parked = await ledger.store.get([parked.id for parked in answer.parked])
    waits = {record.waiting_on: record.id for record in parked.values()}
    assert set(waits) == {"limit:printer", "order:account"}
    for key, waiting in waits.items():
        (holder,) = await ledger.store.gate_holders(str(key))
        assert holder in {admitted.id for admitted in answer.admitted}
        assert holder != waiting
    assert await ledger.store.gate_holders("limit:nobody") == []


@cases.add()
async def what_the_database_says_of_itself(ledger: Ledger) -> None:
    facts = await ledger.store.facts()
    assert facts.version > (3,)
    assert facts.durable, facts.durability
    assert facts.size > 0
    if facts.connections is not None and facts.most_connections is not None:
        assert 0 < facts.connections <= facts.most_connections


@cases.add("F55")
async def what_ended_is_counted_by_state(ledger: Ledger) -> None:
    """F55: exactly, up to a cap, and with what waits for its retry apart from what waits for its first time."""
    assert await ledger.store.ended_counts() == {}
    assert await ledger.store.waiting_retries() == 0
    await ledger.enqueue(*[task() for _ in range(9)])
    claims = await ledger.claim("a", 8)
    await ledger.finish("a", *[completed(claim) for claim in claims[:4]])
    await ledger.finish("a", failed_for_good(claims[4]), failed_for_good(claims[5], dead_letter=True))
    await ledger.finish("a", *[failed(claim, delay=300) for claim in claims[6:]])
    await ledger.enqueue(*[task(delay=300) for _ in range(3)])
    (left,) = await ledger.claim("a", 5)
    await ledger.finish("a", completed(left))
    await ledger.store.cancel([claims[7].id])
    assert await ledger.store.ended_counts() == {TaskState.COMPLETED: 5, TaskState.FAILED: 2, TaskState.CANCELLED: 1}
    assert await ledger.store.ended_counts(cap=3) == {
        TaskState.COMPLETED: 3,
        TaskState.FAILED: 2,
        TaskState.CANCELLED: 1,
    }
    assert await ledger.store.waiting_retries() == 1
    await ledger.store.retry([claims[4].id])
    assert (await ledger.store.ended_counts())[TaskState.FAILED] == 1


@cases.add()
async def the_last_attempts(ledger: Ledger) -> None:
    """As many as are asked for, also where the last one is told by the row of the task alone."""
    task_id = await ledger.enqueue_one(max_attempts=10)
    for _ in range(4):
        await ledger.finish("a", failed(await ledger.claim_due()))
    await ledger.finish("a", completed(await ledger.claim_due()))
    every = await ledger.store.attempts(task_id)
    assert [attempt.claim_no for attempt in every] == [1, 2, 3, 4, 5]
    assert await ledger.store.attempts(task_id, limit=2) == every[-2:]
    assert await ledger.store.attempts(task_id, limit=2, before=4) == every[1:3]
    assert await ledger.store.attempts(task_id, before=3) == every[:2]
    assert await ledger.store.attempts(task_id, limit=100, before=1) == []


@cases.add()
async def what_it_has_to_pass(ledger: Ledger) -> None:
    gates = (Gate(kind="limit", key="printer", n=1), Gate(kind="rate", key="slowly", n=5, per=60.0, burst=2))
    gated, free = await ledger.enqueue(task(gates=gates), task())
    assert await ledger.store.gates(gated) == gates
    assert await ledger.store.gates(free) == ()
    assert await ledger.store.gates(987_654_321) is None
    await ledger.store.cancel([gated])
    assert await ledger.store.gates(gated) == gates
