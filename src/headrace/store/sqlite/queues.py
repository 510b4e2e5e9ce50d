"""Limits and rates that are set for a queue at run time."""

from collections.abc import Callable

from headrace.core.limits import Rate, gates_to_json
from headrace.core.queue_settings import counted, limit_key, patch
from headrace.store.sqlite.admission import READIED_AT_ONCE, ready_next, settings_of
from headrace.store.sqlite.connection import Part, Transaction


def _count_running(transaction: Transaction, queue: str, limit: int) -> None:
    """What runs already takes its place, so that a limit that is new counts it, too."""
    key, plain = f"limit:{limit_key(queue)}", not settings_of(transaction, [queue])
    rows = transaction.rows("uncounted", {"queue": queue, "key": key, "plain": plain})
    if not rows:
        return
    taken = {slot for (slot,) in transaction.rows("slots_taken", (key,))}
    first, n = max(taken, default=-1) + 1, max(limit, len(taken) + len(rows))
    transaction.run_many(
        "take_slot",
        [
            {"key": key, "slot": first + place, "task": task, "claim_no": claim_no}
            for place, (task, claim_no, _) in enumerate(rows)
        ],
    )
    gates = [{"task": task, "gates": gates_to_json(counted(queue, stored, n))} for task, _, stored in rows]
    transaction.run_many("set_gates", gates)


class QueueSetting(Part):
    async def limit_queue(self, queue: str, limit: int | None) -> None:
        def ready(transaction: Transaction) -> int:
            return ready_next(transaction, f"limit:{limit_key(queue)}")

        def count(transaction: Transaction) -> None:
            if limit is not None:
                _count_running(transaction, queue, limit)

        await self._set_queue(queue, patch(limit=limit), ready, before=count)

    async def rate_queue(self, queue: str, rate: Rate | None) -> None:
        def ready(transaction: Transaction) -> int:
            parameters = {"queue": queue, "now": transaction.now, "limit": READIED_AT_ONCE}
            return transaction.run("ready_rated", parameters)

        await self._set_queue(queue, patch(rate=rate), ready)

    async def _set_queue(
        self,
        queue: str,
        patch: str,
        ready: Callable[[Transaction], int],
        *,
        before: Callable[[Transaction], None] | None = None,
    ) -> None:
        """The setting, and whoever waited for it: many of them in transactions of their own, after the first."""

        def write(transaction: Transaction) -> int:
            if before is not None:
                before(transaction)
            transaction.run("set_queue", {"queue": queue, "patch": patch})
            transaction.wakes.add(queue)
            return ready(transaction)

        readied = await self.database.write(write)
        while readied >= READIED_AT_ONCE:
            readied = await self.database.write(ready)
