"""Admission: limits, rates and order keys hold over all workers; who finds no room waits uncharged."""

from typing import Any

from headrace.core.limits import Gate
from headrace.core.task import ClaimedTask, NewTask
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    lost,
    ref,
    released,
    stopped,
    task,
)

cases = Cases("admission")


def limited(key: str = "k", n: int = 1, **options: Any) -> NewTask:
    return task(gates=(Gate(kind="limit", key=key, n=n),), **options)


def ordered(key: str = "k", **options: Any) -> NewTask:
    return task(gates=(Gate(kind="order", key=key),), **options)


def rated(key: str = "k", n: int = 2, per: float = 0.5, burst: int | None = None, **options: Any) -> NewTask:
    return task(gates=(Gate(kind="rate", key=key, n=n, per=per, burst=burst),), **options)


async def admitted(ledger: Ledger, worker: str, claims: list[ClaimedTask]) -> list[ClaimedTask]:
    """Admit, checking that every claim is in exactly one of the answers."""
    answer = await ledger.store.admit(worker, claims)
    assert answer.admitted | answer.parked == {ref(claim) for claim in claims}
    assert not answer.admitted & answer.parked
    return [claim for claim in claims if ref(claim) in answer.admitted]


async def claim_and_admit(ledger: Ledger, worker: str = "a", n: int = 100) -> list[ClaimedTask]:
    claims = await ledger.claim(worker, n)
    return await admitted(ledger, worker, claims) if claims else []


@cases.add()
async def a_gated_task_says_so(ledger: Ledger) -> None:
    await ledger.enqueue(limited(), task())
    assert [claim.gated for claim in await ledger.claim()] == [True, False]


@cases.add()
async def a_limit_is_a_limit(ledger: Ledger) -> None:
    """Of five tasks with a limit of two, two may start, whoever asks."""
    await ledger.enqueue(*[limited(n=2) for _ in range(5)])
    running = await admitted(ledger, "a", await ledger.claim("a", 3))
    running += await admitted(ledger, "b", await ledger.claim("b", 3))
    assert len(running) == 2
    assert await claim_and_admit(ledger, "c") == []


@cases.add()
async def a_parked_task_is_pending_and_uncharged(ledger: Ledger) -> None:
    await ledger.enqueue(limited(), limited())
    claims = await ledger.claim()
    (first,) = await admitted(ledger, "a", claims)
    (second,) = [claim for claim in claims if claim != first]
    parked = await ledger.get(second.id)
    assert (parked.state.value, parked.worker, parked.attempt) == ("pending", None, 0)
    assert parked.waiting_on is not None
    assert await ledger.claim() == []
    assert await ledger.attempts(second.id) == []


@cases.add()
async def the_first_to_wait_is_the_next_to_run(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[limited() for _ in range(4)])
    done: list[int] = []
    for _ in range(4):
        (claim,) = await claim_and_admit(ledger)
        done.append(claim.id)
        await ledger.finish("a", completed(claim))
    assert done == ids


@cases.add()
async def every_end_frees_the_slot(ledger: Ledger) -> None:
    """Completed, failed, cancelled, given back, retried, lost."""
    await ledger.enqueue(*[limited() for _ in range(7)])
    for end in (completed, failed_for_good, stopped, completed):
        (claim,) = await claim_and_admit(ledger)
        await ledger.finish("a", end(claim))
    for end in (released, failed, lost):
        (claim,) = await claim_and_admit(ledger)
        await ledger.finish("a", end(claim))
        await ledger.let_pass(0.01)
    for _ in range(3):
        (claim,) = await claim_and_admit(ledger)
        await ledger.finish("a", completed(claim))
        await ledger.let_pass(0.01)
    assert await ledger.claim() == []
    assert (await ledger.store.counts()).get("pending", 0) == 0


@cases.add()
async def cancelling_a_parked_task_takes_it_out_of_the_line(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[limited() for _ in range(3)])
    (first,) = await claim_and_admit(ledger)
    await ledger.store.cancel([ids[1]])
    await ledger.finish("a", completed(first))
    (next_one,) = await claim_and_admit(ledger)
    assert next_one.id == ids[2]


@cases.add()
async def admitting_twice_takes_one_slot(ledger: Ledger) -> None:
    """A repeat after a lost answer."""
    await ledger.enqueue(*[limited(n=2) for _ in range(3)])
    first = await ledger.claim("a", 1)
    assert await admitted(ledger, "a", first) == first
    assert await admitted(ledger, "a", first) == first
    assert len(await claim_and_admit(ledger, "b")) == 1


@cases.add()
async def a_claim_that_is_gone_is_not_admitted(ledger: Ledger) -> None:
    await ledger.enqueue(limited())
    claims = await ledger.claim()
    await ledger.finish("a", released(claims[0]))
    answer = await ledger.store.admit("a", claims)
    assert answer.admitted == frozenset()
    # It took no slot either: the next claim of the task finds room.
    await ledger.let_pass(0.01)
    assert len(await claim_and_admit(ledger, "b")) == 1


@cases.add()
async def all_gates_of_a_task_must_have_room(ledger: Ledger) -> None:
    def both() -> NewTask:
        return task(gates=(Gate(kind="limit", key="a", n=1), Gate(kind="limit", key="b", n=5)))

    first, second, other = await ledger.enqueue(both(), both(), limited("b", 5))
    running = await claim_and_admit(ledger)
    assert [claim.id for claim in running] == [first, other]
    # The one that waits for `a` holds nothing of `b`: with two of five taken, three more fit.
    more = await ledger.enqueue(*[limited("b", 5) for _ in range(4)])
    assert [claim.id for claim in await claim_and_admit(ledger)] == more[:3]
    await ledger.finish("a", completed(running[0]))
    assert second in [claim.id for claim in await claim_and_admit(ledger)]


@cases.add()
async def keys_do_not_disturb_each_other(ledger: Ledger) -> None:
    await ledger.enqueue(*[limited(f"user-{i % 3}") for i in range(9)])
    assert len(await claim_and_admit(ledger)) == 3


@cases.add()
async def kinds_do_not_share_a_key(ledger: Ledger) -> None:
    """A limit, a rate and an order key may have the same name."""
    await ledger.enqueue(limited("same"), ordered("same"), rated("same"))
    assert len(await claim_and_admit(ledger)) == 3


@cases.add()
async def one_at_a_time_in_order(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[ordered() for _ in range(4)])
    done: list[int] = []
    for _ in ids:
        (claim,) = await claim_and_admit(ledger)
        assert await claim_and_admit(ledger, "b") == []
        done.append(claim.id)
        await ledger.finish("a", completed(claim))
    assert done == ids


@cases.add()
async def a_retry_does_not_let_others_overtake(ledger: Ledger) -> None:
    """Strict order: while the first waits for its retry, the second does not run."""
    first, second = await ledger.enqueue(ordered(), ordered())
    (claim,) = await claim_and_admit(ledger)
    assert claim.id == first
    await ledger.finish("a", failed(claim, delay=0.2))
    for claimed in await claim_and_admit(ledger):
        assert claimed.id == first
        await ledger.finish("a", released(claimed))
    await ledger.let_pass(0.3)
    await ledger.store.promote()
    (again,) = await claim_and_admit(ledger)
    assert (again.id, again.attempt) == (first, 1)
    await ledger.finish("a", completed(again))
    (then,) = await claim_and_admit(ledger)
    assert then.id == second


@cases.add()
async def order_is_that_of_the_enqueue_not_of_the_priority(ledger: Ledger) -> None:
    first, second = await ledger.enqueue(ordered(priority=0), ordered(priority=9))
    done: list[int] = []
    for _ in range(2):
        # What comes first in the index may have to wait for the other.
        running: list[ClaimedTask] = []
        for _ in range(3):
            if running := await claim_and_admit(ledger):
                break
        (claim,) = running
        done.append(claim.id)
        await ledger.finish("a", completed(claim))
    assert done == [first, second]


@cases.add()
async def the_end_of_the_first_in_any_way_lets_the_next_run(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[ordered() for _ in range(4)])
    (claim,) = await claim_and_admit(ledger)
    await ledger.finish("a", failed_for_good(claim))
    (claim,) = await claim_and_admit(ledger)
    assert claim.id == ids[1]
    await ledger.store.cancel([ids[2]])
    await ledger.finish("a", completed(claim))
    (claim,) = await claim_and_admit(ledger)
    assert claim.id == ids[3]


@cases.add()
async def a_rate_gives_its_burst_and_then_its_pace(ledger: Ledger) -> None:
    """Two per half second: two at once, and after half a second two more, over all workers."""
    await ledger.enqueue(*[rated(n=2, per=0.5) for _ in range(6)])
    started = await claim_and_admit(ledger, "a") + await claim_and_admit(ledger, "b")
    assert len(started) == 2
    await ledger.finish("a", *[completed(claim) for claim in started])
    await ledger.let_pass(0.55)
    await ledger.store.promote()
    await ledger.store.unpark()
    more = await claim_and_admit(ledger)
    assert 1 <= len(more) <= 3
    assert {claim.id for claim in more}.isdisjoint(claim.id for claim in started)


@cases.add()
async def a_rate_is_not_given_back_by_an_end(ledger: Ledger) -> None:
    """Finishing quickly does not start more than the rate allows."""
    await ledger.enqueue(*[rated(n=1, per=300.0, burst=2) for _ in range(4)])
    started = await claim_and_admit(ledger)
    assert len(started) == 2
    await ledger.finish("a", *[completed(claim) for claim in started])
    await ledger.store.unpark()
    assert await claim_and_admit(ledger) == []


@cases.add()
async def every_task_behind_a_rate_starts_in_the_end(ledger: Ledger) -> None:
    ids = await ledger.enqueue(*[rated(n=10, per=0.5, burst=1) for _ in range(5)])
    done: set[int] = set()
    for _ in range(400):
        claims = await claim_and_admit(ledger)
        if claims:
            await ledger.finish("a", *[completed(claim) for claim in claims])
            done.update(claim.id for claim in claims)
        if done == set(ids):
            return
        await ledger.let_pass(0.02)
        await ledger.store.promote()
        await ledger.store.unpark()
    raise AssertionError(f"only {len(done)} of {len(ids)} tasks behind a rate were started")


@cases.add()
async def the_same_admission_twice_is_paid_once(ledger: Ledger) -> None:
    """The answer to the first was lost. Were the token asked for again, the task would be parked and keep its slots."""
    gates = (
        Gate(kind="limit", key="k"),
        Gate(kind="order", key="k"),
        Gate(kind="rate", key="k", n=1, per=600.0),
    )
    await ledger.enqueue_one(gates=gates)
    claims = await ledger.claim()
    first = await ledger.store.admit("a", claims)
    assert first.admitted == {ref(claims[0])}
    assert await ledger.store.admit("a", claims) == first
    await ledger.finish("a", completed(claims[0]))
