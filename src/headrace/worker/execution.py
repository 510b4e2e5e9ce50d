"""One attempt: prepare → run → outcome → settle. The only place where a claim turns into what the ledger writes."""

import json
import random
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

from headrace.core.classification import class_path
from headrace.core.errors import UnknownTask
from headrace.core.outcome import Cancelled, Completed, Expired, Failed, Outcome, Released
from headrace.core.retry import ErrorSignature, Retry
from headrace.core.settlement import Execution, Settlement, settle, success
from headrace.core.states import Reason
from headrace.core.task import ClaimedTask, ErrorInfo, Ref
from headrace.executors.base import Entry, Executor, Launch, Limits, Ran, Source
from headrace.executors.slots import SlotRange
from headrace.worker.holding import Held

_LONGEST_UNKNOWN = 60.0
_MOST_KEPT = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOptions:
    """What a task's stored options say about running it."""

    values: Mapping[str, Any]
    retry: Retry | None
    limits: Limits | None
    result_ttl: float | None


_NO_LIMITS = Limits()
_NO_OPTIONS = CallOptions(values={}, retry=None, limits=None, result_ttl=None)


@lru_cache(maxsize=2048)
def read_options(text: str) -> CallOptions:
    """Parsed once per text: most tasks of one name carry the same."""
    values = cast("dict[str, Any]", json.loads(text)) if text and text != "{}" else {}
    limits = None
    if "timeout" in values or "soft_timeout" in values:
        limits = Limits(soft=values.get("soft_timeout"), hard=values.get("timeout"))
    retry = values.get("retry")
    return CallOptions(
        values=values,
        retry=Retry.from_dict(retry) if retry is not None else None,
        limits=limits,
        result_ttl=values.get("result_ttl"),
    )


def _options_or_none(claim: ClaimedTask) -> CallOptions:
    """What cannot be read fails the task when it is prepared; it must still be possible to write that down."""
    try:
        return read_options(claim.options)
    except Exception:
        return _NO_OPTIONS


class Pipeline:
    """What every attempt of one worker shares."""

    def __init__(self, source: Source, *, rng: random.Random, slots: SlotRange | None = None) -> None:
        self._source = source
        self._rng = rng
        self._slots = slots
        # What all launches of one name and one text of options have in common, and the revision of the source then.
        self._kept: dict[tuple[str, str], tuple[int, tuple[Entry, Mapping[str, Any], Limits, Retry]]] = {}

    def prepare(self, claim: ClaimedTask) -> Launch | Outcome:
        """A launch, or the outcome of a claim that is not to run."""
        kept = self._kept.get((claim.name, claim.options))
        if kept is not None and kept[0] == self._revision() and claim.kind == "function":
            return Expired() if claim.expired else Launch._make((claim, *kept[1]))
        return self._read(claim)

    def _read(self, claim: ClaimedTask) -> Launch | Outcome:
        entry: Entry | None = None
        revision = self._revision()
        try:
            options = read_options(claim.options)
            values = options.values
            is_path = bool(values) and values.get("entrypoint")
            if claim.kind != "function":
                pass
            elif not is_path:
                entry = self._source.resolve(claim.name, values)
            elif claim.pool != "child":  # a child imports the path itself: an import may kill its process
                with self._inside(claim):
                    entry = self._source.resolve(claim.name, values)
        except UnknownTask:
            return unknown(claim)
        except BaseException as error:  # an import is user code, and may even try to leave
            return failure(error)
        if claim.expired:
            return Expired()
        limits = options.limits or default_limits(entry)
        policy = options.retry or (self._path_policy(claim) if is_path else policy_of(claim, entry))
        if entry is not None and not is_path and revision is not None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[claim.name, claim.options] = (revision, (entry, values, limits, policy))
        return Launch(claim=claim, entry=entry, options=values, limits=limits, policy=policy)

    def _revision(self) -> int | None:
        """The source says by a number that it gives the same entries as before; None where it says nothing."""
        return getattr(self._source, "revision", None)

    @contextmanager
    def _inside(self, claim: ClaimedTask) -> Generator[None]:
        """The import of a path is user code like any other: what kills the process there is charged."""
        slots = self._slots
        index = None if slots is None else slots.take()
        if slots is None or index is None:
            yield
            return
        slots.table.enter(index, worker=slots.worker, ref=Ref(claim.id, claim.claim_no), soft=None, hard=None)
        memory, place = slots.table.mark(index)
        memory[place] = 1
        try:
            yield
        finally:
            memory[place] = 0
            slots.table.leave(index)
            slots.give(index)

    def _path_policy(self, claim: ClaimedTask) -> Retry:
        found = getattr(getattr(self._source, "settings", None), "retry", None)
        return found if isinstance(found, Retry) else policy_of(claim)

    async def run(self, executor: Executor, launch: Launch, held: Held) -> Ran:
        """Enter user code, unless someone cancelled the task on its way here."""
        if held.cancelling:
            return Ran(outcome=Cancelled(reason=Reason.USER))
        held.entered = time.monotonic()
        return await executor.run(launch)

    def policy(self, claim: ClaimedTask) -> Retry:
        """The policy of a claim that is not run here (a dead worker's), as far as this process knows its task."""
        try:
            options = read_options(claim.options)
            if options.values.get("entrypoint"):  # not imported for this: it may be what killed the other process
                return options.retry or self._path_policy(claim)
            return options.retry or policy_of(claim, self._source.resolve(claim.name, options.values))
        except BaseException:
            return _options_or_none(claim).retry or policy_of(claim)

    def settle(
        self,
        held: Held,
        outcome: Outcome,
        launch: Launch | None = None,
        ran_for: float | None = None,
        executor: str | None = None,
    ) -> Settlement:
        claim = held.claim
        if launch is not None:
            policy, result_ttl = launch.policy, launch.options.get("result_ttl")
            if isinstance(outcome, Completed):
                return success(claim, outcome, ran_for, executor, result_ttl)
        else:
            options = _options_or_none(claim)
            policy, result_ttl = options.retry or policy_of(claim), options.result_ttl
        execution = Execution(ran_for=ran_for, executor=executor, cancelling=held.cancelling, result_ttl=result_ttl)
        return settle(claim, outcome, policy, rng=self._rng, execution=execution)


def policy_of(claim: ClaimedTask, entry: Entry | None = None) -> Retry:
    """Where the call has no policy: the definition's, else the default with the attempts that the row allows."""
    return entry.retry if entry is not None else Retry(max_attempts=max(1, claim.max_attempts))


def default_limits(entry: Entry | None) -> Limits:
    """The definition's limits, where the entry knows them."""
    found = getattr(entry, "limits", None)
    return found if isinstance(found, Limits) else _NO_LIMITS


def unknown(claim: ClaimedTask) -> Outcome:
    """Nobody here registered that name: another worker may know it, or this one after its next deployment."""
    if claim.expired:
        return Expired(reason=Reason.UNKNOWN_TASK)
    return Released(delay=min(2.0 ** min(claim.claim_no, 10), _LONGEST_UNKNOWN))


def failure(error: BaseException) -> Failed:
    """A claim that cannot even be prepared (its module does not import): no later attempt would differ."""
    return Failed(
        error=ErrorInfo(error_class=class_path(type(error)), message=str(error)),
        signature=ErrorSignature(mro=(class_path(type(error)),), verdict="permanent"),
    )


def fault(error: Exception, act: str = "run it") -> Failed:
    """Something of ours broke around an attempt (no descriptors left, say): it counts, so that it ends at last."""
    return Failed(
        error=ErrorInfo(error_class=class_path(type(error)), message=f"its worker could not {act}: {error}"),
        signature=ErrorSignature(mro=(class_path(type(error)),), verdict="transient"),
    )
