"""The asyncio tasks that a coroutine starts: marked as its own code, and otherwise as asyncio makes them."""

import asyncio
import contextvars
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import uvloop

from headrace.core.retry import Retry
from headrace.executors.base import Launch, Ran
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import Host
from headrace.executors.slots import SlotRange, SlotTable
from headrace.testing.executor_conformance import claimed
from headrace.testing.executor_conformance.cases import failure_of, value_of
from headrace.testing.executor_conformance.tasks import FunctionEntry

pytestmark = pytest.mark.timeout(60)

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


def eager(loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any) -> asyncio.Task[Any]:
    """asyncio.eager_task_factory, which does not take all that newer loops say to a factory."""
    options["eager_start"] = True
    return asyncio.Task(coroutine, loop=loop, **options)


@pytest.fixture(params=LOOPS)
def loops(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    return LOOPS[request.param]


class Inside:
    """Which tasks the slots say are being executed at this moment."""

    def __init__(self, table: SlotTable) -> None:
        self.table = table

    def now(self) -> set[int]:
        return {slot.ref.id for slot in self.table.occupied() if slot.inside}


def run(
    function: Callable[..., Any],
    directory: Path,
    loops: Callable[[], asyncio.AbstractEventLoop],
    *,
    factory: Any = None,
    beside: Callable[[], Any] | None = None,
) -> Ran:
    """Task 1 runs `function(inside)`; `beside` runs as task 2 until the other has ended."""
    table = SlotTable.create(directory / "slots", 4)

    def launch(number: int, called: Callable[..., Any]) -> Launch:
        entry = FunctionEntry(called.__name__, called)
        return Launch(claim=claimed(number, called.__name__), entry=entry, options={}, policy=Retry())

    async def bound() -> Any:
        return await function(Inside(table))

    async def main() -> Ran:
        asyncio.get_running_loop().set_task_factory(factory)
        executor = CoroutineExecutor(concurrency=4, slots=SlotRange(table), host=Host())
        await executor.open()
        try:
            other = None if beside is None else asyncio.ensure_future(executor.run(launch(2, beside)))
            await asyncio.sleep(0)
            ran = await executor.run(launch(1, bound))
            if other is not None:
                await other
            return ran
        finally:
            await executor.close()

    with asyncio.Runner(loop_factory=loops) as runner:
        return runner.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("how", ["create_task", "ensure_future", "gather", "group"])
@pytest.mark.parametrize("factory", [None, eager], ids=["lazy", "eager"])
def test_the_steps_of_a_sub_task_are_marked_as_the_tasks_own(
    tmp_path: Path, loops: Any, how: str, factory: Any
) -> None:
    async def task(inside: Inside) -> Any:
        seen: list[set[int]] = []

        async def nested() -> None:
            seen.append(inside.now())

        async def part() -> None:
            seen.append(inside.now())
            await asyncio.sleep(0.001)
            seen.append(inside.now())
            await asyncio.create_task(nested())
            try:
                raise LookupError
            except LookupError:
                await asyncio.sleep(0)
                seen.append(inside.now())

        match how:
            case "create_task":
                waited = asyncio.create_task(part())
                seen.append(inside.now())  # an eager one has run its first step by now, and this is still our code
                await waited
            case "ensure_future":
                await asyncio.ensure_future(part())
            case "gather":
                await asyncio.gather(part(), part())
            case _:
                async with asyncio.TaskGroup() as group:
                    group.create_task(part())
        return [sorted(numbers) for numbers in seen]

    seen = value_of(run(task, tmp_path, loops, factory=factory))
    assert len(seen) >= 4
    assert all(numbers == [1] for numbers in seen)


def test_nobody_is_marked_while_everyone_waits_and_a_neighbour_is_marked_alone(tmp_path: Path, loops: Any) -> None:
    marks: list[set[int]] = []
    tables: list[Inside] = []

    async def neighbour() -> None:
        for _ in range(20):
            marks.extend(inside.now() for inside in tables)
            await asyncio.sleep(0.001)

    async def task(inside: Inside) -> Any:
        tables.append(inside)
        loop = asyncio.get_running_loop()
        unmarked = loop.create_future()

        async def part() -> None:
            await asyncio.sleep(0.01)

        # Outside of any task's context, as the loop's own callbacks are.
        contextvars.Context().run(loop.call_later, 0.005, lambda: unmarked.set_result(sorted(inside.now())))
        await asyncio.gather(part(), part())
        return await unmarked

    assert value_of(run(task, tmp_path, loops, beside=neighbour)) == []
    assert {frozenset(numbers) for numbers in marks} == {frozenset({2})}


def test_what_outlives_its_task_marks_nobody(tmp_path: Path, loops: Any) -> None:
    """The slot may belong to another by then."""
    seen: list[set[int]] = []
    left: list[asyncio.Task[None]] = []
    over = asyncio.Event()

    async def task(inside: Inside) -> None:
        async def part() -> None:
            await over.wait()
            seen.append(inside.now())

        left.append(asyncio.create_task(part()))
        await asyncio.sleep(0)

    async def neighbour() -> None:
        """Runs on in its own slot, and lets the rest of the other go on once that has ended."""
        await asyncio.sleep(0.02)
        over.set()
        await asyncio.wait(left)

    run(task, tmp_path, loops, beside=neighbour)
    assert seen == [set()]


def test_a_sub_task_is_an_ordinary_task_to_the_code_inside_and_around(tmp_path: Path, loops: Any) -> None:
    async def task(_inside: Inside) -> Any:
        async def part() -> str:
            me = asyncio.current_task()
            assert me is not None
            name = me.get_name()
            me.set_name("renamed")
            await asyncio.sleep(0)
            return name

        named = asyncio.create_task(part(), name="a name")
        unnamed = asyncio.create_task(part())
        variables = contextvars.copy_context()
        elsewhere = asyncio.create_task(part(), context=variables)
        assert elsewhere.get_context() is variables
        assert "part()" in repr(unnamed)
        assert unnamed.get_coro().__name__ == "part"  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
        assert len(unnamed.get_stack()) == 1
        names = await asyncio.gather(named, unnamed, elsewhere)
        return [names[0], names[1].startswith("Task-"), named.get_name()]

    assert value_of(run(task, tmp_path, loops)) == ["a name", True, "renamed"]


def test_an_eager_sub_task_has_run_when_it_is_made(tmp_path: Path, loops: Any) -> None:
    async def task(_inside: Inside) -> Any:
        async def part() -> int:
            return 7

        made = asyncio.create_task(part())
        return [made.done(), made.result()]

    assert value_of(run(task, tmp_path, loops, factory=eager)) == [True, 7]


def test_cancellation_and_errors_pass_through(tmp_path: Path, loops: Any) -> None:
    async def task(_inside: Inside) -> Any:
        told: list[str] = []

        async def waits(name: str) -> str:
            try:
                await asyncio.sleep(300)
            except asyncio.CancelledError as error:
                told.append(f"{name} {error.args}")
                raise
            return name

        async def stubborn() -> str:
            try:
                await asyncio.sleep(300)
            except asyncio.CancelledError:
                return "stayed"
            return ""

        async def fails() -> None:
            await asyncio.sleep(0)
            raise LookupError("no such thing")

        one, two = asyncio.create_task(waits("one")), asyncio.create_task(stubborn())
        await asyncio.sleep(0)
        one.cancel("enough")
        two.cancel()
        await asyncio.wait([one, two])
        assert one.cancelled()
        assert two.result() == "stayed"
        caught = ""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(waits("in the group"))
                group.create_task(fails())
        except* LookupError as errors:
            caught = str(errors.exceptions[0])
        try:
            async with asyncio.timeout(0.01):
                await asyncio.create_task(waits("in time"))
        except TimeoutError:
            told.append("timeout")
        return [told, caught]

    told, caught = value_of(run(task, tmp_path, loops))
    assert told == ["one ('enough',)", "in the group ()", "in time ()", "timeout"]
    assert caught == "no such thing"


def test_what_is_no_coroutine_is_refused_by_asyncio(tmp_path: Path, loops: Any) -> None:
    async def task(_inside: Inside) -> None:
        await asyncio.create_task("no coroutine")  # pyright: ignore[reportArgumentType]

    failed = failure_of(run(task, tmp_path, loops))
    assert "a coroutine was expected, got 'no coroutine'" in failed.error.message


def test_tasks_outside_of_any_attempt_are_left_as_they_are(tmp_path: Path, loops: Any) -> None:
    async def main() -> list[Any]:
        executor = CoroutineExecutor(
            concurrency=4, slots=SlotRange(SlotTable.create(tmp_path / "slots", 4)), host=Host()
        )
        await executor.open()

        async def part() -> None: ...

        coroutine = part()
        made = asyncio.create_task(coroutine)
        await made
        await executor.close()
        return [made.get_coro() is coroutine, made.get_name().startswith("Task-")]

    with asyncio.Runner(loop_factory=loops) as runner:
        assert runner.run(main()) == [True, True]
