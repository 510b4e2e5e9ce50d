"""What happened to a breaker: its changes as the ledger keeps them, told by who made them and why. Pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from headrace.core.accounts import AuditRecord
from headrace.core.breaker import BreakerChange, BreakerRecord, BreakerStatus
from headrace.server.models.breakers import BreakerChange as ChangeShown
from headrace.server.models.breakers import BreakerHistory

_WITHIN = timedelta(seconds=10)  # an act is on the list before it is done


def history_of(
    breaker: BreakerRecord, changes: Sequence[BreakerChange], acts: Sequence[AuditRecord], *, now: datetime
) -> BreakerHistory:
    """Both lists the newest first. An act that made a change is told with it, one that made none by itself."""
    known = list(changes)
    if not known or known[0].revision < breaker.revision:  # made by a version that kept none
        known.insert(0, _last(breaker))
    left = list(acts)
    items: list[ChangeShown] = []
    for change in known:
        act = next((act for act in left if _made(act, change)), None)
        if act is not None:
            left.remove(act)
        items.append(_shown(change, act))
    ends = [now, *(change.changed_at for change in known)]
    items += [half for change, end in zip(known, ends, strict=False) if (half := _half_open(change, end)) is not None]
    items += [_tried(act) for act in left]
    revisions = [change.revision for change in known]
    complete = revisions[-1] == 1 and all(newer == older + 1 for newer, older in pairwise(revisions))
    return BreakerHistory(items=sorted(items, key=lambda item: item.at, reverse=True), complete=complete)


def _last(breaker: BreakerRecord) -> BreakerChange:
    closed = breaker.status is BreakerStatus.CLOSED
    return BreakerChange(
        revision=breaker.revision,
        status=BreakerStatus.CLOSED if closed else BreakerStatus.OPEN,
        forced=breaker.forced,
        until=breaker.until,
        calls=breaker.calls,
        failures=breaker.failures,
        changed_at=breaker.changed_at,
        changed_by=breaker.changed_by,
    )


def _made(act: AuditRecord, change: BreakerChange) -> bool:
    opens = act.act.endswith("open")
    return (
        act.actor == change.changed_by
        and opens == (change.status is BreakerStatus.OPEN)
        and timedelta(0) <= change.changed_at - act.at < _WITHIN
    )


def _shown(change: BreakerChange, act: AuditRecord | None) -> ChangeShown:
    opened = change.status is BreakerStatus.OPEN
    return ChangeShown(
        at=change.changed_at,
        act="opened" if opened else "closed" if act is None else "reset",
        by=change.changed_by,
        source="ledger" if act is None else "audit",
        outcome="done" if act is None else act.outcome,
        forced=change.forced,
        calls=change.calls if opened and change.calls else None,
        failures=change.failures if opened and change.calls else None,
    )


def _half_open(change: BreakerChange, end: datetime) -> ChangeShown | None:
    """No statement makes it so: the clock does, unless something else came first."""
    if change.status is not BreakerStatus.OPEN or change.forced or change.until is None or change.until > end:
        return None
    return ChangeShown(
        at=change.until,
        act="half_open",
        by=None,
        source="ledger",
        outcome="done",
        forced=False,
        calls=None,
        failures=None,
    )


def _tried(act: AuditRecord) -> ChangeShown:
    return ChangeShown(
        at=act.at,
        act="opened" if act.act.endswith("open") else "reset",
        by=act.actor,
        source="audit",
        outcome=act.outcome,
        forced=False,
        calls=None,
        failures=None,
    )
