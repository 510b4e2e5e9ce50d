"""What is shown while it happens: events and lines of jobs have numbers without gaps, and hints say that they grew."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

from headrace.core.errors import WrongState
from headrace.core.lanes import Lane
from headrace.core.live import JobEvent, JobHead
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewJob, Want
from headrace.store.base import Store
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, task

cases = Cases("live")

_CEILING = 30.0


def shown(event: JobEvent) -> tuple[str, int, int, int, int]:
    return (event.state.value, event.total, event.completed, event.failed, event.cancelled)


async def shown_events(ledger: Ledger, job: int) -> list[tuple[str, int, int, int, int]]:
    """All of a job, whose numbers must be 0, 1, 2, …"""
    events = await ledger.store.job_events(job)
    assert [event.seq for event in events] == list(range(len(events)))
    assert all(event.job == job for event in events)
    assert events == sorted(events, key=lambda event: (event.at, event.seq))
    assert (await ledger.store.job_heads([job]))[job].event == len(events)
    return [shown(event) for event in events]


@cases.add()
async def each_change_of_a_job_is_an_event(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(), task())))
    assert await shown_events(ledger, job) == [("pending", 2, 0, 0, 0)]
    first = await ledger.claim_one()
    second = await ledger.claim_one()
    await ledger.store.enqueue([task(job=job), task(job=job)])
    await ledger.finish("a", completed(first), completed(second))
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim))
    assert await shown_events(ledger, job) == [
        ("pending", 2, 0, 0, 0),
        ("running", 2, 0, 0, 0),
        ("running", 4, 0, 0, 0),
        ("running", 4, 2, 0, 0),
        ("running", 4, 3, 0, 0),
        ("completed", 4, 4, 0, 0),
    ]


@cases.add()
async def a_retried_attempt_is_no_event(ledger: Ledger) -> None:
    """Neither the state of its job nor a count has changed."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
    await ledger.finish("a", failed(await ledger.claim_one()))
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert [state for state, *_ in await shown_events(ledger, job)] == ["pending", "running", "completed"]


@cases.add()
async def a_job_of_many_tasks_begins_with_one_event(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(2500))))
    assert await shown_events(ledger, job) == [("pending", 2500, 0, 0, 0)]


@cases.add()
async def the_ends_of_jobs_and_their_reopening_are_events(ledger: Ledger) -> None:
    cancelled, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(queue="other"), task(queue="other"))))
    await ledger.store.cancel_job(cancelled)
    assert await shown_events(ledger, cancelled) == [("pending", 2, 0, 0, 0), ("cancelled", 2, 0, 0, 2)]
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    await ledger.store.retry_failed(job)
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert await shown_events(ledger, job) == [
        ("pending", 1, 0, 0, 0),
        ("running", 1, 0, 0, 0),
        ("failed", 1, 0, 1, 0),
        ("pending", 1, 0, 0, 0),
        ("running", 1, 0, 0, 0),
        ("completed", 1, 1, 0, 0),
    ]
    one, answers = await ledger.store.create_job(NewJob(name="j", tasks=(task(queue="other"), task(queue="other"))))
    await ledger.store.cancel([answers[0].id])
    await ledger.store.cancel([answers[1].id])
    assert [state for state, *_ in await shown_events(ledger, one)] == ["pending", "pending", "cancelled"]


@cases.add()
async def a_deadline_and_a_max_age_are_events(ledger: Ledger) -> None:
    late, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),), timeout=0.05))
    old, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(queue="other", max_age=0.05),)))
    await ledger.let_pass(0.2)
    await ledger.store.expire()
    assert await shown_events(ledger, late) == [("pending", 1, 0, 0, 0), ("failed", 1, 0, 0, 1)]
    assert await shown_events(ledger, old) == [("pending", 1, 0, 0, 0), ("failed", 1, 0, 1, 0)]


@cases.add()
async def whoever_comes_late_gets_the_last_events(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(7))))
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim))
    assert [event.seq for event in await ledger.store.last_job_events(job, limit=3)] == [6, 7, 8]
    assert [event.seq for event in await ledger.store.job_events(job, after=2, limit=4)] == [3, 4, 5, 6]
    assert await ledger.store.job_events(job, after=8) == []
    assert await ledger.store.last_job_events(job + 10_000) == []


@cases.add()
async def lines_are_numbered_in_their_job(ledger: Ledger) -> None:
    """In the order of the call, over all its tasks and attempts; a line that is written again keeps its number."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(), task())))
    one, two = await ledger.claim()
    plain = await ledger.enqueue_one(queue="plain")
    alone = await ledger.claim_one(queue="plain")
    first = [
        (ref(one), 0, "log", "a"),
        (ref(alone), 0, "log", "of no job"),
        (ref(two), 0, "log", "b"),
        (ref(one), 1, "log", "c"),
    ]
    await ledger.store.append_logs(first)
    await ledger.store.append_logs([*first, (ref(two), 1, "stderr", "d")])
    await ledger.finish("a", completed(one))
    await ledger.store.append_logs([(ref(one), 2, "log", "e, after its end"), (ref(one), 2, "log", "twice in a call")])
    lines = await ledger.store.job_lines(job)
    assert [(line.seq, line.task, line.line) for line in lines] == [
        (0, one.id, "a"), (1, two.id, "b"), (2, one.id, "c"), (3, two.id, "d"), (4, one.id, "e, after its end"),
    ]  # fmt: skip
    assert [(line.job, line.claim_no, line.stream) for line in lines[2:4]] == [(job, 1, "log"), (job, 1, "stderr")]
    assert [line.line for line in await ledger.store.logs(plain)] == ["of no job"]
    assert [line.seq for line in await ledger.store.last_job_lines(job, limit=2)] == [3, 4]
    assert [line.seq for line in await ledger.store.job_lines(job, after=0, limit=2)] == [1, 2]
    assert (await ledger.store.job_heads([job]))[job] == JobHead(event=3, line=5)


@cases.add()
async def values_of_a_stream_are_no_lines_of_a_job(ledger: Ledger) -> None:
    job, (made,) = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
    claim = await ledger.claim_one()
    await ledger.store.append_logs([(ref(claim), 0, "value", "1"), (ref(claim), 1, "log", "a")])
    await ledger.store.append_logs([(ref(claim), 2, "value", "2"), (ref(claim), 3, "log", "b")])
    assert [(line.seq, line.line) for line in await ledger.store.job_lines(job)] == [(0, "a"), (1, "b")]
    assert [line.line for line in await ledger.store.logs(made.id)] == ["1", "a", "2", "b"]


@cases.add()
async def heads_of_many_in_one_look(ledger: Ledger) -> None:
    jobs = [(await ledger.store.create_job(NewJob(name="j", tasks=(task(queue=f"q{n}"),))))[0] for n in range(3)]
    claim = await ledger.claim_one(queue="q1")
    await ledger.store.append_logs([(ref(claim), 0, "log", "a"), (ref(claim), 1, "log", "b")])
    heads = await ledger.store.job_heads([*jobs, 987_654_321])
    assert heads == {
        jobs[0]: JobHead(event=1, line=0),
        jobs[1]: JobHead(event=2, line=2),
        jobs[2]: JobHead(event=1, line=0),
    }
    assert await ledger.store.job_heads([]) == {}
    waiting = await ledger.enqueue_one(queue="later")
    await ledger.store.progress("a", [(ref(claim), '{"done":1}')])
    found = await ledger.store.task_heads([claim.id, waiting, 987_654_321])
    assert found.keys() == {claim.id, waiting}
    assert (found[claim.id].claim_no, found[claim.id].line, found[claim.id].progress) == (1, 2, '{"done":1}')
    assert (found[waiting].state, found[waiting].claim_no, found[waiting].line) == (TaskState.PENDING, 0, 0)
    await ledger.finish("a", completed(claim))
    done = (await ledger.store.task_heads([claim.id]))[claim.id]
    assert (done.state, done.claim_no, done.line) == (TaskState.COMPLETED, 1, 2)


@cases.add()
async def what_is_old_goes_with_its_job(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
    claim = await ledger.claim_one()
    await ledger.store.append_logs([(ref(claim), 0, "log", "a")])
    await ledger.finish("a", completed(claim))
    await ledger.let_pass(0.05)
    for _ in range(3):
        await ledger.store.prune(keep=0.01)
    assert await ledger.store.get_job(job) is None
    assert await ledger.store.job_events(job) == []
    assert await ledger.store.job_lines(job) == []
    assert await ledger.store.job_heads([job]) == {}


@cases.add()
async def events_of_an_old_job_go_some_at_a_time(ledger: Ledger) -> None:
    """Before it: nobody waits for a job of many events, and nothing of it is left."""
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=tuple(task() for _ in range(8))))
    for claim in await ledger.claim():
        await ledger.finish("a", completed(claim))
    await ledger.let_pass(0.05)
    there, calls = len(await ledger.store.job_events(job)), 0
    assert there > 6
    while await ledger.store.get_job(job) is not None:
        pruned = await ledger.store.prune(keep=0.01, limit=3)
        left = len(await ledger.store.job_events(job))
        assert there - left == pruned.job_events <= 3
        there, calls = left, calls + 1
        assert calls < 20
    assert there == 0


async def _heard(hints: AsyncIterator[str], wanted: set[str]) -> set[str]:
    """What came until all of `wanted` had; `*` stands for everything."""
    heard: set[str] = set()
    async with asyncio.timeout(_CEILING):
        while not wanted <= heard:
            heard.add(await anext(hints))
    return heard


@cases.add()
async def whoever_watches_is_told_what_grew(ledger: Ledger) -> None:
    """Also by another process; the first word says that nothing is known of before."""
    other = await ledger.another_store()
    async with ledger.store.watch() as hints, other.watch() as others:
        await _heard(hints, {"*"})
        await _heard(others, {"*"})
        job, _ = await other.create_job(NewJob(name="j", tasks=(task(),)))
        claim = await ledger.claim_one()
        await ledger.store.append_logs([(ref(claim), 0, "log", "a")])
        await _heard(hints, {f"job/{job}", f"task/{claim.id}"})
        await _heard(others, {f"job/{job}", f"task/{claim.id}"})
        await ledger.finish("a", completed(claim))
        await _heard(others, {f"job/{job}"})
        await other.announce(["queue/mail", "task/7"])
        await _heard(hints, {"queue/mail", "task/7"})


@cases.add()
async def hints_are_many_and_may_be_long(ledger: Ledger) -> None:
    other = await ledger.another_store()
    async with ledger.store.watch() as hints:
        await _heard(hints, {"*"})
        topics = {f"task/{n}" for n in range(100_000, 101_000)}
        await other.announce(topics)
        await _heard(hints, topics)
        await other.announce(["queue/" + "long" * 5000])
        assert await _heard(hints, {"*"})


@cases.add()
async def plain_tasks_tell_nobody(ledger: Ledger) -> None:
    """Without a job, a line or a progress nothing is sent: the first hint after them is that of a job."""
    async with ledger.store.watch() as hints:
        await _heard(hints, {"*"})
        await ledger.enqueue(*[task() for _ in range(5)])
        await ledger.finish("a", *[completed(claim) for claim in await ledger.claim()])
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),)))
        assert await _heard(hints, {f"job/{job}"}) == {f"job/{job}"}


@cases.add()
async def numbers_have_no_gap_under_load(ledger: Ledger) -> None:
    """Finishes, additions and lines of two jobs through three connections: every event and every line is there."""
    stores: list[Store] = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    jobs = [
        (await ledger.store.create_job(NewJob(name="j", tasks=tuple(task(job=None) for _ in range(30)))))[0]
        for _ in range(2)
    ]
    written = dict.fromkeys(jobs, 0)

    async def work(store: Store, worker: str) -> None:
        wants = [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=3)]
        while claims := await store.claim(worker, wants):
            lines = [(ref(claim), n, "log", f"{claim.id} {n}") for n in range(3) for claim in claims]
            # The same lines by two at once, as after a connection that was lost.
            await asyncio.gather(store.append_logs(lines), stores[0].append_logs(lines[::-1]))
            for claim in claims:
                assert claim.job is not None
                written[claim.job] += 3
            await store.finish(worker, [completed(claim) for claim in claims])

    async def add(store: Store) -> None:
        for n in range(10):
            try:
                await store.enqueue([task(job=jobs[(n + place) % 2]) for place in range(3)])
            except WrongState:
                return  # one of them was over

    async with asyncio.timeout(60):
        await asyncio.gather(*[work(stores[n % 3], f"w{n}") for n in range(5)], add(stores[1]), add(stores[2]))
        await work(stores[0], "w0")
    for job in jobs:
        record = await ledger.job(job)
        events = await ledger.store.job_events(job, limit=1000)
        assert [event.seq for event in events] == list(range(len(events)))
        assert shown(events[-1]) == ("completed", record.total, record.total, 0, 0)
        assert all(one.completed <= two.completed for one, two in pairwise(events))
        lines = await ledger.store.job_lines(job, limit=1000)
        assert [line.seq for line in lines] == list(range(written[job]))
        assert record.state is JobState.COMPLETED
