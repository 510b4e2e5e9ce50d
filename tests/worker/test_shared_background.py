"""What serves all tasks of a process is not ended with the task that happened to need it first."""

import asyncio
from collections.abc import Sequence

from headrace.client.coalescing import Coalescer
from headrace.core.states import TaskState
from headrace.core.task import Enqueued, NewTask
from tests.support.waiting import eventually
from tests.worker.bench import Bench, opened


async def test_a_cancelled_task_does_not_take_the_enqueues_of_others_with_it(bench: Bench) -> None:
    writing, gate = asyncio.Event(), asyncio.Event()

    async def write(tasks: Sequence[NewTask]) -> list[Enqueued]:
        writing.set()
        await gate.wait()
        return [Enqueued(number, True) for number, _ in enumerate(tasks)]

    shared = Coalescer(write)

    async def needs_it() -> int:
        return len(await shared.enqueue([NewTask(name="x")]))

    bench.app.add(needs_it)
    async with opened(bench), bench.running(lease=60.0):
        first = await bench.enqueue("needs_it")
        await asyncio.wait_for(writing.wait(), 10)
        second = await bench.enqueue("needs_it")
        await eventually(lambda: is_in(bench, second, TaskState.RUNNING))
        await bench.store.cancel([first])
        await eventually(lambda: is_in(bench, first, TaskState.CANCELLED))
        gate.set()
        await eventually(lambda: is_in(bench, second, TaskState.COMPLETED))
        assert (await bench.record(second)).result == "1"


async def is_in(bench: Bench, task: int, state: TaskState) -> bool:
    return await bench.state(task) == state
