"""What running tasks say."""

from headrace.core.task import NewTask, Ref
from headrace.executors.context import LogLine
from headrace.worker.services.words import Words
from headrace.worker.worker import worker_record
from tests.worker.bench import Bench, opened


async def test_what_is_said_after_the_end_leaves_nothing_behind(bench: Bench) -> None:
    """The number of a line goes on while the attempt is held; afterwards it is forgotten, and starts anew."""
    held = True
    async with opened(bench):
        await bench.store.register(worker_record("w", bench.options(), pid=1))
        (task,) = await bench.store.enqueue([NewTask(name="talks")])
        words = Words(store=bench.store, worker=lambda: "w", holds=lambda _: held)
        ref = Ref(task.id, 1)
        for text in ("one", "two"):
            words.log(ref, LogLine(at=0.0, message=text))
            await words.run_once()
        held = False
        await words.run_once()
        words.log(ref, LogLine(at=0.0, message="too late"))
        await words.run_once()
        lines = await bench.store.logs(task.id)
        assert [line.line for line in lines] == ["one", "two"], "a line of a number that is there is kept once"


async def test_a_message_that_is_too_long_is_cut_before_it_is_searched(bench: Bench) -> None:
    """Between two words: half a URL would show its password."""
    async with opened(bench):
        await bench.store.register(worker_record("w", bench.options(), pid=1))
        (task,) = await bench.store.enqueue([NewTask(name="talks")])
        words = Words(store=bench.store, worker=lambda: "w", holds=lambda _: True)
        words.log(Ref(task.id, 1), LogLine(at=0.0, message="redis://:hunter2@host/0," * 200_000))
        await words.run_once()
        (line,) = await bench.store.logs(task.id)
        assert len(line.line) < 200_000
        assert "hunter" not in line.line
        assert line.line.endswith(" characters left out")
