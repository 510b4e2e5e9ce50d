"""Limits and rates of queues that are set while it runs: they hold for what was enqueued before, and can be lifted."""

import asyncio
from collections.abc import Sequence

from headrace.core.lanes import Lane
from headrace.core.limits import Gate, Rate
from headrace.core.task import ClaimedTask, Want
from headrace.store.base import Store
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref, task

cases = Cases("queue_settings")


async def _admitted(ledger: Ledger, queue: str = "mail", worker: str = "a") -> list[ClaimedTask]:
    """Whatever may start now."""
    claims = await ledger.claim(worker, queue=queue)
    admission = await ledger.store.admit(worker, [claim for claim in claims if claim.gated])
    return [claim for claim in claims if not claim.gated or ref(claim) in admission.admitted]


async def _finish(ledger: Ledger, claims: Sequence[ClaimedTask], worker: str = "a") -> None:
    await ledger.finish(worker, *[completed(claim) for claim in claims])


@cases.add()
async def a_queue_without_settings_gives_plain_claims(ledger: Ledger) -> None:
    await ledger.enqueue(task(queue="mail"), task(queue="web"))
    await ledger.store.limit_queue("mail", 1)
    assert [claim.gated for claim in await ledger.claim(queue="web")] == [False]
    assert [claim.gated for claim in await ledger.claim(queue="mail")] == [True]
    # And so does a look at what is held, by which a worker takes in what it was not told of.
    held = await ledger.store.held("a", limit=10)
    assert {claim.queue: claim.gated for claim in held} == {"mail": True, "web": False}


@cases.add()
async def a_limit_holds_for_what_was_enqueued_before(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(5)])
    await ledger.store.limit_queue("mail", 2)
    running = await _admitted(ledger)
    assert len(running) == 2
    assert await _admitted(ledger) == []
    await _finish(ledger, running[:1])
    third = await _admitted(ledger)
    assert len(third) == 1
    await _finish(ledger, [*running[1:], *third])
    assert len(await _admitted(ledger)) == 2


@cases.add()
async def a_claim_with_a_finish_is_gated_too(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(3)])
    (first,) = await ledger.claim(n=1, queue="mail")
    await ledger.store.limit_queue("mail", 1)
    wants = [Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=5)]
    report = await ledger.store.finish("a", [completed(first)], wants=wants)
    assert [claim.gated for claim in report.claimed] == [True, True]


@cases.add()
async def raising_a_limit_readies_those_who_wait(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(6)])
    await ledger.store.limit_queue("mail", 1)
    running = await _admitted(ledger)
    assert len(running) == 1
    await ledger.store.limit_queue("mail", 4)
    more = await _admitted(ledger)
    assert len(more) == 3
    await _finish(ledger, more)
    assert len(await _admitted(ledger)) == 2


@cases.add()
async def a_lowered_limit_counts_those_who_run(ledger: Ledger) -> None:
    """Also where slots of lower numbers are free."""
    await ledger.enqueue(*[task(queue="mail") for _ in range(8)])
    await ledger.store.limit_queue("mail", 5)
    running = await _admitted(ledger)
    assert len(running) == 5
    await ledger.store.limit_queue("mail", 2)
    await _finish(ledger, running[:2])
    assert await _admitted(ledger) == [], "three still run"
    await _finish(ledger, running[2:4])
    assert len(await _admitted(ledger)) == 1


@cases.add()
async def a_first_limit_counts_those_who_run(ledger: Ledger) -> None:
    """Whatever let them in: nothing, a gate of their own, or a limit that was lifted meanwhile."""
    own = (Gate(kind="limit", key="of-code", n=9),)
    await ledger.enqueue(*[task(queue="mail", gates=own if n % 2 else ()) for n in range(4)])
    await ledger.enqueue(*[task(queue="mail") for _ in range(4)], task(queue="web"))
    (web,) = await ledger.claim(queue="web")
    claims = await ledger.claim(n=4, queue="mail")
    assert {ref(claim) for claim in claims if claim.gated} == (
        await ledger.store.admit("a", [claim for claim in claims if claim.gated])
    ).admitted
    await ledger.store.start("a", [ref(claims[0])])
    await ledger.store.limit_queue("mail", 2)
    assert await _admitted(ledger) == [], "four run"
    await _finish(ledger, [*claims[:2], web])
    assert await _admitted(ledger) == [], "two run"
    await ledger.store.limit_queue("mail", 3)
    (third,) = await _admitted(ledger)
    await ledger.store.limit_queue("mail", None)
    more = await _admitted(ledger)
    assert len(more) == 3
    await ledger.store.limit_queue("mail", 1)
    late = await ledger.enqueue_one(queue="mail")
    await _finish(ledger, [claims[2], third, *more])
    assert await _admitted(ledger) == [], "one runs"
    await ledger.finish("a", failed(claims[3], delay=600))
    assert [claim.id for claim in await _admitted(ledger)] == [late]


@cases.add()
async def who_has_not_passed_its_gates_is_not_counted_twice(ledger: Ledger) -> None:
    """Claimed before a limit is set and on its way through the gates of its code: the admission takes the slot."""
    own = (Gate(kind="limit", key="of-code", n=1),)
    await ledger.enqueue(*[task(queue="mail", gates=own) for _ in range(2)])
    claims = await ledger.claim(queue="mail")
    await ledger.store.limit_queue("mail", 5)
    admission = await ledger.store.admit("a", claims)
    assert (len(admission.admitted), len(admission.parked)) == (1, 1)


@cases.add()
async def lifting_a_limit_readies_everybody(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(1100)])
    await ledger.store.limit_queue("mail", 1)
    claims = await ledger.claim(n=1100, queue="mail")
    assert len((await ledger.store.admit("a", claims)).admitted) == 1
    await ledger.store.limit_queue("mail", None)
    claims = await ledger.claim(n=1100, queue="mail")
    assert len(claims) == 1099
    assert len((await ledger.store.admit("a", claims)).admitted) == 1099
    await _finish(ledger, claims)
    await ledger.enqueue_one(queue="mail")
    assert [claim.gated for claim in await ledger.claim(queue="mail")] == [False]


@cases.add()
async def what_code_asks_for_holds_beside_it(ledger: Ledger) -> None:
    """The smaller of both, and the task's own gates outlive the setting."""
    own = (Gate(kind="limit", key="queue:mail", n=2),)
    await ledger.enqueue(*[task(queue="mail", gates=own) for _ in range(5)])
    await ledger.store.limit_queue("mail", 3)
    running = await _admitted(ledger)
    assert len(running) == 2
    await ledger.store.limit_queue("mail", 1)
    await _finish(ledger, running)
    running = await _admitted(ledger)
    assert len(running) == 1
    await ledger.store.limit_queue("mail", None)
    assert len(await _admitted(ledger)) == 1


@cases.add()
async def a_retry_holds_no_room_and_takes_it_again(ledger: Ledger) -> None:
    await ledger.enqueue(task(queue="mail"), task(queue="mail"))
    await ledger.store.limit_queue("mail", 1)
    (first,) = await _admitted(ledger)
    await ledger.finish("a", failed(first, delay=600))
    (second,) = await _admitted(ledger)
    assert second.id != first.id
    await ledger.store.limit_queue("mail", None)
    assert await _admitted(ledger) == [], "a retry keeps its time when the limit is lifted"


@cases.add()
async def a_rate_holds_for_what_was_enqueued_before_and_can_be_lifted(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(6)])
    await ledger.store.rate_queue("mail", Rate(2, per=3600))
    started = await _admitted(ledger)
    assert len(started) == 2
    await ledger.finish("a", failed(started[0], delay=600), completed(started[1]))
    assert await _admitted(ledger) == []
    await ledger.enqueue_one(queue="mail", delay=600)
    await ledger.store.rate_queue("mail", None)
    assert len(await _admitted(ledger)) == 4, "neither the retry nor the one that is for later"


@cases.add()
async def a_raised_rate_is_heeded_by_those_who_wait(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(queue="mail") for _ in range(40)])
    await ledger.store.rate_queue("mail", Rate(1, per=3600))
    assert len(await _admitted(ledger)) == 1
    await ledger.store.rate_queue("mail", Rate(1000, per=0.1, burst=1000))
    await ledger.let_pass(0.2)
    assert len(await _admitted(ledger)) == 39


@cases.add()
async def settings_are_listed_and_changed_one_by_one(ledger: Ledger) -> None:
    store = ledger.store
    await store.limit_queue("mail", 3)
    await store.rate_queue("mail", Rate(10, per=60, burst=20))
    await store.pause("mail")
    (mail,) = await store.queues()
    assert (mail.name, mail.limit, mail.rate, mail.paused) == ("mail", 3, Rate(10, per=60.0, burst=20), True)
    await store.rate_queue("mail", Rate(5, per=1))
    await store.limit_queue("mail", None)
    await store.resume("mail")
    (mail,) = await store.queues()
    assert (mail.limit, mail.rate, mail.paused) == (None, Rate(5, per=1.0), False)
    await store.rate_queue("mail", None)
    (mail,) = await store.queues()
    assert (mail.limit, mail.rate) == (None, None)
    assert "mail" in await store.queue_names()


@cases.add()
async def two_workers_never_hold_more_than_the_limit(ledger: Ledger) -> None:
    """Limit 1 over all, with settings that change meanwhile: everything is done, and never two at once."""
    ids = await ledger.enqueue(*[task(queue="mail") for _ in range(40)])
    await ledger.store.limit_queue("mail", 1)
    stores = [ledger.store, await ledger.another_store()]
    wants = [Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=4)]
    inside: set[int] = set()
    most = 0
    done: list[int] = []

    async def work(store: Store, worker: str) -> None:
        nonlocal most
        async with asyncio.timeout(60):
            while len(done) < len(ids):
                claims = await store.claim(worker, wants)
                admission = await store.admit(worker, claims)
                started = [claim for claim in claims if ref(claim) in admission.admitted]
                inside.update(claim.id for claim in started)
                most = max(most, len(inside))
                await asyncio.sleep(0)
                inside.difference_update(claim.id for claim in started)
                if started:
                    done.extend(claim.id for claim in started)
                    await store.finish(worker, [completed(claim) for claim in started])
                else:
                    await store.unpark()
                    await asyncio.sleep(0.001)

    await asyncio.gather(work(stores[0], "a"), work(stores[1], "b"))
    assert sorted(done) == sorted(ids)
    assert most == 1


@cases.add()
async def nobody_is_left_behind_by_settings_that_change(ledger: Ledger) -> None:
    """Limits that are set, raised and lifted beside two workers: every task runs, without anybody sweeping."""
    ids = await ledger.enqueue(*[task(queue="mail") for _ in range(60)])
    stores = [ledger.store, await ledger.another_store(), await ledger.another_store()]
    wants = [Want(queue="mail", pool="coroutine", lane=Lane.PRIMARY, n=5)]
    done: list[int] = []
    await ledger.store.limit_queue("mail", 1)

    async def work(store: Store, worker: str) -> None:
        async with asyncio.timeout(60):
            while len(done) < len(ids):
                claims = await store.claim(worker, wants)
                admission = await store.admit(worker, [claim for claim in claims if claim.gated])
                started = [claim for claim in claims if not claim.gated or ref(claim) in admission.admitted]
                done.extend(claim.id for claim in started)
                await store.finish(worker, [completed(claim) for claim in started])
                await asyncio.sleep(0.001)

    async def change() -> None:
        limits = (2, None, 1, 3, None, 2)
        for turn in range(600):
            if len(done) >= len(ids):
                return
            await stores[2].limit_queue("mail", limits[turn % len(limits)])
            await asyncio.sleep(0.002)

    await asyncio.gather(work(stores[0], "a"), work(stores[1], "b"), change())
    assert sorted(done) == sorted(ids)
