"""Unique keys of tasks that ended: free for others at once, and taken again by a manual retry where nobody has them."""

from headrace.core.task import Key
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.keys import unique
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, ref, stopped, task

cases = Cases("keys_after_the_end")


async def ended(ledger: Ledger, *keys: str, ttl: float | None = None) -> int:
    """A task that had these keys and failed."""
    new = task(keys=tuple(Key(scope="unique", key=key, ttl=ttl) for key in keys))
    (answer,) = await ledger.store.enqueue([new])
    assert answer.created
    await ledger.finish("a", failed_for_good(await ledger.claim_one()))
    return answer.id


@cases.add()
async def a_retry_holds_the_key_again(ledger: Ledger) -> None:
    first = await ended(ledger, "k")
    assert await ledger.store.retry([first]) == [first]
    assert await ledger.store.enqueue([unique()]) == [(first, False)]
    await ledger.finish("a", completed(await ledger.claim_due()))
    (other,) = await ledger.store.enqueue([unique()])
    assert other.created


@cases.add()
async def a_retry_leaves_a_held_key_alone(ledger: Ledger) -> None:
    """The task is skipped, untouched, and the others of the call are not."""
    first = await ended(ledger, "k")
    second = await ended(ledger, "other")
    before = await ledger.get(first)
    (holder,) = await ledger.store.enqueue([unique()])
    assert await ledger.store.retry([first, second]) == [second]
    assert await ledger.get(first) == before
    assert await ledger.store.enqueue([unique()]) == [(holder.id, False)]


@cases.add()
async def a_retry_takes_a_key_that_others_had_in_between(ledger: Ledger) -> None:
    """However often it changed hands and however its holders ended."""
    first = await ended(ledger, "k")
    for end in (completed, failed_for_good, stopped):
        (other,) = await ledger.store.enqueue([unique()])
        assert other.created
        assert await ledger.store.retry([first]) == []
        await ledger.finish("b", end(await ledger.claim_one("b")))
    assert await ledger.store.retry([first]) == [first]
    assert await ledger.store.enqueue([unique()]) == [(first, False)]
    # The one that had it in between wants it too, and waits for its turn.
    assert await ledger.store.retry([other.id]) == []
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert await ledger.store.retry([other.id]) == [other.id]
    assert await ledger.store.enqueue([unique()]) == [(other.id, False)]


@cases.add()
async def of_two_retried_at_once_one_gets_the_key(ledger: Ledger) -> None:
    first, second = await ended(ledger, "k"), await ended(ledger, "k")
    changed = await ledger.store.retry([first, second])
    assert len(changed) == 1
    assert await ledger.store.enqueue([unique()]) == [(changed[0], False)]


@cases.add()
async def all_of_its_keys_or_none(ledger: Ledger) -> None:
    first = await ended(ledger, "a", "b", "c")
    (holder,) = await ledger.store.enqueue([unique("b")])
    assert await ledger.store.retry([first]) == []
    for key in ("a", "c"):
        (free,) = await ledger.store.enqueue([unique(key, queue="other")])
        assert free.created, f"{key} stayed with a task that was not retried"
        await ledger.store.cancel([free.id])
    await ledger.store.cancel([holder.id])
    assert await ledger.store.retry([first]) == [first]
    for key in ("a", "b", "c"):
        assert await ledger.store.enqueue([unique(key)]) == [(first, False)]


@cases.add()
async def a_retry_within_its_own_window(ledger: Ledger) -> None:
    first = await ended(ledger, "k", ttl=0.3)
    assert await ledger.store.enqueue([unique(ttl=0.3)]) == [(first, False)]
    assert await ledger.store.retry([first]) == [first]
    await ledger.let_pass(0.4)
    assert await ledger.store.enqueue([unique(ttl=0.3)]) == [(first, False)], "the window ended with the new run"
    await ledger.finish("a", completed(await ledger.claim_due()))
    assert await ledger.store.enqueue([unique(ttl=0.3)]) == [(first, False)]


@cases.add()
async def a_window_of_another_task_is_in_the_way_until_it_closes(ledger: Ledger) -> None:
    first = await ended(ledger, "k")
    (second,) = await ledger.store.enqueue([unique(ttl=0.3)])
    await ledger.finish("a", completed(await ledger.claim_one()))
    assert await ledger.store.retry([first]) == []
    await ledger.let_pass(0.4)
    assert await ledger.store.retry([first]) == [first]
    assert await ledger.store.retry([second.id]) == []


@cases.add()
async def who_lost_its_key_while_it_ran_wants_it_back(ledger: Ledger) -> None:
    """A newer call took it over; the older task's retry respects that."""
    (first,) = await ledger.store.enqueue([unique()])
    claim = await ledger.claim_one()
    await ledger.store.start("a", [ref(claim)])
    (second,) = await ledger.store.enqueue([unique(on_conflict="replace")])
    assert second.created
    await ledger.finish("a", failed_for_good(claim))
    assert await ledger.store.retry([first.id]) == []
    await ledger.finish("b", completed(await ledger.claim_one("b")))
    assert await ledger.store.retry([first.id]) == [first.id]
    assert await ledger.store.enqueue([unique()]) == [(first.id, False)]


@cases.add()
async def pruning_between_end_and_retry(ledger: Ledger) -> None:
    """Keys past their time go; the name stays as long as the task can be retried."""
    first = await ended(ledger, "k")
    await ledger.let_pass(0.1)
    assert (await ledger.store.prune(keep=3600)).keys == 0
    (holder,) = await ledger.store.enqueue([unique()])
    assert await ledger.store.retry([first]) == []
    await ledger.store.cancel([holder.id])
    assert await ledger.store.retry([first]) == [first]
    await ledger.finish("a", completed(await ledger.claim_due()))
    await ledger.let_pass(0.1)
    assert (await ledger.store.prune(keep=0.01)).tasks == 2
    assert await ledger.store.retry([first]) == []
