"""All that the ledger has of one task, read at once."""

from collections.abc import Mapping, Sequence

from headrace.app import App
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.core.values import value
from headrace.store.base import Store
from headrace.store.relations import Relative

RELATIVES = 100  # parents, and children, that are shown
REENQUEUED_FROM = "reenqueued_from"  # in the metadata of a copy: the id of the task that it is a copy of


@value
class Life:
    record: TaskRecord
    attempts: Sequence[AttemptRecord]
    checkpoints: Mapping[str, str]
    parents: Sequence[Relative]  # one more than is shown, where there are more
    children: Sequence[Relative]
    job_name: str | None
    schedule: str | None


async def life_of(app: App, record: TaskRecord) -> Life:
    attempts = await app.tasks.aattempts(record.id)

    async def look(store: Store) -> Life:
        job = None if record.job is None else await store.get_job(record.job)
        return Life(
            record=record,
            attempts=attempts,
            checkpoints=await store.checkpoints(record.id),
            parents=await store.parents(record.id, limit=RELATIVES + 1),
            children=await store.children(record.id, limit=RELATIVES + 1),
            job_name=None if job is None else job.name,
            schedule=await store.fired_by(record.id, record.created_at),
        )

    return await app.engine.run(look)
