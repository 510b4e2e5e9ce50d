"""Results of earlier tasks, on their way into the arguments of one that waited for them.

They are read when the task is about to run, so that its row holds no copies, and only by tasks that have inputs.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, cast

from headrace.core.errors import HeadraceError, ResultError, ResultExpired, StoreUnavailable
from headrace.core.outcome import Outcome, Released
from headrace.core.payload import CodecRegistry
from headrace.core.states import TaskState
from headrace.core.task import Input
from headrace.executors.base import Launch
from headrace.store.blobs.base import Blobs
from headrace.store.blobs.base import fetch as fetch_blob
from headrace.worker.execution import failure, fault

OPTION = "inputs"
_PAUSE = 1.0  # seconds before a task comes back whose inputs could not be read
_BLOBS_AT_ONCE = 8


class Inputs:
    """`read` asks the store for the results of one task."""

    def __init__(
        self, *, read: Callable[[int], Awaitable[list[Input]]], codecs: CodecRegistry, blobs: Callable[[], Blobs | None]
    ) -> None:
        self._read = read
        self._codecs = codecs
        self._blobs = blobs

    async def filled(self, launch: Launch) -> Launch | Outcome:
        """The launch with its inputs among the arguments; or what becomes of the task."""
        from headrace.workflows.inputs import filled

        claim, codec = launch.claim, self._codecs.get(launch.claim.codec)
        try:
            found = await self._read(claim.id)
            if any(not each.state.terminal for each in found):
                # Somebody runs it once more: this one waits for what it comes to, or was blocked again meanwhile.
                return Released(delay=_PAUSE)
            turns = asyncio.Semaphore(_BLOBS_AT_ONCE)
            texts = await asyncio.gather(*(self._text(each, turns) for each in found))
            specs = cast("Sequence[Mapping[str, Any]]", launch.options[OPTION])
            results = [(each.input, text) for each, text in zip(found, texts, strict=True)]
            arguments = codec.encode(filled(codec.decode(claim.arguments), specs, results))
        except StoreUnavailable:
            return Released(delay=_PAUSE)
        except HeadraceError as error:  # expired, damaged, of a codec that nobody knows: no later attempt would differ
            return failure(error)
        except Exception as error:
            return fault(error)
        return launch._replace(claim=claim._replace(arguments=arguments))

    async def _text(self, found: Input, turns: asyncio.Semaphore) -> str | None:
        what = f"the result of task {found.task} ({found.name}), an input of this task,"
        stored = found.result
        if stored is None:
            if found.state is not TaskState.COMPLETED:
                return None
            if found.result_ref is None:
                raise ResultExpired(f"{what} was kept for its time and is gone; retry that task, and this one follows")
            blobs = self._blobs()
            if blobs is None:
                raise ResultError(
                    f"{what} is in a result store ({found.result_ref}) and this worker has none: set results_url"
                )
            async with turns:
                stored = await fetch_blob(blobs, found.result_ref, what=what)
        return self._codecs.get(found.codec).decode(stored)
