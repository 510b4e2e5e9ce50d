"""What the durable calls of a running task ask of the ledger. Executors only know this face; the app provides it.

Every write is fenced by the claim of the attempt: where that no longer holds, it raises LeaseLost and changes nothing.
"""

from collections.abc import Callable, Coroutine, Mapping
from datetime import datetime
from typing import Any, Protocol

from headrace.core.task import ClaimedTask, Received


class Ledger(Protocol):
    """Of one attempt. Texts are canonical JSON, unless they are said to be as stored."""

    def block[T](self, name: str, work: Coroutine[Any, Any, T], /) -> T:
        """Do it now, on a thread without a loop; `work` is a coroutine of this very ledger."""
        ...

    async def checkpoints(self) -> Mapping[str, str]:
        """What the task has stored so far, by name; as stored."""
        ...

    def decode(self, stored: str) -> str:
        """The text of what `save` stored."""
        ...

    async def save(self, name: str, text: str) -> str:
        """Store a text unless that name has one: the one that stands."""
        ...

    async def now(self) -> datetime:
        """By the clock that says when a task is due."""
        ...

    async def receive(self, step: str, *, event: str, key: str, timeout: float | None) -> Received | None:
        """What the wait of that name came to; None while the event has not come and there is time left."""
        ...

    async def spawn(self, name: str, call: Any) -> int:
        """Enqueue what a signature calls, once for that name: the id, which is stored as its checkpoint."""
        ...

    async def ended(self, task: int) -> str | None:
        """How a task ended, as a text that can be kept; None while it has not."""
        ...

    def succeeded(self, ended: str) -> bool: ...

    def result(self, ended: str) -> Any:
        """Of a task that ended so: what it returned. Raises TaskFailed or TaskCancelled, as its handle would."""
        ...

    def dump(self, function: Callable[..., Any], value: Any) -> str:
        """What a step returned. PayloadError when JSON cannot carry it."""
        ...

    def load(self, function: Callable[..., Any], text: str) -> Any:
        """What a step returned, by the annotation of what it called."""
        ...

    def payload(self, text: str) -> Any:
        """What came with an event."""
        ...

    def job(self) -> Any:
        """The job of the task, for adding to it."""
        ...


class Keeper(Protocol):
    """A Source (executors.base) that has a ledger."""

    def ledger(self, claim: ClaimedTask, worker: str) -> Ledger: ...
