"""`headrace explain` says why a task has not started; `headrace health` answers probes."""

import json
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from headrace.cli.failures import FAILED, OK
from headrace.core.limits import Gate
from headrace.testing.store_conformance.ledger import (
    Ledger,
    completed,
    failed,
    failed_for_good,
    ref,
    released,
    snoozed,
    task,
)
from tests.cli.shell import Shell

TWO_DAYS = 2 * 86_400.0  # whatever the machine does meanwhile, it is still two days

type Making = Callable[[Ledger], Awaitable[int]]


async def served(ledger: Ledger, **fields: object) -> None:
    """A worker that takes the queue."""
    await ledger.register("a", lease=600.0, **fields)


async def no_worker(ledger: Ledger) -> int:
    return await ledger.enqueue_one()


async def another_queue(ledger: Ledger) -> int:
    await served(ledger, queues=("mail",))
    return await ledger.enqueue_one()


async def ready(ledger: Ledger) -> int:
    await served(ledger, queues=())
    return await ledger.enqueue_one()


async def ready_for_a_thread(ledger: Ledger) -> int:
    await served(ledger)
    return await ledger.enqueue_one(pool="thread")


async def paused(ledger: Ledger) -> int:
    await served(ledger)
    await ledger.store.pause("default")
    return await ledger.enqueue_one()


async def not_due(ledger: Ledger) -> int:
    await served(ledger)
    return await ledger.enqueue_one(delay=TWO_DAYS)


async def retry_wait(ledger: Ledger) -> int:
    return await not_due_after(ledger, lambda claim: failed(claim, delay=TWO_DAYS))


async def not_due_after(ledger: Ledger, settle: Callable[..., object], **options: object) -> int:
    await served(ledger)
    id = await ledger.enqueue_one(**options)
    await ledger.finish("a", settle(await ledger.claim_one()))  # type: ignore[arg-type]
    return id


async def snooze(ledger: Ledger) -> int:
    return await not_due_after(ledger, lambda claim: snoozed(claim, TWO_DAYS))


async def given_back(ledger: Ledger) -> int:
    return await not_due_after(ledger, lambda claim: released(claim, TWO_DAYS))


async def at_a_limit(ledger: Ledger) -> int:
    return await parked(ledger, Gate(kind="limit", key="printer", n=1))


async def in_an_order(ledger: Ledger) -> int:
    return await parked(ledger, Gate(kind="order", key="account"))


async def parked(ledger: Ledger, gate: Gate) -> int:
    await served(ledger)
    await ledger.enqueue(task(gates=(gate,)), task(gates=(gate,)))
    answer = await ledger.store.admit("a", await ledger.claim())
    return next(iter(answer.parked)).id


async def claimed(ledger: Ledger) -> int:
    await served(ledger)
    await ledger.enqueue_one()
    return (await ledger.claim_one()).id


async def running(ledger: Ledger) -> int:
    await served(ledger)
    await ledger.enqueue_one()
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    return claim.id


async def cancelling(ledger: Ledger) -> int:
    id = await running(ledger)
    await ledger.store.cancel([id])
    return id


async def with_a_dead_worker(ledger: Ledger) -> int:
    await ledger.register("a", lease=0.001)
    await ledger.enqueue_one()
    return (await ledger.claim_one()).id


async def expiring(ledger: Ledger) -> int:
    await served(ledger)
    return await ledger.enqueue_one(max_age=TWO_DAYS)


async def done(ledger: Ledger) -> int:
    return await not_due_after(ledger, completed)


async def failed_once(ledger: Ledger) -> int:
    return await not_due_after(ledger, failed_for_good)


@pytest.mark.parametrize(
    ("make", "said", "mend"),
    [
        (no_worker, "no worker is active", "headrace worker"),
        (another_queue, "no active worker takes the queue default", "--queues default"),
        (ready, "it is ready, one of 1 in the primary lane of default", "--concurrency"),
        (ready_for_a_thread, "it is ready", "--threads"),
        (paused, "its queue default is paused", "headrace queues resume default"),
        (not_due, "it is not due before in 2d", None),
        (retry_wait, "claim 1 failed (builtins.ValueError: no); attempt 2 of 4 comes in 2d", None),
        (snooze, "it asked to run again in 2d", None),
        (given_back, "claim 1 went back uncharged", None),
        (at_a_limit, "it waits for room at the limit 'printer', held by task 1", None),
        (in_an_order, "tasks with the order key 'account' run one after the other", None),
        (claimed, "worker a took it", None),
        (running, "it runs on a: attempt 1", None),
        (cancelling, "a was told to stop it", None),
        (with_a_dead_worker, "worker a holds it and has been silent", "start a worker"),
        (expiring, "it fails as expired when it has not started in 2d", None),
        (done, "it has ended: completed", None),
        (failed_once, "it has ended: failed/error", "headrace tasks retry"),
    ],
)
def test_why_a_task_is_where_it_is(shell: Shell, make: Making, said: str, mend: str | None):
    id = shell.ledger(make)
    code, out, err = shell("explain", str(id))
    assert (code, err) == (OK, "")
    assert said in out
    explanation = json.loads(shell("explain", str(id), "--json")[1])
    assert explanation["id"] == str(id)
    mends = [why["mend"] or "" for why in explanation["reasons"]]
    assert any(mend in text for text in mends) if mend else explanation["reasons"]


def test_several_reasons_are_all_told(either_shell: Shell):
    async def make(ledger: Ledger) -> int:
        await ledger.store.pause("default")
        return await ledger.enqueue_one(delay=timedelta(hours=2).total_seconds())

    _, out, _ = either_shell("explain", str(either_shell.ledger(make)))
    assert [line.strip().split()[0:2] for line in out.splitlines() if "->" not in line][1:] == [
        ["its", "queue"], ["it", "is"], ["no", "worker"],
    ]  # fmt: skip


def test_a_name_that_the_app_does_not_have(shell: Shell):
    id = shell.ledger(lambda ledger: ledger.enqueue_one("shop.gone"))
    assert "has no task" not in shell("explain", str(id))[1]
    code, out, _ = shell("explain", str(id), "--database", shell.target)
    assert code == OK
    assert "the App has no task 'shop.gone'" in out
    assert "aliases" in out


def test_health_for_probes(either_shell: Shell):
    code, out, _ = either_shell("health")
    assert code == FAILED
    assert "FAIL  workers: 0 active" in out
    assert either_shell("health", "--check", "database")[0] == OK
    either_shell.ledger(served)
    code, out, _ = either_shell("health", "--json")
    answer = json.loads(out)
    assert (code, answer["healthy"]) == (OK, True)
    assert set(answer["checks"]) == {"database", "workers", "stale_tasks", "breakers"}

    async def left_behind(ledger: Ledger) -> None:
        await ledger.register("gone", lease=0.001)
        await ledger.enqueue_one()
        await ledger.claim_one("gone")

    either_shell.ledger(left_behind)
    code, out, _ = either_shell("health")
    assert code == FAILED
    assert "FAIL  stale_tasks: workers that are gone still hold tasks: gone" in out


def test_health_of_a_store_that_does_not_answer(shell: Shell):
    code, out, _ = shell("health", "--database", "postgresql://127.0.0.1:1/none", "--timeout", "30", "--json")
    answer = json.loads(out)
    assert (code, answer["checks"]["database"]["healthy"]) == (FAILED, False)
