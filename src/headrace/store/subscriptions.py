"""Subscriptions: what both stores decide alike about them, and what stores do with them."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

import orjson

from headrace.core.errors import PayloadError, WrongState
from headrace.core.subscription import GIVEN, NewSubscription, SubscriptionRecord
from headrace.core.task import NewTask
from headrace.store.hooks import hook_task, new_task_from_json, new_task_to_json

_logger = logging.getLogger("headrace.store")

COLUMNS = ("name", "event", "task", "declared_by", "changed_at")
# Who subscribes to these hears of failures that the ledger itself tells of.
FAILED, DEAD_LETTER = "task.failed", "task.dead_letter"


class Subscriptions(Protocol):
    async def declare_subscriptions(self, declared_by: str, subscriptions: Sequence[NewSubscription]) -> None:
        """The subscriptions that the code of one app declares, in one transaction, safe from many processes at once.

        From then on every `send` of such an event, by whomever, enqueues their tasks in its own transaction; so do the
        ends of jobs (`job.completed`, `job.failed`, `job.cancelled`) and final failures (`task.failed`, and
        `task.dead_letter` where it is one). Those that the same app declared before and no longer does are removed.
        WrongState when a name belongs to another app: then nothing is changed.
        """
        ...

    async def subscriptions(self) -> list[SubscriptionRecord]:
        """All of them, by name."""
        ...

    async def remove_subscription(self, name: str) -> bool:
        """Tasks that it has enqueued stay. One that code declares comes back when its app starts anew."""
        ...


@dataclass(slots=True)
class Changes:
    put: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])  # name, event, task
    removed: list[str] = field(default_factory=list[str])

    def __bool__(self) -> bool:
        return bool(self.put or self.removed)


def declare(found: Sequence[Mapping[str, Any]], declared_by: str, subscriptions: Sequence[NewSubscription]) -> Changes:
    """`found` are the rows of these names, and all that this app declared before."""
    changes, standing = Changes(), {row["name"]: row for row in found}
    for new in subscriptions:
        before, stored = standing.get(new.name), _stored(new)
        if before is not None and before["declared_by"] != declared_by:
            raise WrongState(
                f"subscription {new.name!r} was declared by the app {before['declared_by']!r}, and the code of "
                f"{declared_by!r} declares it as well; nothing was changed: give one of the tasks another name, or "
                "remove the other first"
            )
        if before is None or (before["event"], before["task"]) != (new.event, stored):
            changes.put.append((new.name, new.event, stored))
    names = {new.name for new in subscriptions}
    changes.removed = [row["name"] for row in found if row["declared_by"] == declared_by and row["name"] not in names]
    return changes


def tell(declared_by: str, changes: Changes) -> None:
    """An older version that starts late takes back what a newer one declared: nobody should have to guess that."""
    if changes.removed:
        listed = ", ".join(sorted(changes.removed))
        _logger.warning("the declaration of %s removed subscriptions that were there: %s", declared_by, listed)


def record(row: Mapping[str, Any], changed_at: datetime) -> SubscriptionRecord:
    return SubscriptionRecord(
        name=row["name"],
        event=row["event"],
        task=new_task_from_json(row["task"]),
        declared_by=row["declared_by"],
        changed_at=changed_at,
    )


def subscribed_task(template: str, event: str, key: str, payload: str) -> NewTask:
    """What one event comes to. The payload is JSON already, and stays as it was sent."""
    task = hook_task(template)
    taken = orjson.loads(task.arguments)
    values = {"event": _text(event), "key": _text(key), "payload": payload}
    return replace(task, arguments="{" + ",".join(f'"{name}":{values[name]}' for name in GIVEN if name in taken) + "}")


def _text(value: str) -> str:
    return orjson.dumps(value).decode()


def _stored(new: NewSubscription) -> str:
    try:
        text = new_task_to_json(replace(new.task, job=None))
    except (TypeError, ValueError) as error:
        raise PayloadError(f"subscription {new.name!r}: its task cannot be stored: {error}") from error
    assert text is not None
    return text
