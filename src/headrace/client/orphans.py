"""`app.tasks.requeue_orphaned`: what workers do for each other, at once and by hand."""

import random
from typing import TYPE_CHECKING

from headrace.client.engine import Engine
from headrace.core.durations import Duration, seconds
from headrace.core.retry import Retry
from headrace.core.task import ClaimedTask
from headrace.store.base import Store

if TYPE_CHECKING:
    from headrace.worker.rescuing import Emptied


class Definitions:
    """The policies of tasks as far as this app defines them (worker.rescuing.Policies)."""

    def __init__(self, engine: Engine) -> None:
        self._known = engine.policies

    def policy(self, claim: ClaimedTask, /) -> Retry:
        from headrace.worker.execution import policy_of, read_options

        try:
            said = read_options(claim.options).retry
        except Exception:  # what cannot be read fails the task when somebody prepares it, not here
            said = None
        return said or self._known.get(claim.name) or policy_of(claim)


async def requeue_orphaned(engine: Engine, watch: Duration | None) -> dict[str, int]:
    from headrace.telemetry.events import Bus
    from headrace.worker.rescuing import rescue_now

    async def work(store: Store) -> "Emptied":
        return await rescue_now(
            store,
            policies=Definitions(engine),
            rng=random.Random(),
            bus=Bus(),
            by="app",
            watch=None if watch is None else seconds(watch, name="watch"),
        )

    done = await engine.run(work)
    await engine.readied()
    return {"workers": done.workers, "requeued": done.requeued, "failed": done.failed, "cancelled": done.cancelled}
