"""All that the ledger has of one task, read at once."""

from collections.abc import Sequence

from headrace.app import App
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.core.values import value
from headrace.store.base import Store
from headrace.store.relations import Relative

RELATIVES = 100  # parents, and children, that are shown
ATTEMPTS = 200  # the last ones, that are shown
_APPROVAL = "approval"  # the step that says who approved it
REENQUEUED_FROM = "reenqueued_from"  # in the metadata of a copy: the id of the task that it is a copy of


@value
class Life:
    record: TaskRecord
    attempts: Sequence[AttemptRecord]  # one more than is shown, where there are more
    approval: str | None  # who approved it, as it is stored
    parents: Sequence[Relative]  # one more than is shown, where there are more
    children: Sequence[Relative]
    job_name: str | None
    schedule: str | None


async def life_of(app: App, record: TaskRecord) -> Life:
    """However long it has run: a task that snoozes every few seconds for weeks has a hundred thousand attempts."""
    attempts = await app.engine.follow(lambda ledger: ledger.attempts(record.id, limit=ATTEMPTS + 1))

    async def look(store: Store) -> Life:
        job = None if record.job is None else await store.get_job(record.job)
        return Life(
            record=record,
            attempts=attempts,
            approval=await store.checkpoint(record.id, _APPROVAL),
            parents=await store.parents(record.id, limit=RELATIVES + 1),
            children=await store.children(record.id, limit=RELATIVES + 1),
            job_name=None if job is None else job.name,
            schedule=await store.fired_by(record.id, record.created_at),
        )

    return await app.engine.run(look)
