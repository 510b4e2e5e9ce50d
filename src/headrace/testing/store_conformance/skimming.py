"""Narrow rows for whoever searches: everything once, in order, by whatever index and in windows of whatever size."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from headrace.core.states import TERMINAL, JobState, TaskState
from headrace.core.task import ErrorInfo, NewJob, TaskFilter
from headrace.store.skimming import SKIMMED_MESSAGE, Hint, Skimmed, SkimmedJob
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, ref, stopped, task

cases = Cases("skimming")

_TOP = 2**62


async def live(ledger: Ledger, window: int, limit: int, **filters: Any) -> list[Skimmed]:
    found: list[Skimmed] = []
    below = _TOP
    while True:
        skim = await ledger.store.skim_live(TaskFilter(**filters), below=below, window=window, limit=limit)
        assert len(skim.rows) <= limit
        assert skim.place < below or skim.is_last
        found += skim.rows
        if skim.is_last:
            return found
        below = skim.place


async def ended(ledger: Ledger, window: int, **filters: Any) -> list[Skimmed]:
    found: list[Skimmed] = []
    criteria = TaskFilter(**filters)
    while True:
        skim = await ledger.store.skim_ended(criteria, window=window)
        assert len(skim.rows) == skim.looked <= window
        found += skim.rows
        if skim.is_last:
            return found
        place: tuple[datetime, int] = skim.place
        criteria = replace(criteria, before=place)


@cases.add()
async def live_tasks_by_every_index(ledger: Ledger) -> None:
    said = json.dumps({"label": "the first", "tags": ["red", "blue"]})
    ids = await ledger.enqueue(
        task("a", owner="ada", options=said), task("b", queue="mail"), task("a", owner="bob"), task("c", owner="ada"),
        task("a", queue="mail"), task("waits", approval=True, owner="ada"),
    )  # fmt: skip
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=[task("d"), task("a")]))
    of_job = sorted((answer.id for answer in answers), reverse=True)
    everything = sorted([*ids, *of_job], reverse=True)
    claims = [claim for claim in await ledger.claim("w") if claim.id == ids[2]]
    await ledger.store.start("w", [ref(claim) for claim in claims])
    for window, limit in ((1, 1), (3, 2), (2, 100), (100, 100)):
        assert [row.id for row in await live(ledger, window, limit)] == everything

        async def found(window: int = window, limit: int = limit, **filters: Any) -> set[int]:
            rows = [row.id for row in await live(ledger, window, limit, **filters)]
            assert rows == sorted(rows, reverse=True)
            assert len(rows) == len(set(rows))
            return set(rows)

        assert await found(owner="ada") == {ids[0], ids[3], ids[5]}
        assert await found(names=("a",)) == {ids[0], ids[2], ids[4], of_job[0]}
        assert await found(queues=("mail",)) == {ids[1], ids[4]}
        assert await found(queues=("mail", "default"), names=("b", "c")) == {ids[1], ids[3]}
        assert await found(job=job) == set(of_job)
        assert await found(job=job, names=("a",)) == {of_job[0]}
        assert await found(states=(TaskState.RUNNING,)) == {ids[2]}
        assert await found(states=(TaskState.RUNNING,), owner="ada") == set()
        assert await found(worker="w", owner="bob") == {ids[2]}
        assert await found(worker="nobody") == set()
        assert await found(states=(TaskState.PENDING_APPROVAL,)) == {ids[5]}
        assert await found(states=(TaskState.PENDING_APPROVAL,), owner="bob") == set()
        assert await found(states=(TaskState.PENDING,)) == {ids[1], ids[4]}
        assert await found(states=tuple(TERMINAL)) == set()
        assert await found(dead_letter=True) == set()
        assert await found(owner="\0") == set()
    [first] = [row for row in await live(ledger, 100, 100) if row.id == ids[0]]
    assert (first.name, first.queue, first.owner, first.worker) == ("a", "default", "ada", "w")
    assert (first.label, json.loads(first.tags or "[]")) == ("the first", ["red", "blue"])
    assert first.at == (await ledger.get(ids[0])).created_at
    assert (first.error_class, first.error_message, first.dead_letter) == (None, None, False)


@cases.add()
async def ended_tasks_by_every_index(ledger: Ledger) -> None:
    said = json.dumps({"label": "the first", "tags": ["red"]})
    ids = await ledger.enqueue(
        task("a", owner="ada", options=said), task("b"), task("c", owner="ada"), task("d", dead_letter=True),
        task("e", dead_letter=True, owner="ada"),
    )  # fmt: skip
    job, answers = await ledger.store.create_job(NewJob(name="j", tasks=[task("f"), task("g", critical=False)]))
    of_job = [answer.id for answer in answers]
    by_id = {claim.id: claim for claim in await ledger.claim("w")}
    long = ErrorInfo(error_class="builtins.KeyError", message="x" * (SKIMMED_MESSAGE + 5))
    await ledger.finish("w", completed(by_id[ids[0]]), failed_for_good(by_id[ids[1]], long))
    await ledger.let_pass(0.001)
    await ledger.finish("w", completed(by_id[of_job[0]]), failed_for_good(by_id[of_job[1]]))
    await ledger.store.cancel([ids[2]])
    await ledger.finish("w", stopped(by_id[ids[2]]))
    await ledger.finish("w", *(failed_for_good(by_id[id], dead_letter=True) for id in ids[3:]))
    for window in (1, 2, 3, 100):
        assert {row.id for row in await ended(ledger, window)} == {*ids, *of_job}

        async def found(window: int = window, **filters: Any) -> list[int]:
            rows = await ended(ledger, window, **filters)
            assert rows == sorted(rows, key=lambda row: (row.at, row.id), reverse=True)
            return sorted(row.id for row in rows)

        assert await found(states=(TaskState.CANCELLED,)) == [ids[2]]
        assert await found(states=(TaskState.COMPLETED,), names=("a",)) == [ids[0]]
        assert await found(names=("a", "d")) == [ids[0], ids[3]]
        assert await found(queues=("nowhere",)) == []
        assert await found(job=job) == sorted(of_job)
        assert await found(dead_letter=True) == [ids[3], ids[4]]
        assert await found(owner="ada") == [ids[0], ids[2], ids[4]]
        assert await found(states=(TaskState.PENDING,)) == []
        assert await found(owner="\0") == []
    rows = {row.id: row for row in await ended(ledger, 100)}
    assert (rows[ids[0]].label, rows[ids[0]].tags) == ("the first", '["red"]')
    assert (rows[ids[0]].state, rows[ids[0]].worker, rows[ids[0]].owner) == (TaskState.COMPLETED, "w", "ada")
    assert rows[ids[0]].at == (await ledger.get(ids[0])).finished_at
    assert (rows[ids[1]].error_class, rows[ids[1]].error_message) == ("builtins.KeyError", "x" * SKIMMED_MESSAGE)
    assert [rows[id].dead_letter for id in ids] == [False, False, False, True, True]


@cases.add()
async def hints_spare_what_nobody_takes(ledger: Ledger) -> None:
    tagged, labelled = json.dumps({"tags": ["Red"]}), json.dumps({"label": "Second step"})
    oldest = await ledger.enqueue_one("oldest")  # the last one of a look may be among its rows whatever it is
    await ledger.finish("w1", completed(await ledger.claim_one("w1")))
    await ledger.let_pass(0.001)
    new = [
        task("a.one", options=tagged), task("a.two", options=labelled, owner="Ada"), task("b"), task("c", queue="Mail"),
    ]  # fmt: skip
    ids = await ledger.enqueue(*new, *(replace(each, name=f"{each.name}.ended") for each in new))
    gone = ErrorInfo(error_class="app.Gone", message="Nobody is THERE")
    for worker, queue in (("w1", "default"), ("w2", "Mail")):
        for claim in await ledger.claim(worker, queue=queue):
            if claim.name.endswith(".ended"):
                done = failed_for_good(claim, gone) if claim.name == "b.ended" else completed(claim)
                await ledger.finish(worker, done)

    async def found(hint: Hint, **filters: Any) -> set[int]:
        """Places among the ids."""
        criteria = TaskFilter(**filters)
        live = await ledger.store.skim_live(criteria, below=_TOP, window=100, limit=100, hint=hint)
        ended = await ledger.store.skim_ended(criteria, window=100, hint=hint)
        assert (ended.looked, ended.is_last) == (5, True)
        return {ids.index(row.id) for row in (*live.rows, *ended.rows) if row.id != oldest}

    assert await found(Hint()) == set(range(8))
    assert await found(Hint(tagged=True)) == {0, 4}
    assert await found(Hint("red")) == {0, 4}
    assert await found(Hint("second")) == {1, 5}
    assert await found(Hint("ada")) == {1, 5}
    assert await found(Hint("mail")) == {3, 7}
    assert await found(Hint("nobody is there")) == {6}
    assert await found(Hint("app.gone")) == {6}
    assert await found(Hint("w2")) == {3, 7}
    assert await found(Hint("ended")) == {4, 5, 6, 7}
    assert await found(Hint("nothing like it")) == set()
    assert await found(Hint(), worker="w2") == {3, 7}


@cases.add()
async def jobs_are_skimmed_by_name_by_owner_or_all_from_the_newest_on(ledger: Ledger) -> None:
    store = ledger.store
    made = [
        (await store.create_job(NewJob(name=name, tasks=[task()], owner=owner)))[0]
        for name, owner in (
            ("nightly", "ada"),
            ("weekly", "bob"),
            ("nightly", "bob"),
            ("night", None),
            ("nightly", "ada"),
        )
    ]
    await store.cancel_job(made[0])
    first, weekly, bobs, night, last = made

    async def skimmed(window: int, **whose: Any) -> list[SkimmedJob]:
        found: list[SkimmedJob] = []
        below = _TOP
        while part := await store.skim_jobs(below=below, window=window, **whose):
            assert len(part) <= window
            found += part
            below = part[-1].id
        return found

    newest_first = sorted(made, reverse=True)
    for window in (1, 2, 50):
        assert [job.id for job in await skimmed(window)] == newest_first
        of_name = await skimmed(window, name="nightly")
        assert [job.id for job in of_name] == [id for id in newest_first if id in (first, bobs, last)]
        # Whose they are is for the caller to look at.
        assert await skimmed(window, name="nightly", owner="ada") == of_name
        assert [job.id for job in await skimmed(window, owner="bob")] == [
            id for id in newest_first if id in (weekly, bobs)
        ]
    states = {job.id: (job.name, job.state, job.owner) for job in await skimmed(50)}
    assert states[first] == ("nightly", JobState.CANCELLED, "ada")
    assert states[night] == ("night", JobState.PENDING, None)
    assert await skimmed(50, name="no such") == await skimmed(50, name="\0") == await skimmed(50, owner="\0") == []
