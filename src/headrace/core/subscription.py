"""Tasks that events enqueue."""

from dataclasses import dataclass
from datetime import datetime

from headrace.core.task import NewTask

# What an event gives to a task, each under the parameter of that name.
GIVEN = ("event", "key", "payload")
# Begin the names of events that the ledger itself sends.
RESERVED = ("job.", "task.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSubscription:
    """The task that every event of a name enqueues. Its arguments are an object whose keys say which of GIVEN it takes;
    its option `event` says for which event it was made."""

    name: str
    event: str
    task: NewTask


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionRecord:
    name: str
    event: str
    task: NewTask
    declared_by: str | None  # the app whose code says so
    changed_at: datetime
