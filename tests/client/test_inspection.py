"""app.tasks, app.queues, app.workers, app.jobs, app.commands, health and middleware, on both stores."""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from headrace import App, Context, Middleware, Retry
from headrace.core.errors import ArgumentError, NotFound, OptionError, PayloadError, WrongState
from headrace.core.states import JobState, TaskState
from headrace.core.task import NewTask
from headrace.store.base import CancelAnswer
from tests.client.draining import drain, registered


def define(app: App, **options):
    @app.task(name="welcome", **options)
    async def welcome(user_id: int) -> str:
        if user_id < 0:
            raise ValueError("negative")
        return f"hello {user_id}"

    return welcome


def test_tasks(app: App):
    welcome = define(app)
    one, two = welcome.enqueue(1), welcome.using(queue="mail").enqueue(2)
    assert [record.id for record in app.tasks.list(queues=["mail"])] == [two.id]
    assert {record.id for record in app.tasks.list(states=["pending"], names=["welcome"])} == {one.id, two.id}
    assert app.tasks.list(states=[TaskState.RUNNING]) == []
    with pytest.raises(NotFound, match="999"):
        app.tasks.get(999)
    assert app.tasks.cancel(one.id, 999) == {one.id: CancelAnswer.CANCELLED, 999: CancelAnswer.UNKNOWN}
    assert app.tasks.retry(one.id, two.id) == [one.id]
    assert app.tasks.get(one.id).run_no == 2
    assert app.tasks.logs(one.id) == []
    assert app.tasks.counts()["pending"] == 2


async def test_paging_sees_every_task_once(app: App):
    welcome = define(app)
    handles = await welcome.aenqueue_many({"user_id": number} for number in range(25))
    seen: list[int] = []
    before = None
    while page := await app.tasks.alist(limit=10, before=before):
        seen += [record.id for record in page]
        before = (page[-1].created_at, page[-1].id)
    assert sorted(seen) == sorted(handle.id for handle in handles)


async def test_queues(app: App):
    welcome = define(app, queue="mail")
    await welcome.aenqueue(1)
    await app.queues.apause("mail")
    assert {queue.name: queue.paused for queue in await app.queues.alist()}["mail"]
    assert await drain(app, queues=["mail"]) == 0
    await app.queues.aresume("mail")
    assert await drain(app, queues=["mail"]) == 1


async def test_workers(app: App):
    store = app.new_store()
    await store.open()
    worker = await registered(store)
    assert [record.id for record in await app.workers.alist(states=["active"])] == [worker]
    assert (await app.workers.aget(worker)).hostname == "test"
    with pytest.raises(NotFound, match="nobody"):
        await app.workers.aget("nobody")
    await store.close()


async def test_jobs(app: App):
    welcome = define(app, retry=Retry(max_attempts=1))
    job = await app.jobs.acreate(
        "import", [welcome.prepare(1), welcome.prepare(-1)], description="two", metadata={"by": "me"}
    )
    assert (job.name, job.state, job.total, job.description) == ("import", JobState.PENDING, 2, "two")
    assert json.loads(job.metadata) == {"by": "me"}
    (added,) = await app.jobs.aadd(job.id, welcome.prepare(3))
    assert (await app.tasks.aget(added.id)).job == job.id
    assert (await app.jobs.aget(job.id)).total == 3
    with pytest.raises(TimeoutError, match=f"job {job.id} is pending"):
        await app.jobs.await_(job.id, timeout=0.05)
    await drain(app)
    assert (await app.jobs.await_(job.id, timeout=10)).state is JobState.FAILED
    assert [record.id for record in await app.jobs.alist(states=["failed"])] == [job.id]
    assert await app.jobs.aretry_failed(job.id)
    assert (await app.jobs.acancel(job.id)).state is JobState.CANCELLED
    with pytest.raises(WrongState):
        await app.jobs.acancel(job.id)
    with pytest.raises(WrongState):
        await app.jobs.aadd(job.id, welcome.prepare(4))
    with pytest.raises(NotFound):
        await app.jobs.aget(999_999)


def test_a_task_can_be_enqueued_into_a_job(app: App):
    welcome = define(app)
    job = app.jobs.create("one")
    handle = welcome.using(job=job.id, critical=False).enqueue(1)
    record = app.tasks.get(handle.id)
    assert (record.job, record.critical) == (job.id, False)


def test_commands(app: App, tmp_path):
    handle = app.commands.submit(
        ["python", "-c", "print('it''s')"], env={"A": "1"}, cwd=tmp_path, stdin="text", queue="gpu", timeout=60
    )
    record = app.tasks.get(handle.id)
    assert (record.kind, record.pool, record.queue, record.max_attempts) == ("command", "command", "gpu", 1)
    assert json.loads(record.arguments) == {
        "argv": ["python", "-c", "print('it''s')"], "env": {"A": "1"}, "cwd": str(tmp_path), "stdin": "text",
    }  # fmt: skip
    options = json.loads(record.options)
    assert (options["timeout"], options["soft_timeout"], options["retry"]["max_attempts"]) == (60, None, 1)
    bare = json.loads(app.tasks.get(app.commands.submit(["true"]).id).options)
    assert (bare["timeout"], bare["soft_timeout"]) == (None, None)


@pytest.mark.parametrize(
    "arguments",
    [
        {"argv": "rm -rf"}, {"argv": []}, {"argv": ["a\0"]}, {"argv": [1]}, {"argv": ["a"], "env": {"A=B": "c"}},
        {"argv": ["a"], "env": {"A": 1}}, {"argv": ["a"], "env": {"": "x"}},
    ],
)  # fmt: skip
def test_bad_commands_are_refused(sqlite_app: App, arguments):
    with pytest.raises(ArgumentError):
        sqlite_app.commands.submit(**arguments)
    with pytest.raises(OptionError, match="colour"):
        sqlite_app.commands.submit(["true"], colour="red")
    assert sqlite_app.tasks.list() == []


@pytest.mark.requirement("A63")
async def test_health(app: App):
    """A63: database, workers (one active), stale_tasks (none); healthy only if all are; each is reported."""
    welcome = define(app)
    await welcome.aenqueue(1)
    health = await app.ahealth_check()
    assert {name: check.healthy for name, check in health.checks.items()} == {
        "database": True, "workers": False, "stale_tasks": True, "breakers": True,
    }  # fmt: skip
    assert not health.healthy
    store = app.new_store()
    await store.open()
    worker = await registered(store)
    assert (await app.ahealth_check()).healthy
    await _claim(store, worker)
    assert (await app.ahealth_check()).healthy
    dead = (await app.workers.aget(worker)).beat
    assert await store.take_over(worker, beat=dead)
    await registered(store)
    health = await app.ahealth_check()
    assert health.checks["workers"].healthy
    assert not health.checks["stale_tasks"].healthy
    assert worker in health.checks["stale_tasks"].detail
    assert not health.healthy
    await store.close()


async def _claim(store, worker: str) -> None:
    from headrace.core.lanes import Lane
    from headrace.core.task import Want

    assert await store.claim(worker, [Want(queue="default", pool="coroutine", lane=Lane.PRIMARY, n=1)])


def test_health_without_a_database():
    health = App("postgresql://nobody@127.0.0.1:1/none").health_check()
    assert not health.healthy
    assert [check.healthy for check in health.checks.values()] == [False, False, False, True]
    assert "127.0.0.1" in health.checks["database"].detail


class Recording(Middleware):
    def __init__(self, log: list[str], name: str) -> None:
        self.log, self.name = log, name

    @contextmanager
    def enqueue(self, tasks: Sequence[NewTask]) -> Iterator[Sequence[NewTask] | None]:
        self.log.append(f"{self.name} before {len(tasks)}")
        yield [replace(task, priority=task.priority + 1) for task in tasks]
        self.log.append(f"{self.name} after")


class Refusing(Middleware):
    @contextmanager
    def enqueue(self, tasks: Sequence[NewTask]) -> Iterator[None]:
        raise PermissionError("not today")
        yield


def test_middleware_wraps_every_enqueue(sqlite_app: App):
    welcome = define(sqlite_app)
    log: list[str] = []
    sqlite_app.add_middleware(Recording(log, "outer"))
    sqlite_app.add_middleware(Recording(log, "inner"))
    sqlite_app.add_middleware(Middleware())
    handle = welcome.enqueue(1)
    asyncio.run(welcome.aenqueue_many([{"user_id": 1}, {"user_id": 2}]))
    assert log == [
        "outer before 1", "inner before 1", "inner after", "outer after",
        "outer before 2", "inner before 2", "inner after", "outer after",
    ]  # fmt: skip
    assert sqlite_app.tasks.get(handle.id).priority == 2


async def test_middleware_wraps_attempts(app: App):
    """Around the user's code, with its context, for `def` and `async def`, whether it returns or raises."""
    log: list[str] = []

    class Around(Middleware):
        @contextmanager
        def attempt(self, context: Context) -> Iterator[None]:
            log.append(f"before {context.name}")
            try:
                yield
            finally:
                log.append("after")

    @app.task(name="plain")
    def plain() -> None:
        log.append("plain")

    welcome = define(app, retry=Retry(max_attempts=1))
    app.add_middleware(Around())
    await plain.aenqueue()
    await drain(app)
    await welcome.aenqueue(-1)
    await drain(app)
    assert log == ["before plain", "plain", "after", "before welcome", "after"]


class Reversed:
    """A codec whose stored form nobody mistakes for JSON."""

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, text: str, /) -> str:
        return self.name + text[::-1]

    def decode(self, text: str, /) -> str:
        assert text.startswith(self.name)
        return text.removeprefix(self.name)[::-1]


async def test_payloads_are_written_with_the_first_codec_and_read_with_any(store_url: str):
    old = App(store_url, codec=Reversed("old/1"))
    before = await define(old).aenqueue(1)
    app = App(store_url, codec=[Reversed("new/1"), Reversed("old/1")])
    welcome = define(app)
    after = await welcome.aenqueue(2)
    records = [await app.tasks.aget(handle.id) for handle in (before, after)]
    assert [record.codec for record in records] == ["old/1", "new/1"]
    assert [record.arguments for record in records] == ['old/1}1:"di_resu"{', 'new/1}2:"di_resu"{']
    await drain(app)
    assert [await app.tasks.handle(handle.id).aresult(timeout=10) for handle in (before, after)] == [
        "hello 1",
        "hello 2",
    ]
    assert (await app.tasks.aget(after.id)).result == 'new/1"2 olleh"'
    with pytest.raises(PayloadError, match="new/1"):
        await old.tasks.handle(after.id).aresult(timeout=10)
    await old.aclose()
    await app.aclose()


def test_middleware_can_refuse(sqlite_app: App):
    sqlite_app.add_middleware(Refusing())
    with pytest.raises(PermissionError):
        define(sqlite_app).enqueue(1)
    assert sqlite_app.tasks.list() == []
