"""Claim, start, progress: how tasks come into a worker's hands."""

from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from headrace.core.task import ClaimedTask, Ref, Want
from headrace.store.base import RETRIES, Started
from headrace.store.sqlite.connection import Part, Transaction
from headrace.store.sqlite.riding import Offer, stand
from headrace.store.watching import task_topic

_PROMOTED_AT_ONCE = 500
_LONGEST_PAYLOAD = 16_384  # characters that are read together with other tasks


def refs_json(refs: Iterable[Ref]) -> str:
    return orjson.dumps([[ref.id, ref.claim_no] for ref in refs]).decode()


def promote(transaction: Transaction, limit: int = _PROMOTED_AT_ONCE) -> int:
    """Make due tasks ready; how many."""
    [(ids, new, retries)] = transaction.rows("due_tasks", {"now": transaction.now, "limit": limit})
    if ids == "[]":
        return 0
    transaction.wakes.update(orjson.loads(new))
    transaction.wakes.update(RETRIES + queue for queue in set(orjson.loads(retries)))
    return transaction.run("promote_due", {"now": transaction.now, "ids": ids})


def claim(transaction: Transaction, worker: str, wants: Sequence[Want]) -> list[ClaimedTask]:
    claims: list[ClaimedTask] = []
    for want in _promising(transaction, [want for want in wants if want.n > 0]):
        parameters = {
            "now": transaction.now,
            "queue": want.queue,
            "pool": want.pool,
            "lane": int(want.lane),
            "n": want.n,
            "longest": _LONGEST_PAYLOAD,
        }
        [(text,)] = transaction.rows("claim", parameters)
        found = [_whole(transaction, row) for row in orjson.loads(text)]
        if found:
            ids = orjson.dumps([task.id for task in found]).decode()
            transaction.run("take_claims", {"worker": worker, "now": transaction.now, "ids": ids})
            claims = _in_order(claims, found) if claims else found
    if jobs := {task.job for task in claims if task.job is not None}:
        started = transaction.rows("start_jobs", {"now": transaction.now, "jobs": orjson.dumps(sorted(jobs)).decode()})
        transaction.changed_jobs.update(job for (job,) in started)
    return claims


def _promising(transaction: Transaction, wants: Sequence[Want]) -> list[Want]:
    """Those that will find something, once what is due is ready."""
    parameters = (orjson.dumps([(want.queue, want.pool, int(want.lane)) for want in wants]).decode(),)
    [(due, places)] = transaction.rows("outlook", parameters)
    if due is not None and due <= transaction.now and promote(transaction):
        [(_, places)] = transaction.rows("outlook", parameters)
    return [wants[place] for place in orjson.loads(places)]


def _whole(transaction: Transaction, row: list[Any]) -> ClaimedTask:
    claim = ClaimedTask._make(row)
    if claim.arguments is not None:  # pyright: ignore[reportUnnecessaryComparison] -- too long for the text of a claim
        return claim
    [(arguments, options)] = transaction.rows("claim_payload", (claim.id,))
    return claim._replace(arguments=arguments, options=options)


def give_back(transaction: Transaction, worker: str, claims: Sequence[ClaimedTask]) -> None:
    """Undo claims of which nobody heard: their place in the queue is the old one, the fence is used up."""
    refs = refs_json(Ref(claim.id, claim.claim_no) for claim in claims)
    queues = transaction.rows("give_back", {"refs": refs, "worker": worker, "now": transaction.now})
    transaction.wakes.update(queue for (queue,) in queues)


def _in_order(some: Iterable[ClaimedTask], others: Iterable[ClaimedTask]) -> list[ClaimedTask]:
    """Each query gives the order of the index; several of them are merged."""
    return sorted([*some, *others], key=lambda task: (task.lane, -task.priority, task.order_at, task.id))


def start(transaction: Transaction, worker: str, refs: Sequence[Ref], executor: str | None) -> dict[Ref, Started]:
    answers = dict.fromkeys(refs, Started.REFUSED)
    for id, claim_no, state, _, _, run_no, claimed_at, _ in transaction.rows(
        "fenced", {"refs": refs_json(refs), "worker": worker}
    ):
        ref = Ref(id, claim_no)
        if state == "cancelling":
            answers[ref] = Started.CANCELLING
            continue
        answers[ref] = Started.STARTED
        fence = {"task": id, "claim_no": claim_no, "worker": worker, "now": transaction.now}
        transaction.run("start", fence)
        transaction.run("open_attempt", {**fence, "run_no": run_no, "executor": executor, "claimed_at": claimed_at})
    return answers


class Claiming(Part):
    async def claim(self, worker: str, wants: Sequence[Want]) -> list[ClaimedTask]:
        return await self.database.write(
            lambda transaction: claim(transaction, worker, wants),
            verb="claim",
            unheard=lambda claims: lambda transaction: give_back(transaction, worker, claims),
        )

    def offer(self, worker: str, wants: Sequence[Want]) -> Offer:
        return stand(
            self.database,
            wants,
            lambda transaction: claim(transaction, worker, wants),
            lambda claims: lambda transaction: give_back(transaction, worker, claims),
        )

    async def start(self, worker: str, refs: Sequence[Ref], *, executor: str | None = None) -> dict[Ref, Started]:
        return await self.database.write(lambda transaction: start(transaction, worker, refs, executor), verb="start")

    async def record_handle(self, worker: str, ref: Ref, handle: str) -> bool:
        parameters = {"task": ref.id, "claim_no": ref.claim_no, "worker": worker, "handle": handle}
        return await self.database.write(lambda transaction: transaction.run("record_handle", parameters)) == 1

    async def progress(self, worker: str, values: Sequence[tuple[Ref, str]]) -> None:
        rows = [{"task": ref.id, "claim_no": ref.claim_no, "worker": worker, "value": value} for ref, value in values]

        def write(transaction: Transaction) -> None:
            transaction.run_many("record_progress", rows)
            transaction.grown.update(task_topic(ref.id) for ref, _ in values)

        await self.database.write(write)
