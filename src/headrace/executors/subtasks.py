"""The asyncio tasks that a task's coroutine starts (create_task, TaskGroup, gather): each step of theirs is one of the
task. When the process dies in one, the slot says whose code that was, and the neighbours are not charged.

A task factory of the worker's loop does it. Whoever starts an asyncio task pays one look at a context variable; the
steps of those that belong to an attempt cost a frame each. What an attempt leaves behind when it ends is no longer
marked: its slot may be another's by then. Bare callbacks (`call_soon`, `call_later`) are not marked either.
"""

import asyncio
import sys
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context as Variables
from typing import Any, override

from headrace.core.errors import SoftTimeLimitExceeded
from headrace.executors.context import Control, running


class SubTask(Coroutine[Any, Any, Any]):
    """Drives a coroutine as its asyncio task would, and marks the slot of the attempt meanwhile."""

    __slots__ = ("_control", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Any], control: Control) -> None:
        self._coroutine = coroutine
        self._control = control

    @override
    def send(self, value: Any, /) -> Any:
        return self._step(self._coroutine.send, value)

    @override
    def throw(self, typ: Any, val: Any = None, tb: Any = None, /) -> Any:
        error = typ if isinstance(typ, BaseException) else val if val is not None else typ()
        return self._step(self._coroutine.throw, error)

    @override
    def close(self) -> None:
        self._coroutine.close()

    @override
    def __await__(self) -> Generator[Any, Any, Any]:
        return self._coroutine.__await__()

    def _step(self, step: Callable[[Any], Any], argument: Any) -> Any:
        control = self._control
        mark = control.mark
        if mark is None or not control.open:
            return step(argument)
        memory, place = mark
        before = memory[place]  # 1 when it is started eagerly, in the middle of a step of the one that starts it
        memory[place] = 1
        try:
            return step(argument)
        except SoftTimeLimitExceeded as error:
            if getattr(self._coroutine, "cr_frame", None) is None:
                raise
            # The signal arrived between this frame and the coroutine, which has not seen it yet.
            return self._coroutine.throw(error)
        finally:
            memory[place] = before

    def __getattr__(self, name: str) -> Any:
        """What debuggers and `repr` of an asyncio task look at: the name, the code and the frame of the user's own."""
        return getattr(self._coroutine, name)

    @override
    def __repr__(self) -> str:
        return repr(self._coroutine)


class _Unnamed(asyncio.Task[Any]):
    """CPython 3.13.0 to 3.13.2 call set_name(None) on what a factory made for a task that nobody named."""

    @override
    def set_name(self, value: object, /) -> None:
        if value is not None:
            super().set_name(value)


_TASK: type[asyncio.Task[Any]] = _Unnamed if (3, 13) <= sys.version_info < (3, 13, 3) else asyncio.Task


class SubTaskFactory:
    """Installed once per loop; goes through the factory that the loop had, if any."""

    __slots__ = ("_before",)

    def __init__(self, before: Callable[..., Any] | None) -> None:
        self._before = before

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Any,
        *,
        context: Variables | None = None,
        **options: Any,
    ) -> Any:
        attempt = running.get() if context is None else context.get(running)
        # What is no coroutine is refused by the task itself, in its own words.
        if attempt is not None and attempt.control.mark is not None and asyncio.iscoroutine(coroutine):
            coroutine = SubTask(coroutine, attempt.control)
        if self._before is None:
            return _TASK(coroutine, loop=loop, context=context, **options)
        if context is not None:
            options["context"] = context
        return self._before(loop, coroutine, **options)

    @classmethod
    def install(cls, loop: asyncio.AbstractEventLoop) -> None:
        before = loop.get_task_factory()
        if not isinstance(before, cls):
            loop.set_task_factory(cls(before))
