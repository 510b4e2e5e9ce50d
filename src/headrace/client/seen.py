"""Acts on one task as it was when somebody looked at it: what has changed since is left alone."""

from headrace.client.bulk import drop_results
from headrace.client.engine import Engine
from headrace.core.task import TaskRecord
from headrace.store.expecting import Expected
from headrace.store.removing import DeleteAnswer


def as_seen(record: TaskRecord) -> Expected:
    """In its state, and in this very run: another one would have begun, or ended, later."""
    return Expected(states=(record.state,), until=record.finished_at or record.enqueued_at)


async def retry_seen(engine: Engine, record: TaskRecord) -> list[int]:
    """The ids that went back; none where it is not as it was."""
    expected = as_seen(record)
    again = await engine.follow(lambda ledger: ledger.retry([record.id], expected=expected))
    await engine.readied()
    return again


async def delete_seen(engine: Engine, record: TaskRecord) -> DeleteAnswer:
    expected = as_seen(record)
    answers = await engine.follow(lambda ledger: ledger.delete([record.id], expected=expected))
    await drop_results(engine, [record], answers)
    return answers.get(record.id, DeleteAnswer.UNKNOWN)
