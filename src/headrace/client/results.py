"""The text of a result, wherever it is: in the ledger, or in the result store."""

from headrace.client.bridge import on_store
from headrace.client.engine import Engine
from headrace.core.errors import ResultError, ResultExpired
from headrace.core.task import TaskRecord
from headrace.store.blobs.base import BlobMissing
from headrace.store.blobs.base import fetch as fetch_blob


async def result_text(engine: Engine, record: TaskRecord) -> str:
    """Of a task that completed: what it returned, as JSON. ResultExpired, or ResultError when it cannot be read."""
    return engine.codecs.get(record.codec).decode(await stored_text(engine, record))


async def stored_text(engine: Engine, record: TaskRecord) -> str:
    """The same, as its codec wrote it."""
    stored, what = record.result, f"the result of task {record.id} ({record.name})"
    if stored is None:
        reference = record.result_ref
        if reference is None:
            raise ResultExpired(f"{what} was kept for its time and is gone")
        blobs = engine.blobs
        if blobs is None:
            raise ResultError(
                f"{what} is not in the ledger but in a result store ({reference}), and this app has none: set "
                "HEADRACE_RESULTS_URL, or App(results_url=…), to where its worker stored it"
            )
        try:
            stored = await on_store(lambda: fetch_blob(blobs, reference, what=what))
        except BlobMissing as error:
            raise ResultExpired(str(error)) from None
    return stored
