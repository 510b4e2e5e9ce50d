"""Promise 5: transactional enqueue. Inside your own transaction the task appears if and only if you commit.

Each kind of connection goes through the same tests; beside the task stands a row of the user's own, which must share
its fate.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from headrace.core.errors import DuplicateTask, ForeignConnection, NotFound, OptionError, RunningLoop, UniqueBusy
from tests.guarantees import tasks_lanes, users
from tests.guarantees.declared import Tasks
from tests.guarantees.harness import ROOT, Harness
from tests.guarantees.ledger import Ledger
from tests.guarantees.ledgers import empty, prepare
from tests.guarantees.users import user
from tests.support.postgres import PostgresServer

KINDS = [
    *(pytest.param(("sqlite", kind), id=f"sqlite-{kind.replace(' ', '-')}") for kind in users.SQLITE),
    *(
        pytest.param(("postgres", kind), id=f"postgres-{kind.replace(' ', '-')}", marks=pytest.mark.postgres)
        for kind in users.POSTGRES
    ),
]


@dataclass(slots=True)
class Place:
    """A ledger, an app on it, the user's own table, and the kind of connection under test."""

    url: str
    kind: str
    ledger: Ledger
    tasks: Tasks

    def tasks_written(self) -> list[tuple[Any, ...]]:
        return self.ledger.query("SELECT id, name, state, arguments FROM {tasks} ORDER BY id")

    def orders(self) -> list[int]:
        return [number for (number,) in self.ledger.query("SELECT number FROM orders ORDER BY number")]

    def keys(self) -> list[tuple[Any, ...]]:
        return self.ledger.query("SELECT scope, key, task FROM {keys} ORDER BY key")

    def untouched(self) -> None:
        assert self.tasks_written() == []
        assert self.keys() == []
        assert self.orders() == []
        assert self.ledger.violations() == []


def _made(url: str, kind: str) -> Iterator[Place]:
    ledger = Ledger(url)
    ledger.query("CREATE TABLE IF NOT EXISTS orders (number INTEGER)")
    empty(url)
    tasks = tasks_lanes.declared.on(url)
    yield Place(url=url, kind=kind, ledger=ledger, tasks=tasks)
    tasks.app.close()
    ledger.close()


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    store, kind = request.param
    yield from _made(request.getfixturevalue(f"shared_{store}_url"), kind)


@pytest.fixture
def postgres_place(shared_postgres_url: str) -> Iterator[Place]:
    yield from _made(shared_postgres_url, "psycopg")


# --- commit and rollback ----------------------------------------------------------------------------------------------


def test_the_task_appears_with_the_commit_and_not_before(place: Place) -> None:
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        handle = client.enqueue(place.tasks.tell, n=7)
        assert handle.created
        assert (place.tasks_written(), place.orders()) == ([], [])
        with pytest.raises(NotFound):
            handle.state()
        client.commit()
        assert place.tasks_written() == [(handle.id, "tell", "pending", '{"n":7}')]
        assert place.orders() == [1]
        assert handle.state() == "pending"


def test_a_rollback_leaves_nothing(place: Place) -> None:
    """No task, no key, no counter of its job."""
    job = place.tasks.app.jobs.create("job", [place.tasks.tell.prepare(n=0)])
    before = place.tasks_written()
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        client.enqueue(place.tasks.tell, {"unique": "once"}, n=1)
        client.enqueue(place.tasks.tell, {"idempotency_key": "request-1"}, n=2)
        client.enqueue(place.tasks.tell, {"job": job.id}, n=3)
        client.submit(place.tasks, ["true"])
        client.rollback()
    assert place.tasks_written() == before
    assert (place.keys(), place.orders()) == ([], [])
    assert place.tasks.app.jobs.get(job.id).total == 1
    assert place.ledger.violations() == []
    # And the keys are free.
    assert place.tasks.tell.using(unique="once").enqueue(n=4).created


def test_a_commit_counts_the_job(place: Place) -> None:
    job = place.tasks.app.jobs.create("job", [place.tasks.tell.prepare(n=0)])
    with user(place.url, place.kind) as client:
        client.begin()
        client.enqueue(place.tasks.tell, {"job": job.id}, n=1)
        client.enqueue(place.tasks.tell, {"job": job.id}, n=2)
        client.commit()
    assert place.tasks.app.jobs.get(job.id).total == 3
    assert place.ledger.violations() == []


def test_a_savepoint_that_is_rolled_back_takes_its_task_along(place: Place) -> None:
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        first = client.enqueue(place.tasks.tell, {"unique": "first"}, n=1)
        client.savepoint()
        client.order(2)
        client.enqueue(place.tasks.tell, {"unique": "second"}, n=2)
        client.undo_savepoint()
        third = client.enqueue(place.tasks.tell, n=3)
        client.commit()
    assert [row[0] for row in place.tasks_written()] == sorted([first.id, third.id])
    assert place.orders() == [1]
    assert place.keys() == [("unique", place.keys()[0][1], first.id)]
    assert place.ledger.violations() == []


def test_the_block_form(place: Place) -> None:
    """`with app.transaction(x)` (or `async with`): tasks, many tasks and commands, and nothing outside the block."""
    tasks = place.tasks

    def work(use_async: bool) -> Any:
        if use_async:

            async def coroutine() -> list[int]:
                one = await tasks.tell.aenqueue(n=1)
                many = await tasks.tell.aenqueue_many([{"n": 2}, {"n": 3}])
                command = await tasks.app.commands.asubmit(["true"])
                return [one.id, *(handle.id for handle in many), command.id]

            return coroutine()
        many = tasks.tell.enqueue_many([{"n": 2}, {"n": 3}])
        return [tasks.tell.enqueue(n=1).id, *(handle.id for handle in many), tasks.app.commands.submit(["true"]).id]

    for end in ("rollback", "commit"):
        with user(place.url, place.kind) as client:
            client.begin()
            client.order(1)
            ids = client.in_block(tasks, work)
            assert place.tasks_written() == []
            getattr(client, end)()
    assert sorted(row[0] for row in place.tasks_written()) == sorted(ids)
    outside = tasks.tell.enqueue(n=9)
    assert outside.state() == "pending"


def test_unique_keys_hold_inside_the_transaction(place: Place) -> None:
    """The second call within the transaction finds the first; a task committed before is found as well."""
    held = place.tasks.tell.using(unique="held").enqueue(n=0)
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        first = client.enqueue(place.tasks.tell, {"unique": "new"}, n=1)
        again = client.enqueue(place.tasks.tell, {"unique": "new"}, n=2)
        known = client.enqueue(place.tasks.tell, {"unique": "held"}, n=3)
        client.commit()
    assert (first.created, again.created, known.created) == (True, False, False)
    assert (again.id, known.id) == (first.id, held.id)
    assert len(place.tasks_written()) == 2
    assert place.ledger.violations() == []


def test_a_refused_key_writes_nothing(place: Place) -> None:
    place.tasks.tell.using(unique="held").enqueue(n=0)
    before = place.tasks_written()
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        with pytest.raises(DuplicateTask):
            client.enqueue(place.tasks.tell, {"unique": "held", "on_conflict": "reject"}, n=1)
        client.rollback()
    assert place.tasks_written() == before


def test_a_command_appears_with_the_commit(place: Place) -> None:
    with user(place.url, place.kind) as client:
        client.begin()
        client.order(1)
        handle = client.submit(place.tasks, ["echo", 'it\'s "quoted"'])
        assert place.tasks_written() == []
        client.commit()
    ((task, name, state, arguments),) = place.tasks_written()
    assert (task, name, state) == (handle.id, "command", "pending")
    assert "it's" in arguments


# --- the client dies --------------------------------------------------------------------------------------------------


@pytest.mark.chaos
@pytest.mark.parametrize("store", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_kill_9_between_the_enqueue_and_the_commit_leaves_nothing(store: str, request: pytest.FixtureRequest) -> None:
    """The process of the client is killed when its enqueue has returned and its COMMIT has not begun, on each kind of
    connection: no task, no row of the user's, and the key is free.
    """
    kinds = users.SQLITE if store == "sqlite" else users.POSTGRES
    for place in _made(request.getfixturevalue(f"shared_{store}_url"), "all kinds"):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.guarantees.users", place.url, *kinds],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                for kind in kinds:
                    _kill_before_the_commit(place, process, kind)
            finally:
                process.kill()


def _kill_before_the_commit(place: Place, process: "subprocess.Popen[str]", kind: str) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("next\n")
    process.stdin.flush()
    word, _, pid = process.stdout.readline().split()
    assert word == "enqueued", kind
    os.kill(int(pid), signal.SIGKILL)
    # The key is free at once, or the database has not yet noticed the death: then it is busy, not taken.
    deadline = time.monotonic() + 30
    while True:
        try:
            again = place.tasks.tell.using(unique="only-one").enqueue(n=2)
            break
        except UniqueBusy:
            assert time.monotonic() < deadline, kind
    assert again.created, kind
    assert [row[0] for row in place.tasks_written()] == [again.id], kind
    assert place.orders() == []
    assert place.ledger.violations() == []
    again.cancel()


# --- foreign connections ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def other_sqlite_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Another database with a ledger in it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('other') / 'other.db'}"
    prepare(url)
    return url


@pytest.fixture(scope="module")
def other_postgres_url(postgres_server: PostgresServer) -> Iterator[str]:
    name = f"headrace_other_{os.getpid()}"
    url = postgres_server.create_database(name)
    prepare(url)
    yield url
    postgres_server.drop_database(name)


@pytest.fixture
def elsewhere(place: Place, request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(f"other_{'sqlite' if place.ledger.sqlite else 'postgres'}_url")


def test_a_connection_to_another_database_is_refused(place: Place, elsewhere: str) -> None:
    """ForeignConnection before a write: nothing in the app's ledger, nothing in the other."""
    other = Ledger(elsewhere)
    try:
        with user(elsewhere, place.kind) as client:
            client.begin()
            with pytest.raises(ForeignConnection):
                client.enqueue(place.tasks.tell, n=1)
            with pytest.raises(ForeignConnection):
                client.submit(place.tasks, ["true"])
            client.commit()
        assert other.query("SELECT id FROM {tasks}") == []
        place.untouched()
    finally:
        other.close()


def test_what_is_no_connection_is_refused(place: Place) -> None:
    with pytest.raises(OptionError, match="is not a connection"):
        place.tasks.tell.using(connection=object()).enqueue(n=1)
    place.untouched()


def test_an_async_connection_needs_the_async_form(place: Place) -> None:
    with user(place.url, place.kind) as client:
        if not client.is_async:
            return
        with pytest.raises(RunningLoop, match="aenqueue"):
            place.tasks.tell.using(connection=client.connection).enqueue(n=1)
    place.untouched()


def test_another_kind_of_database_is_refused(other_sqlite_url: str, postgres_place: Place) -> None:
    ledger = Ledger(other_sqlite_url)
    try:
        with user(other_sqlite_url, "sqlite3") as client, pytest.raises(ForeignConnection):
            client.enqueue(postgres_place.tasks.tell, n=1)
        assert ledger.query("SELECT id FROM {tasks}") == []
        postgres_place.untouched()
    finally:
        ledger.close()


# --- others meanwhile -------------------------------------------------------------------------------------------------


def test_a_key_in_an_open_transaction_is_busy_not_lost(postgres_place: Place) -> None:
    """Another caller waits at most two seconds for it, then is told; after the commit it finds the task."""
    place = postgres_place
    with user(place.url, place.kind) as client:
        handle = client.enqueue(place.tasks.tell, {"unique": "mine"}, n=1)
        began = time.monotonic()
        with pytest.raises(UniqueBusy):
            place.tasks.tell.using(unique="mine").enqueue(n=2)
        assert time.monotonic() - began < 20
        client.commit()
    found = place.tasks.tell.using(unique="mine").enqueue(n=3)
    assert (found.id, found.created) == (handle.id, False)


def test_an_open_transaction_does_not_hold_up_other_enqueues(postgres_place: Place) -> None:
    """Also not those of the same job: a user's transaction takes no lock on the job."""
    place = postgres_place
    job = place.tasks.app.jobs.create("job", [place.tasks.tell.prepare(n=0)])
    with user(place.url, place.kind) as client:
        client.enqueue(place.tasks.tell, {"job": job.id}, n=1)
        assert place.tasks.tell.enqueue(n=2).created
        assert place.tasks.tell.using(job=job.id).enqueue(n=3).created
        client.commit()
    assert place.tasks.app.jobs.get(job.id).total == 3


@pytest.mark.chaos
def test_a_worker_runs_it_soon_after_the_commit(harness: Harness) -> None:
    """A worker that was idle picks it up by a wake-up or its poll; it must not have run before the commit."""
    harness.ledger.query("CREATE TABLE orders (number INTEGER)")
    tasks = tasks_lanes.declared.on(harness.url)
    try:
        harness.worker(target="tests.guarantees.tasks_lanes:app", concurrency=4, children=0)
        for kind in users.SQLITE if harness.url.startswith("sqlite") else users.POSTGRES:
            # The app's first use is in an open transaction, which holds up the worker: neither may wait for the other.
            tasks.app.close()
            with user(harness.url, kind) as client:
                began = time.monotonic()
                client.begin()
                client.order(1)
                handle = client.enqueue(tasks.tell, n=1)
                assert harness.ledger.query("SELECT count(*) FROM {tasks}") == [(0,)]
                client.commit()
                handle.result(timeout=30)
                assert time.monotonic() - began < 10, kind
        assert harness.ledger.violations() == []
    finally:
        tasks.app.close()
