"""Tasks that events enqueue, in the very transaction that sends the event."""

import asyncio
import json
from typing import Any

from headrace.core.errors import WrongState
from headrace.core.limits import Gate
from headrace.core.states import TaskState
from headrace.core.subscription import NewSubscription
from headrace.core.task import NewJob, TaskFilter, TaskRecord
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, failed_for_good, refused, task

cases = Cases("subscriptions")

_EVENTS = "events"  # the queue of what events enqueue


def to(event: str, *, name: str = "listener", takes: tuple[str, ...] = ("event", "key", "payload"), **options: Any):
    """A subscription of a task of that name."""
    arguments = json.dumps(dict.fromkeys(takes))
    made = task(name, queue=_EVENTS, arguments=arguments, options=json.dumps({"event": event}), **options)
    return NewSubscription(name=f"{name}@{event}", event=event, task=made)


async def heard(ledger: Ledger, *names: str) -> list[tuple[str, Any]]:
    """The tasks that events have enqueued so far, with their arguments, in order."""
    found = await ledger.store.list(TaskFilter(queues=(_EVENTS,), names=names))
    return [(record.name, json.loads(record.arguments)) for record in sorted(found, key=_id)]


def _id(record: TaskRecord) -> int:
    return record.id


@cases.add()
async def a_send_enqueues_each_subscription_once(ledger: Ledger) -> None:
    await ledger.store.declare_subscriptions(
        "app", [to("paid", name="a"), to("paid", name="b", takes=("payload",)), to("sent", name="c")]
    )
    await ledger.store.send("paid", 'k"1', '{"total": 1.50, "name": "Zoë"}')
    await ledger.store.send("unheard", "", "null")
    assert await heard(ledger) == [
        ("a", {"event": "paid", "key": 'k"1', "payload": {"total": 1.5, "name": "Zoë"}}),
        ("b", {"payload": {"total": 1.5, "name": "Zoë"}}),
    ]
    claims = await ledger.claim(queue=_EVENTS)
    assert [claim.name for claim in claims] == ["a", "b"]
    await ledger.finish("a", *map(completed, claims))
    await ledger.store.send("sent", "", "[1]")
    assert await heard(ledger, "c") == [("c", {"event": "sent", "key": "", "payload": [1]})]


@cases.add()
async def many_senders_at_once(ledger: Ledger) -> None:
    other = await ledger.another_store()
    await ledger.store.declare_subscriptions("app", [to("paid")])
    await asyncio.gather(
        *((ledger.store, other)[number % 2].send("paid", str(number), str(number)) for number in range(30))
    )
    found = await heard(ledger)
    assert sorted(arguments["payload"] for _, arguments in found) == list(range(30))


@cases.add()
async def the_task_is_like_any_other(ledger: Ledger) -> None:
    """Its options count: gates, delay, priority, policy."""
    gates = (Gate(kind="limit", key="limit:k", n=1),)
    await ledger.store.declare_subscriptions("app", [to("paid", gates=gates, max_attempts=7, dead_letter=True)])
    await ledger.store.send("paid", "", "1")
    await ledger.store.send("paid", "", "2")
    claims = await ledger.claim(queue=_EVENTS)
    assert [claim.max_attempts for claim in claims] == [7, 7]
    assert len((await ledger.store.admit("a", claims)).admitted) == 1


@cases.add()
async def a_declaration_says_all_that_an_app_subscribes_to(ledger: Ledger) -> None:
    store = ledger.store
    await store.declare_subscriptions("one", [to("paid", name="a"), to("paid", name="b")])
    await store.declare_subscriptions("two", [to("paid", name="c")])
    before = {record.name: record for record in await store.subscriptions()}
    assert set(before) == {"a@paid", "b@paid", "c@paid"}
    assert {record.declared_by for record in before.values()} == {"one", "two"}
    await ledger.let_pass(0.01)
    await store.declare_subscriptions("one", [to("paid", name="a")])
    after = await store.subscriptions()
    assert after == [before["a@paid"], before["c@paid"]]
    assert (await refused(store.declare_subscriptions("two", [to("paid", name="a")]), WrongState)) is not None
    assert await store.subscriptions() == after
    await store.declare_subscriptions("one", [to("paid", name="a", priority=3)])
    assert (await store.subscriptions())[0].task.priority == 3
    assert await store.remove_subscription("a@paid")
    assert not await store.remove_subscription("a@paid")
    await store.send("paid", "", "1")
    assert [name for name, _ in await heard(ledger)] == ["c"]


@cases.add()
async def of_two_that_declare_at_once_both_are_right(ledger: Ledger) -> None:
    other = await ledger.another_store()
    declared = [to("paid", name=f"t{number}") for number in range(5)]
    await asyncio.gather(*(store.declare_subscriptions("app", declared) for store in (ledger.store, other) * 3))
    assert len(await ledger.store.subscriptions()) == 5


@cases.add()
async def ends_of_jobs(ledger: Ledger) -> None:
    """Told once for each run, in the transaction that ends the job."""
    store = ledger.store
    await store.declare_subscriptions("app", [to(f"job.{state}") for state in ("completed", "failed", "cancelled")])
    good, _ = await store.create_job(NewJob(name="good", tasks=(task(),)))
    await ledger.finish("a", completed(await ledger.claim_one()))
    bad, (first,) = await store.create_job(NewJob(name="bad", tasks=(task(),)))
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    stopped, _ = await store.create_job(NewJob(name="stopped", tasks=(task(),)))
    await store.cancel_job(stopped)
    assert await store.retry([first.id]) == [first.id]
    await ledger.finish("a", completed(await ledger.claim_one()))

    def told(job: int, name: str, state: str) -> tuple[str, Any]:
        payload = {"job": job, "name": name, "state": state}
        return "listener", {"event": f"job.{state}", "key": str(job), "payload": payload}

    assert await heard(ledger) == [
        told(good, "good", "completed"),
        told(bad, "bad", "failed"),
        told(stopped, "stopped", "cancelled"),
        told(bad, "bad", "completed"),
    ]


@cases.add()
async def final_failures(ledger: Ledger) -> None:
    """Not those that are tried again; also those that no worker settled; a dead letter is both."""
    store = ledger.store
    await store.declare_subscriptions("app", [to("task.failed", name="f"), to("task.dead_letter", name="d")])
    plain = await ledger.enqueue_one("plain")
    await ledger.finish("a", failed(await ledger.claim_one()))
    await ledger.finish("a", failed_for_good(await ledger.claim_due()))
    dead = await ledger.enqueue_one("dead", dead_letter=True)
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    late = await ledger.enqueue_one("late", max_age=0.05)
    await ledger.let_pass(0.1)
    assert await store.expire() == 1
    found = await heard(ledger)
    assert [(name, arguments["payload"]["task"]) for name, arguments in found] == [
        ("f", plain), ("f", dead), ("d", dead), ("f", late),
    ]  # fmt: skip
    assert found[0][1] == {
        "event": "task.failed",
        "key": str(plain),
        "payload": {
            "task": plain, "name": "plain", "queue": "default",
            "error": {"class": "builtins.ValueError", "message": "no"},
        },
    }  # fmt: skip


@cases.add()
async def the_failure_of_what_hears_of_failures_is_not_told(ledger: Ledger) -> None:
    await ledger.store.declare_subscriptions("app", [to("task.failed", name="f"), to("paid", name="p")])
    await ledger.enqueue_one()
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    await ledger.finish("a", failed_for_good(await ledger.claim_one(queue=_EVENTS)))
    assert len(await heard(ledger, "f")) == 1
    await ledger.store.send("paid", "", "1")
    await ledger.finish("a", failed_for_good(await ledger.claim_one(queue=_EVENTS)))
    found = await heard(ledger, "f")
    assert [arguments["payload"]["name"] for _, arguments in found] == ["conformance.work", "p"]
    (failure,) = await ledger.store.list(TaskFilter(names=("p",)))
    assert failure.state is TaskState.FAILED
