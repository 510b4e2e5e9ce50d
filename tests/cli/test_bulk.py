"""`headrace tasks delete|retry|cancel` by filter, `requeue-orphaned`, and `headrace events`."""

import json

import pytest

from headrace.cli.failures import FAILED, OK, USAGE
from headrace.core.states import TaskState
from headrace.core.subscription import NewSubscription
from headrace.core.task import Ref, TaskFilter
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task
from tests.cli.shell import Shell


async def some(ledger: Ledger) -> dict[str, int]:
    """One of each kind."""
    done, failed, held = await ledger.enqueue(task("a.done"), task("a.failed"), task("a.held"))
    claims = {claim.id: claim for claim in await ledger.claim("dead")}
    await ledger.store.start("dead", [Ref(held, claims[held].claim_no)])
    await ledger.finish("dead", completed(claims[done]), failed_for_good(claims[failed]))
    waits = await ledger.enqueue_one("a.waits", queue="mail")
    return {"done": done, "failed": failed, "held": held, "waits": waits}


async def states(ledger: Ledger) -> dict[str, TaskState]:
    return {record.name: record.state for record in await ledger.store.list(TaskFilter())}


def test_delete_by_id(either_shell: Shell):
    ids = either_shell.ledger(some)
    code, out, _ = either_shell("tasks", "delete", str(ids["done"]), str(ids["waits"]))
    assert code == OK
    assert out.count("deleted") == 2
    code, out, _ = either_shell("tasks", "delete", str(ids["held"]), "987654321", "--json")
    assert code == FAILED
    assert json.loads(out) == {str(ids["held"]): "held", "987654321": "unknown"}
    assert set(either_shell.ledger(states)) == {"a.failed", "a.held"}


def test_acts_by_filter(either_shell: Shell):
    either_shell.ledger(some)
    code, out, _ = either_shell("tasks", "retry", "--task", "a.failed", "--task", "a.done", "--json")
    assert code == OK
    assert json.loads(out) == {"matched": 1, "retried": 1, "refused": 0}
    code, out, _ = either_shell("tasks", "cancel", "--queue", "mail")
    assert (code, out.strip()) == (OK, "1 cancelled")
    code, _, errors = either_shell("tasks", "delete", "--state", "cancelled")
    assert "--yes" in errors
    assert code != OK
    code, out, _ = either_shell("tasks", "delete", "--state", "cancelled", "--state", "completed", "--yes")
    assert (code, out.strip()) == (OK, "2 deleted")
    code, out, _ = either_shell("tasks", "delete", "--task", "a.held", "--yes")
    assert (code, out.strip()) == (FAILED, "1 held")
    assert either_shell.ledger(states) == {"a.failed": TaskState.PENDING, "a.held": TaskState.RUNNING}


@pytest.mark.parametrize(
    "words",
    [
        ("delete",),
        ("retry",),
        ("cancel", "1", "--queue", "mail"),
        ("delete", "1", "--limit", "3"),
        ("retry", "--state", "running"),
        ("cancel", "--state", "completed"),
    ],
)
def test_what_is_not_understood_changes_nothing(shell: Shell, words: tuple[str, ...]):
    shell.ledger(some)
    before = shell.ledger(states)
    code, _, errors = shell("tasks", *words)
    assert code == USAGE
    assert errors
    assert shell.ledger(states) == before


def test_orphans(either_shell: Shell):
    """The worker of what is held was never registered: nobody can bring it home."""
    ids = either_shell.ledger(some)
    code, out, _ = either_shell("tasks", "requeue-orphaned", "--json")
    assert code == OK
    assert json.loads(out) == {"workers": 1, "requeued": 1, "failed": 0, "cancelled": 0}
    code, out, _ = either_shell("tasks", "requeue-orphaned")
    assert code == OK
    assert "0 tasks requeued" in out
    assert either_shell.ledger(states)["a.held"] is TaskState.PENDING, ids


def test_subscriptions(either_shell: Shell):
    async def declare(ledger: Ledger) -> None:
        made = NewSubscription(name="shop.notify@paid", event="paid", task=task("shop.notify", queue="mail"))
        await ledger.store.declare_subscriptions("shop:app", [made])

    assert "no subscriptions" in either_shell("events", "subscriptions")[1]
    either_shell.ledger(declare)
    assert "shop.notify" in either_shell("events", "subscriptions")[1]
    (found,) = json.loads(either_shell("events", "subscriptions", "--json")[1])
    assert (found["name"], found["event"], found["queue"], found["declared_by"]) == (
        "shop.notify@paid", "paid", "mail", "shop:app",
    )  # fmt: skip
    assert either_shell("events", "unsubscribe", "shop.notify@paid")[0] == OK
    assert either_shell("events", "unsubscribe", "shop.notify@paid")[0] == FAILED
    assert json.loads(either_shell("events", "subscriptions", "--json")[1]) == []
