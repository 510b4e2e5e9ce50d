"""Whose a task is: said when it is enqueued, kept through every move, and found by an index of its own."""

from datetime import datetime
from typing import Any

from headrace.core.batch import Batch, Template
from headrace.core.schedule import Fire, Firing, NewSchedule
from headrace.core.states import TERMINAL, JobState, TaskState
from headrace.core.task import After, Key, NewJob, TaskFilter, TaskRecord
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, ref, task

cases = Cases("owners")


async def _owners(ledger: Ledger, ids: list[int]) -> list[str | None]:
    return [(await ledger.get(id)).owner for id in ids]


@cases.add()
async def a_task_is_of_whom_its_enqueue_says(ledger: Ledger) -> None:
    """One by one, many of one kind, many kinds, and in the way of those that have keys."""
    alone = await ledger.enqueue(task(owner="ada"))
    nobodys = await ledger.enqueue(task())
    alike = await ledger.enqueue(*[task(owner="ada", arguments=f'{{"n":{n}}}') for n in range(20)])
    run = Batch([(Template(task(owner="bob")), ["{}"] * 20), (Template(task()), ["{}"])])
    batch = [answer.id for answer in await ledger.store.enqueue(run)]
    mixed = await ledger.enqueue(task(owner="ada"), task(owner="bob"), task())
    keyed = await ledger.enqueue(
        task(owner="ada", keys=(Key(scope="unique", key="x"),)), task(keys=(Key(scope="idem", key="y", ttl=60.0),))
    )
    asked = await ledger.enqueue(task(owner="ada", approval=True))
    assert await _owners(ledger, [*alone, *nobodys]) == ["ada", None]
    assert await _owners(ledger, alike) == ["ada"] * 20
    assert await _owners(ledger, batch) == [*["bob"] * 20, None]
    assert await _owners(ledger, [*mixed, *keyed, *asked]) == ["ada", "bob", None, "ada", None, "ada"]


@cases.add()
async def it_stays_theirs_wherever_it_goes(ledger: Ledger) -> None:
    """To history in each of the ways there are, and back."""
    plain, other = await ledger.enqueue(task(owner="ada"), task(owner="bob"))
    first, second = await ledger.claim()
    await ledger.store.start("a", [ref(second)])
    await ledger.finish("a", completed(first), completed(second))
    assert await _owners(ledger, [plain, other]) == ["ada", "bob"]
    broken = await ledger.enqueue_one(owner="ada")
    await ledger.finish("a", failed(await ledger.claim_one()))
    assert await _owners(ledger, [broken]) == ["ada"]
    await ledger.finish("a", failed_for_good(await ledger.claim_due()))
    assert ((await ledger.get(broken)).state, (await ledger.get(broken)).owner) == (TaskState.FAILED, "ada")
    assert sorted(await ledger.store.retry([broken, plain])) == sorted([broken, plain])
    assert [(await ledger.get(id)).state for id in (broken, plain)] == [TaskState.PENDING] * 2
    assert await _owners(ledger, [broken, plain]) == ["ada", "ada"]
    await ledger.store.cancel([broken])
    asked = await ledger.enqueue_one(owner="ada", approval=True)
    await ledger.store.decide(asked, approved=False, by="root")
    old = await ledger.enqueue_one(owner="bob", max_age=0.01, delay=3600)
    await ledger.let_pass(0.02)
    await ledger.store.expire()
    assert [(await ledger.get(id)).state for id in (broken, asked, old)] == ["cancelled", "rejected", "failed"]
    assert await _owners(ledger, [broken, asked, old]) == ["ada", "ada", "bob"]


@cases.add()
async def the_tasks_of_a_job_are_its_owners(ledger: Ledger) -> None:
    """With its hooks, what joins it later, and what is cancelled because another task failed; unless they say whose
    they are."""
    hook = task("hook")
    after = (After(task=0, local=True),)
    tasks = (task(), task(owner="bob"), task(after=after), task(keys=(Key(scope="unique", key="x"),)))
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks, owner="ada", on_failure=hook))
    record = await ledger.store.get_job(job)
    assert record is not None
    assert record.owner == "ada"
    made = [answer.id for answer in answers]
    assert await _owners(ledger, made) == ["ada", "bob", "ada", "ada"]
    later = await ledger.enqueue(task(job=job), task(job=job, owner="bob"), task(job=job, after=(After(task=made[0]),)))
    assert await _owners(ledger, later) == ["ada", "bob", "ada"]
    while claims := await ledger.claim():
        if "hook" in {claim.name for claim in claims}:
            break
        await ledger.finish("a", *[failed_for_good(claim) for claim in claims])
    ended = await ledger.store.get_job(job)
    assert ended is not None
    assert (ended.state, ended.owner) == (JobState.FAILED, "ada")
    assert (await ledger.get(made[2])).state is TaskState.CANCELLED
    assert await _owners(ledger, [*made, *later]) == ["ada", "bob", "ada", "ada", "ada", "bob", "ada"]
    assert [(claim.name, (await ledger.get(claim.id)).owner) for claim in claims] == [("hook", "ada")]
    await ledger.store.retry_failed(job)
    assert await _owners(ledger, [*made, *later]) == ["ada", "bob", "ada", "ada", "ada", "bob", "ada"]


@cases.add()
async def many_tasks_of_a_job_are_its_owners(ledger: Ledger) -> None:
    tasks = [task(arguments=f'{{"n":{n}}}') for n in range(30)]
    _, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks, owner="ada"))
    assert await _owners(ledger, [answer.id for answer in answers]) == ["ada"] * 30
    _, answers = await ledger.store.create_job(NewJob(name="j", tasks=tasks))
    assert await _owners(ledger, [answer.id for answer in answers]) == [None] * 30


@cases.add()
async def a_hook_may_be_of_somebody_else(ledger: Ledger) -> None:
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=(task(),), on_success=task("mine", owner="bob")))
    await ledger.finish("a", completed(await ledger.claim_one()))
    hook = await ledger.claim_one()
    assert (hook.name, (await ledger.get(hook.id)).owner) == ("mine", "bob")
    record = await ledger.store.get_job(job)
    assert record is not None
    assert record.owner is None


@cases.add()
async def a_child_is_of_the_owner_of_its_caller(ledger: Ledger) -> None:
    await ledger.enqueue_one(owner="ada")
    claim = await ledger.claim_one()
    children: list[int] = []
    for step, child in (("one", task()), ("two", task(owner="bob")), ("one", task())):
        made = await ledger.store.spawn("a", ref(claim), step, child)
        assert made is not None
        children.append(made)
    assert children[0] == children[2]
    assert await _owners(ledger, children) == ["ada", "bob", "ada"]
    nobodys = await ledger.enqueue_one(queue="other")
    (claim,) = await ledger.claim(queue="other")
    assert claim.id == nobodys
    made = await ledger.store.spawn("a", ref(claim), "one", task())
    assert made is not None
    assert await _owners(ledger, [made]) == [None]


@cases.add()
async def what_a_schedule_fires_is_nobodys(ledger: Ledger) -> None:
    (record,) = await ledger.store.put_schedules([NewSchedule(name="nightly", cadence='{"every":60}', task=task())])
    await ledger.let_pass(0.001)
    now = await ledger.store.now()
    firing = Firing(
        schedule=record.id,
        revision=record.revision,
        cursor=record.cursor,
        new_cursor=now,
        next_at=now,
        fires=(Fire(tick=now),),
    )
    (fired,) = await ledger.store.fire([firing])
    assert fired.task is not None
    assert await _owners(ledger, [fired.task]) == [None]


@cases.add()
async def whoever_replaces_a_task_owns_what_runs(ledger: Ledger) -> None:
    """Otherwise the arguments of one would run in the name of another."""

    def unique(**fields: Any) -> Any:
        return task(keys=(Key(scope="unique", key="x", on_conflict="replace"),), **fields)

    id = await ledger.enqueue_one(keys=(Key(scope="unique", key="x"),), owner="ada", delay=60.0)
    for owner in ("bob", None):
        (answer,) = await ledger.store.enqueue([unique(owner=owner, delay=60.0)])
        assert (answer.id, answer.created) == (id, False)
        assert await _owners(ledger, [id]) == [owner]
    job, _ = await ledger.store.create_job(
        NewJob(name="j", tasks=(task(keys=(Key(scope="unique", key="y"),), delay=60.0),), owner="ada")
    )
    again = task(keys=(Key(scope="unique", key="y", on_conflict="replace"),), delay=60.0)
    (answer,) = await ledger.store.enqueue([again])
    assert ((await ledger.get(answer.id)).job, (await ledger.get(answer.id)).owner) == (job, "ada")


async def _pages(ledger: Ledger, **wanted: Any) -> list[TaskRecord]:
    """Everything of one filter, three at a time."""
    found: list[TaskRecord] = []
    before: tuple[datetime, int] | None = None
    while page := await ledger.store.list(TaskFilter(**wanted, limit=3, before=before)):
        found += page
        before = (page[-1].finished_at or page[-1].created_at, page[-1].id)
    return found


@cases.add()
async def lists_of_one_owner(ledger: Ledger) -> None:
    """Live and ended ones together, page by page, with every other filter beside it; the same as a look at all."""
    for n in range(12):
        owner = ("ada", "bob", None)[n % 3]
        await ledger.enqueue(
            task(f"name{n % 2}", owner=owner, queue=f"q{n % 2}"),
            task(owner=owner, queue="ends", dead_letter=n < 6, job=None),
        )
        await ledger.let_pass(0.001)
        (claim,) = await ledger.claim(queue="ends")
        await ledger.finish("a", failed_for_good(claim) if n < 9 else completed(claim))
    job, _ = await ledger.store.create_job(NewJob(name="j", tasks=[task(), task(queue="ends")], owner="ada"))
    await ledger.finish("a", completed((await ledger.claim(queue="ends"))[0]))
    everything = await _pages(ledger)
    assert len(everything) == 26
    filters: tuple[dict[str, Any], ...] = (
        {}, {"states": (TaskState.PENDING,)}, {"states": tuple(TERMINAL)}, {"states": (TaskState.FAILED,)},
        {"states": (TaskState.PENDING, TaskState.COMPLETED)}, {"queues": ("q0",)}, {"queues": ("ends", "q1")},
        {"names": ("name1", "conformance.work")}, {"worker": "a"}, {"worker": "b"}, {"dead_letter": True},
        {"dead_letter": False}, {"job": job}, {"job": job, "dead_letter": False},
    )  # fmt: skip
    for wanted in filters:
        all_of_it = await _pages(ledger, **wanted)
        for owner in ("ada", "bob", "eve", "\0"):
            expected = [record for record in all_of_it if record.owner == owner]
            assert await _pages(ledger, **wanted, owner=owner) == expected, (wanted, owner)
    assert len(await _pages(ledger, owner="ada")) == 10


@cases.add()
async def jobs_of_one_owner(ledger: Ledger) -> None:
    made: dict[str | None, list[int]] = {"ada": [], "bob": [], None: []}
    for n in range(9):
        owner = ("ada", "bob", None)[n % 3]
        job, _ = await ledger.store.create_job(NewJob(name="j", tasks=[task()], owner=owner))
        made[owner].append(job)
    await ledger.store.cancel_job(made["ada"][1])
    newest = made["ada"][::-1]
    assert [job.id for job in await ledger.store.list_jobs(owner="ada")] == newest
    assert [job.owner for job in await ledger.store.list_jobs(owner="ada")] == ["ada"] * 3
    assert [job.id for job in await ledger.store.list_jobs(owner="ada", limit=2)] == newest[:2]
    assert [job.id for job in await ledger.store.list_jobs(owner="ada", before=newest[1])] == newest[2:]
    cancelled = await ledger.store.list_jobs(owner="ada", states=[JobState.CANCELLED])
    assert [job.id for job in cancelled] == [made["ada"][1]]
    for nobody in ("eve", "\0"):
        assert await ledger.store.list_jobs(owner=nobody) == []
    assert len(await ledger.store.list_jobs()) == 9
