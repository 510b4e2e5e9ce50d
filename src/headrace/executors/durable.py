"""Durable steps: work that does not start over. A task that is run again gets what its finished steps came to from the
ledger, by their names, and goes on from there; what it waits for it waits for without a slot.

Each call is a program of acts on the ledger, written once: awaited where a loop runs, done at once where none does.
"""

import asyncio
import re
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import datetime, timedelta
from typing import Any

from headrace.core.durations import Duration, seconds
from headrace.core.errors import DurableError, PayloadError, WaitTimeout
from headrace.core.outcome import Suspended
from headrace.core.payload import dumps, loads
from headrace.core.task import ClaimedTask
from headrace.executors.ledger import Ledger
from headrace.executors.suspension import Suspend, swallowed

# Of JSON text. They are read whenever the task resumes, and stay in the ledger as long as the task does.
LARGEST_STEP = 1024 * 1024
LONGEST_NAME = 200
_OURS = re.compile(r"(sleep|wait|call):\d+(/ended)?")
# The step of a task that waited for a person: the store wrote it when they decided, before the first claim.
_APPROVAL = "approval"
_APPROVED = "headrace.workflows.builtin.approved"

type Program[T] = Generator[Awaitable[Any], Any, T]


class Durable:
    """The durable calls of one attempt."""

    __slots__ = ("_checkpoints", "_claim", "_counts", "_ledger", "_names", "_raised_in", "suspend")

    def __init__(self, claim: ClaimedTask, ledger: Ledger) -> None:
        self._claim = claim
        self._ledger = ledger
        self._names: set[str] = set()
        self._counts: dict[str, int] = {}
        self._checkpoints: dict[str, str] | None = None
        self.suspend: Suspend | None = None  # by which it was to leave
        self._raised_in: object = None

    def done[T](self, name: str, program: Program[T], *, awaited: bool) -> Any:
        """What the program comes to, or a coroutine that gives it."""
        return _awaited(program) if awaited else self._now(name, program)

    def _now[T](self, name: str, program: Program[T]) -> T:
        """Only the acts themselves in the blocking mode of the client: what a step calls is code like any other."""
        answer: Any = None
        try:
            act = next(program)
            while True:
                try:
                    answer = self._ledger.block(name, _one(act))
                except BaseException as error:
                    act = program.throw(error)
                else:
                    act = program.send(answer)
        except StopIteration as end:
            return end.value

    # --- the calls ----------------------------------------------------------------------------------------------------

    def step(
        self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, awaited: bool
    ) -> Program[Any]:
        ledger = self._ledger
        stored = (yield from self._stored(name)).get(name)
        if stored is None:
            value = function(*args, **kwargs)
            if hasattr(value, "__await__"):
                if not awaited:
                    _close(value)
                    raise TypeError(f"step {name!r} gave something to await, and {self._what} is no `async def`")
                value = yield value
            text = yield ledger.save(name, self._dumped(name, function, value))
        else:
            text = stored if name == _APPROVAL else ledger.decode(stored)
        # Also the first time by way of the text: the value is the same in every attempt.
        return ledger.load(function, text)

    def sleep(self, name: str, duration: Duration) -> Program[None]:
        length = seconds(duration, name="current.sleep")
        stored = (yield from self._stored(name)).get(name)
        now: datetime = yield self._ledger.now()
        if stored is None:
            until = now + timedelta(seconds=length)
            text: str = yield self._ledger.save(name, dumps(until))
        else:
            text = self._ledger.decode(stored)
        rest = (datetime.fromisoformat(loads(text)) - now).total_seconds()
        if rest > 0:
            raise self._suspended(name, Suspended(delay=rest))

    def wait(self, name: str, event: str, key: str, timeout: Duration | None) -> Program[Any]:
        limit = None if timeout is None else seconds(timeout, name="timeout")
        received = yield self._ledger.receive(name, event=event, key=key, timeout=limit)
        if received is None:
            raise self._suspended(name, Suspended(step=name, delay=limit))
        if received.timed_out:
            within = "" if limit is None else f" within {limit:g} s"
            raise WaitTimeout(f"{self._what}: the event {event!r} with the key {key!r} did not come{within}")
        return self._ledger.payload(received.payload)

    def call(self, name: str, call: Any) -> Program[Any]:
        checkpoints = yield from self._stored(name)
        kept = f"{name}/ended"
        if (stored := checkpoints.get(kept)) is not None:
            return self._ledger.result(self._ledger.decode(stored))
        found = checkpoints.get(name)
        child: int = (yield self._ledger.spawn(name, call)) if found is None else int(found.strip('"'))
        ended: str | None = yield self._ledger.ended(child)
        if ended is None:
            raise self._suspended(name, Suspended(task=child))
        # A failure is asked for each time: a child that is run again by hand may succeed. What is larger, too.
        if len(ended) <= LARGEST_STEP and self._ledger.succeeded(ended):
            ended = yield self._ledger.save(kept, ended)
            assert ended is not None
        return self._ledger.result(ended)

    # --- names --------------------------------------------------------------------------------------------------------

    def named(self, kind: str, name: str | None) -> str:
        """The name of a call: the one it was given, or its place among those of its kind. Asked for when it is made, so
        that calls which are awaited together have the same names in every attempt.
        """
        if self.suspend is not None:
            # Beside the one that was told: its neighbours in a task group may get here before they are cancelled.
            raise swallowed(self._claim, self.suspend) if self._raised_in == _where() else self.suspend
        if name is None:
            count = self._counts[kind] = self._counts.get(kind, 0) + 1
            return f"{kind}:{count}"
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or "\0" in name:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DurableError(
                f"{self._what}: the name of a {kind} is a text of 1 to {LONGEST_NAME}, not {name!r:.250}"
            )
        if _OURS.fullmatch(name) or name.endswith("/ended") or (name == _APPROVAL and not self._is_approval):
            raise DurableError(f"{self._what}: {name!r} is how headrace names its own; give the {kind} another name")
        if name in self._names:
            raise DurableError(
                f"{self._what}: two durable calls have the name {name!r}, and the second would get the value of the "
                "first; in a loop, make the item part of the name"
            )
        self._names.add(name)
        return name

    def _stored(self, name: str) -> Program[dict[str, str]]:
        """Read once. In its first claim a task has stored nothing."""
        if self._checkpoints is None:
            if self._claim.claim_no == 1 and name != _APPROVAL:
                return {}
            found: dict[str, str] = dict((yield self._ledger.checkpoints()))
            if self._checkpoints is None:  # another one that is awaited beside this one may have been faster
                self._checkpoints = found
        return self._checkpoints

    def _dumped(self, name: str, function: Callable[..., Any], value: Any) -> str:
        text = self._ledger.dump(function, value)
        if len(text) * 4 > LARGEST_STEP and (size := len(text.encode())) > LARGEST_STEP:
            raise PayloadError(
                f"{self._what}: step {name!r} returned {size:,} bytes of JSON and {LARGEST_STEP:,} are the most; store "
                "it elsewhere and return where it is"
            )
        return text

    def _suspended(self, step: str, suspended: Suspended) -> Suspend:
        self.suspend, self._raised_in = (suspend := Suspend(step, suspended)), _where()
        return suspend

    @property
    def _is_approval(self) -> bool:
        return self._claim.name == _APPROVED

    @property
    def _what(self) -> str:
        return f"task {self._claim.id} ({self._claim.name})"


async def _awaited[T](program: Program[T]) -> T:
    try:
        act = next(program)
        while True:
            try:
                answer = await act
            except BaseException as error:
                act = program.throw(error)
            else:
                act = program.send(answer)
    except StopIteration as end:
        return end.value


async def _one(act: Awaitable[Any]) -> Any:
    return await act


def _where() -> object:
    """What a line of code belongs to that a suspension goes through."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return threading.get_ident()


def _close(value: Any) -> None:
    if isinstance(value, Coroutine):
        value.close()  # else Python warns of a coroutine that was never awaited
