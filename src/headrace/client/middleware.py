"""What wraps every enqueue and every attempt of an app. An app without middleware pays nothing."""

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from headrace.core.task import NewTask

if TYPE_CHECKING:
    from headrace.executors.context import Context


class Middleware:
    """Override one or both. The first one added is the outermost."""

    def enqueue(self, tasks: Sequence[NewTask]) -> AbstractContextManager[Sequence[NewTask] | None]:
        """Around the write of these tasks, in the caller's thread and context. Yield other tasks to write those."""
        return _unchanged()

    def attempt(self, context: "Context") -> AbstractContextManager[None]:
        """Around the user's code, where it runs: on the loop, in a thread or in a child process."""
        return _unchanged()


@contextmanager
def _unchanged() -> Generator[None]:
    yield
