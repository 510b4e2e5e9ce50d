"""enqueue, enqueue_many and their async forms, on both stores."""

import asyncio
import os
import threading
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace import App, Debounce
from headrace.core.errors import ArgumentError, DuplicateTask, NotFound, RunningLoop, SchemaError, StoreError
from headrace.core.states import TaskState
from tests.client.draining import drain


def define(app: App, **options: Any):
    @app.task(name="welcome", **options)
    async def welcome(user_id: int, greeting: str = "hello") -> str:
        return f"{greeting} {user_id}"

    return welcome


def test_what_is_enqueued_is_in_the_ledger(app: App):
    welcome = define(app, queue="mail", priority=3)
    handle = welcome.enqueue(7, greeting="hi")
    record = app.tasks.get(handle.id)
    assert handle.created
    assert (record.name, record.arguments, record.queue) == ("welcome", '{"greeting":"hi","user_id":7}', "mail")
    assert (record.state, record.priority, record.pool, record.kind) == ("pending", 3, "coroutine", "function")
    assert record.options == '{"soft_timeout":3480.0,"timeout":3600.0}'


async def test_the_async_form_writes_the_same(app: App):
    welcome = define(app)
    handle = await welcome.aenqueue(user_id=7)
    record = await app.tasks.aget(handle.id)
    assert (record.name, record.arguments) == ("welcome", '{"user_id":7}')
    assert await handle.astate() is TaskState.PENDING


def test_delays_and_instants(app: App):
    welcome = define(app)
    later = app.tasks.get(welcome.using(run_after=timedelta(minutes=5)).enqueue(1).id)
    assert timedelta(minutes=4) < later.eligible_at - later.created_at < timedelta(minutes=6)
    instant = datetime(2040, 1, 1, tzinfo=UTC)
    assert app.tasks.get(welcome.using(run_after=instant).enqueue(1).id).eligible_at == instant
    aged = app.tasks.get(welcome.using(max_age=60).enqueue(1).id)
    assert aged.expires_at is not None
    assert aged.expires_at - aged.enqueued_at == timedelta(seconds=60)


def test_nothing_is_written_when_arguments_do_not_fit(app: App):
    welcome = define(app)
    for arguments in ({}, {"user_id": "x"}, {"user_id": 1, "extra": 2}, {"user_id": 1, "greeting": object()}):
        with pytest.raises(ArgumentError, match="task welcome"):
            welcome.enqueue(**arguments)
        with pytest.raises(ArgumentError):
            welcome.enqueue_many([{"user_id": 1}, arguments])
    assert app.tasks.list() == []


def test_many_are_enqueued_in_order(app: App):
    welcome = define(app)
    handles = welcome.enqueue_many([{"user_id": 0}, ((1,), {"greeting": "hi"}), {"user_id": 2}])
    records = [app.tasks.get(handle.id) for handle in handles]
    assert [record.arguments for record in records] == [
        '{"user_id":0}',
        '{"greeting":"hi","user_id":1}',
        '{"user_id":2}',
    ]
    assert welcome.enqueue_many([]) == []


def test_a_generator_is_read_chunk_by_chunk(app: App):
    """Never more than two chunks ahead of what is in the ledger: one is prepared while the other is written."""
    welcome = define(app)
    ahead: list[int] = []

    def calls() -> Iterator[dict[str, int]]:
        for number in range(2500):
            if number % 500 == 0:
                written = sum(queue.depths.get("primary", 0) for queue in app.queues.list())
                ahead.append(number - written)
            yield {"user_id": number}

    handles = welcome.enqueue_many(calls())
    assert len({handle.id for handle in handles}) == 2500
    assert max(ahead) <= 2000


def test_an_error_half_way_says_how_far_it_came(app: App):
    welcome = define(app)
    calls: list[Any] = [{"user_id": number} for number in range(2000)]
    calls[1500] = {"user_id": "x"}
    with pytest.raises(ArgumentError) as refused:
        welcome.enqueue_many(calls)
    assert "the first 1000 calls were enqueued" in refused.value.__notes__[0]
    assert len(refused.value.enqueued) == 1000
    assert len(app.tasks.list(limit=3000)) == 1000


def test_a_hundred_thousand_in_one_call(sqlite_app: App):
    welcome = define(sqlite_app)
    handles = welcome.enqueue_many({"user_id": number} for number in range(100_000))
    assert len({handle.id for handle in handles}) == 100_000
    assert sqlite_app.tasks.get(handles[-1].id).arguments == '{"user_id":99999}'


def test_unique_among_unfinished_tasks(app: App):
    welcome = define(app, unique="user-{user_id}")
    first = welcome.enqueue(7)
    again = welcome.enqueue(7, greeting="hi")
    other = welcome.enqueue(8)
    assert (again.id, again.created) == (first.id, False)
    assert (other.id != first.id, other.created) == (True, True)
    first.cancel()
    assert welcome.enqueue(7).created


@pytest.mark.parametrize("unique", [True, "a", "{user_id}-{greeting}", lambda user_id, greeting: f"{user_id}"])
def test_ways_to_say_unique(app: App, unique: Any):
    welcome = define(app, unique=unique)
    first = welcome.enqueue(7)
    assert welcome.enqueue(user_id=7).id == first.id


def test_unique_true_is_about_name_and_arguments(app: App):
    welcome = define(app, unique=True)

    @app.task(name="other", unique=True)
    def other(user_id: int) -> None: ...

    first = welcome.enqueue(7)
    assert welcome.enqueue(8).created
    assert welcome.enqueue(7, greeting="hi").created
    assert other.enqueue(7).created
    assert not welcome.enqueue(7).created
    assert first.created


def test_reject_and_replace(app: App):
    welcome = define(app, unique="user-{user_id}")
    first = welcome.enqueue(7)
    with pytest.raises(DuplicateTask) as refused:
        welcome.using(on_conflict="reject").enqueue(7)
    assert refused.value.task_id == first.id
    replaced = welcome.using(on_conflict="replace").enqueue(7, greeting="hi")
    assert (replaced.id, replaced.created) == (first.id, False)
    assert app.tasks.get(first.id).arguments == '{"greeting":"hi","user_id":7}'


async def test_an_idempotency_key_outlives_its_task(app: App):
    welcome = define(app)
    first = await welcome.using(idempotency_key="{request} 1").aenqueue(7)
    await drain(app)
    assert await first.aresult(timeout=10) == "hello 7"
    again = await welcome.using(idempotency_key="{request} 1").aenqueue(7)
    assert (again.id, again.created) == (first.id, False)
    assert (await welcome.using(idempotency_key="2").aenqueue(7)).created


def test_debounce_keeps_the_last_call_and_a_ceiling(app: App):
    welcome = define(app, debounce=Debounce("user-{user_id}", wait=60, max_wait=90))
    first = welcome.enqueue(7)
    again = welcome.enqueue(7, greeting="hi")
    record = app.tasks.get(first.id)
    assert (again.id, again.created) == (first.id, False)
    assert record.arguments == '{"greeting":"hi","user_id":7}'
    assert timedelta(seconds=59) < record.eligible_at - record.created_at <= timedelta(seconds=90)
    assert welcome.enqueue(8).created


def test_a_blocking_form_refuses_a_thread_with_a_running_loop(app: App):
    welcome = define(app)
    handle = welcome.enqueue(1)

    async def inside() -> None:
        for call, form in (
            (lambda: welcome.enqueue(2), "aenqueue"),
            (lambda: welcome.enqueue_many([{"user_id": 1}]), "aenqueue_many"),
            (lambda: handle.result(), "aresult"),
            (lambda: handle.state(), "astate"),
            (lambda: handle.wait(), "await_"),
            (lambda: handle.cancel(), "acancel"),
            (lambda: app.tasks.get(handle.id), "aget"),
        ):
            with pytest.raises(RunningLoop, match=f"await {form}"):
                call()

    asyncio.run(inside())
    assert len(app.tasks.list()) == 1


def test_threads_and_loops_share_one_store(app: App):
    """Each of eight threads, with loops of their own: all tasks arrive, through one store."""
    welcome = define(app)
    handles: list[int] = []

    def blocking() -> None:
        handles.extend(welcome.enqueue(number).id for number in range(10))

    def looping() -> None:
        async def main() -> None:
            handles.extend([(await welcome.aenqueue(number)).id for number in range(10)])

        asyncio.run(main())

    threads = [threading.Thread(target=target) for target in (blocking, looping) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(handles)) == 80
    assert len(app.tasks.list(limit=200)) == 80


def test_an_app_made_before_a_fork_works_in_the_child(app: App):
    welcome = define(app)
    before = welcome.enqueue(1)
    pid = os.fork()
    if pid == 0:
        try:
            in_child = welcome.enqueue(2)
            assert in_child.id != before.id
            assert asyncio.run(before.astate()) is TaskState.PENDING
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    after = welcome.enqueue(3)
    arguments = sorted(record.arguments for record in app.tasks.list())
    assert arguments == ['{"user_id":1}', '{"user_id":2}', '{"user_id":3}']
    assert after.state() is TaskState.PENDING


def test_a_closed_app_opens_again(app: App):
    welcome = define(app)
    welcome.enqueue(1)
    app.close()
    app.close()
    assert welcome.enqueue(2).state() is TaskState.PENDING


def test_two_apps_share_a_database_by_name(sqlite_url: str):
    one, two = App(sqlite_url, name="one"), App(sqlite_url, name="two")
    handle = define(one).enqueue(1)
    with pytest.raises(NotFound):
        two.tasks.get(handle.id)
    assert one.tasks.get(handle.id).id == handle.id
    one.close()
    two.close()


@pytest.mark.postgres
def test_a_database_without_a_schema_says_what_to_do(postgres_server):
    name = f"headrace_bare_{os.getpid()}"
    app = App(postgres_server.create_database(name))
    try:
        with pytest.raises(SchemaError, match="headrace db upgrade"):
            define(app).enqueue(1)
    finally:
        app.close()
        postgres_server.drop_database(name)


def test_a_database_that_is_not_there_is_a_store_error():
    app = App("postgresql://nobody@127.0.0.1:1/none")
    with pytest.raises(StoreError, match=r"127\.0\.0\.1"):
        define(app).enqueue(1)
