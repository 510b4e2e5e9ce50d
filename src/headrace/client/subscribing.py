"""`@app.on_event`: tasks that events enqueue. Nothing is written here: whoever runs the app writes them when it starts.

A task takes what an event gives by the names of its parameters: `event` (its name), `key`, `payload`; each of them may
be absent. Whatever else it has needs a default.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.client.bridge import sync_form
from headrace.client.events import LONGEST_NAME
from headrace.core import payload
from headrace.core.errors import DefinitionError, OptionError
from headrace.core.subscription import GIVEN, RESERVED, NewSubscription, SubscriptionRecord

if TYPE_CHECKING:
    from headrace.client.engine import Engine
    from headrace.client.task import Task

SYSTEM_EVENTS = ("job.completed", "job.failed", "job.cancelled", "task.failed", "task.dead_letter")


@dataclass(frozen=True, slots=True)
class Subscription:
    event: str
    task: "Task[..., Any]"

    @property
    def name(self) -> str:
        return f"{self.task.name}@{self.event}"

    def stored(self) -> NewSubscription:
        arguments = payload.dumps(dict.fromkeys(self._taken()))
        return NewSubscription(
            name=self.name, event=self.event, task=self.task.prepare_for_event(self.event, arguments)
        )

    def _taken(self) -> list[str]:
        arguments = self.task.arguments
        if surplus := [name for name in arguments.required if name not in GIVEN]:
            raise DefinitionError(
                f"task {self.task.name} cannot be enqueued by event {self.event!r}: nobody gives it {surplus[0]!r}. An "
                f"event gives {', '.join(GIVEN)}, by these names; any other parameter needs a default"
            )
        return [name for name in GIVEN if arguments.takes(name)]


def subscribe(engine: "Engine", event: str, task: "Task[..., Any]") -> None:
    """Check everything that can be checked and keep it; no I/O."""
    subscription = Subscription(event, task)
    if subscription.name in engine.subscribed:
        raise DefinitionError(f"task {task.name} subscribes to event {event!r} already")
    try:
        subscription.stored()
    except OptionError as error:
        # An annotation that is defined further down in the module: it is checked when the app runs.
        if not isinstance(error.__cause__, NameError):
            raise
    engine.subscribed[subscription.name] = subscription


def check_event(event: object) -> None:
    if not isinstance(event, str) or not 1 <= len(event) <= LONGEST_NAME or "\0" in event:
        raise DefinitionError(f"@app.on_event takes the name of an event, a text of 1 to {LONGEST_NAME}: {event!r:.99}")
    if event.startswith(RESERVED) and event not in SYSTEM_EVENTS:
        raise DefinitionError(f"nobody sends event {event!r}; the engine itself sends {', '.join(SYSTEM_EVENTS)}")


def subscribed(engine: "Engine") -> list[NewSubscription]:
    """What the code of the app declares, as its stores keep it."""
    return [subscription.stored() for subscription in engine.subscribed.values()]


class Events:
    """`app.events`: who is enqueued by which event."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    async def asubscriptions(self) -> Sequence[SubscriptionRecord]:
        """All of them, of every app on this database, by name."""
        return await self._engine.run(lambda store: store.subscriptions())

    async def adeclare(self, by: str | None = None) -> None:
        """Write what the code of this app declares, as a worker does when it starts, under the same name as the worker:
        `module:attribute`. For tests, and for whoever sends before a first worker ran."""
        declared, name = subscribed(self._engine), by or self._engine.settings.name
        await self._engine.run(lambda store: store.declare_subscriptions(name, declared))

    async def aunsubscribe(self, name: str) -> bool:
        """Remove one, of an app that is no more, say. One that code declares comes back when its app starts anew."""
        return await self._engine.run(lambda store: store.remove_subscription(name))

    subscriptions = sync_form(asubscriptions)
    declare = sync_form(adeclare)
    unsubscribe = sync_form(aunsubscribe)
