"""Results that are too large for a row: written to the result store before their task is finished."""

from headrace.core.outcome import Completed
from headrace.core.task import Ref
from headrace.executors.base import Ran
from headrace.executors.invocation import RESULT_LIMIT
from headrace.store.blobs.base import Blobs, keep, path_of
from headrace.worker.application import Application, blobs_of, inline_of
from headrace.worker.execution import fault

# Bytes of JSON, where there is a result store. They pass through memory, of the task's process and of the worker's.
BLOB_LIMIT = 64 * 1024 * 1024


class ResultKeeper:
    def __init__(self, blobs: Blobs, *, inline: int) -> None:
        self._blobs = blobs
        self._inline = inline

    def wants(self, ran: Ran) -> bool:
        """Whether its result has to go there. A character takes at most four bytes, so most are not encoded here."""
        outcome = ran.outcome
        if type(outcome) is not Completed or (text := outcome.result) is None or len(text) * 4 <= self._inline:
            return False
        return len(text) > self._inline or len(text.encode()) > self._inline

    async def kept(self, ref: Ref, ran: Ran) -> Ran:
        """With a reference in place of the result. One that cannot be written fails the attempt: it may be repeated."""
        outcome = ran.outcome
        assert isinstance(outcome, Completed)
        assert outcome.result is not None
        try:
            reference = await keep(self._blobs, path_of(ref.id, ref.claim_no, self._blobs.ledger), outcome.result)
        except Exception as error:
            return ran._replace(outcome=fault(error, f"keep its result in {self._blobs.place}"))
        return ran._replace(outcome=Completed(result=None, result_ref=reference))


def result_keeper(app: Application) -> ResultKeeper | None:
    """Of an app that has a result store."""
    blobs = blobs_of(app)
    return None if blobs is None else ResultKeeper(blobs, inline=inline_of(app))


def result_limit(app: Application) -> int:
    """Bytes of a result that is kept at all."""
    return RESULT_LIMIT if blobs_of(app) is None else BLOB_LIMIT
