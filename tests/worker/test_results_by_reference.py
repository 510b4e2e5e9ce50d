"""Results on their way to dependents, and results too large for a row: where they are, who removes them, what is said
when they are gone or damaged. On both stores."""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace import App, Retry, chain, chord, group
from headrace.core.errors import ResultError, ResultExpired, SettingsError, TaskFailed
from headrace.core.outcome import Released
from headrace.core.payload import CodecRegistry
from headrace.core.states import JobState, TaskState
from headrace.core.task import ClaimedTask, Input
from headrace.executors.base import Launch
from headrace.store.base import RELEASED_AT_ONCE, Pruned, Store
from headrace.store.blobs.base import BlobCorrupt, BlobMissing, fetch, keep, owner_of, path_of
from headrace.store.blobs.fsspec import FsspecBlobs
from headrace.store.blobs.local import LocalBlobs
from headrace.store.blobs.opening import open_blobs
from headrace.store.blobs.orphans import Orphans
from headrace.testing import drain, inline, override
from headrace.testing.background import BackgroundWorker
from headrace.worker.inputs import Inputs
from headrace.worker.services.upkeep import Pruner, Retention

ONCE = Retry(max_attempts=1)
LARGE = 5_000_000


@pytest.fixture
def app(store_url: str, tmp_path: Path) -> Iterator[App]:
    made = App(store_url)
    with override(made, url=store_url):
        # Where a PostgreSQL app keeps them is its own to say; an SQLite one has a directory beside its file.
        if not store_url.startswith("sqlite"):
            object.__setattr__(made.settings, "results_url", str(tmp_path / "headrace.db.results"))
        yield made
    made.close()


@pytest.fixture
def sqlite_app(sqlite_url: str) -> Iterator[App]:
    """For what does not depend on the store."""
    made = App(sqlite_url)
    with override(made, url=sqlite_url):
        yield made
    made.close()


def large(app: App) -> Any:
    @app.task(name="large", retry=ONCE)
    def make(size: int = LARGE) -> str:
        return "x" * size

    return make


def folder(tmp_path: Path) -> Path:
    return tmp_path / "headrace.db.results" / "headrace" / "results"


def on_store[T](app: App, act: Any) -> Any:
    return asyncio.run(app.engine.run(act))


# --- by reference -----------------------------------------------------------------------------------------------------


def test_dependents_get_results_and_rows_hold_no_copies(app: App) -> None:
    """The arguments column of a task that takes results holds none of them, before, while and after it runs."""
    mark = "a-result-that-is-easy-to-find"

    @app.task(name="say", retry=ONCE)
    async def say(n: int) -> str:
        return f"{mark}-{n}"

    @app.task(name="join", retry=ONCE)
    def join(parts: list[str], sep: str) -> str:
        return sep.join(parts)

    @app.task(name="shout", retry=ONCE)
    async def shout(text: str) -> str:
        return text.upper()

    with BackgroundWorker(app):
        job = chord(group(say.s(n) for n in range(20)), chain(join.s(sep="+"), shout.s())).enqueue()
        assert job.result(timeout=60) == "+".join(f"{mark}-{n}" for n in range(20)).upper()
    records = [app.tasks.get(record.id) for record in app.tasks.list(limit=100)]
    assert len(records) == 22
    assert not [record.arguments for record in records if mark in record.arguments.lower()]
    assert [record.arguments for record in records if record.name == "join"] == ['{"sep":"+"}']


def test_many_that_wait_for_one_result_get_it(app: App) -> None:
    @app.task(name="source", retry=ONCE)
    def source() -> list[int]:
        return list(range(1000))

    @app.task(name="pick", retry=ONCE)
    async def pick(items: list[int], n: int) -> int:
        return items[n]

    with BackgroundWorker(app):
        job = chain(source.s(), group(pick.s(n) for n in range(50))).enqueue()
        assert job.result(timeout=60) == list(range(50))


def test_more_dependents_than_one_transaction_frees(sqlite_app: App) -> None:
    """The finish of the first frees none of them, and what goes on with them is woken at once."""
    app, width = sqlite_app, RELEASED_AT_ONCE + 100

    @app.task(name="source", retry=ONCE)
    async def source() -> int:
        return 1

    @app.task(name="leaf", retry=ONCE)
    async def leaf(n: int) -> int:
        return n

    with BackgroundWorker(app):
        job = chain(source.s(), group(leaf.s() for _ in range(width))).enqueue()
        record = app.jobs.wait(job.id, timeout=120)
    assert (record.state, record.completed) == (JobState.COMPLETED, width + 1)


def test_an_input_that_expired_fails_its_task_by_name(app: App) -> None:
    @app.task(name="source", retry=ONCE)
    def source() -> int:
        return 1

    @app.task(name="sink")
    def sink(n: int) -> int:
        return n

    job = chain(source.s(), sink.s()).enqueue()
    drain(app)
    (first,) = [record for record in app.tasks.list(limit=10) if record.name == "source"]
    (last,) = [record for record in app.tasks.list(limit=10) if record.name == "sink"]
    assert job.result() == 1
    table = "headrace_history" if app.url.startswith("sqlite") else "headrace.history"
    execute(app, f"UPDATE {table} SET result = NULL WHERE id = {first.id}")
    app.tasks.retry(last.id)
    drain(app, raise_on_failure=False)
    record = app.tasks.get(last.id)
    assert (record.state, record.attempt) == (TaskState.FAILED, 1), "another attempt would not find it either"
    assert f"the result of task {first.id} (source), an input of this task, was kept for its time" in str(
        record.error_message
    )


def execute(app: App, sql: str) -> None:
    if app.url.startswith("sqlite"):
        import sqlite3

        from headrace.store.connect import sqlite_path

        connection: Any = sqlite3.connect(sqlite_path(app.url))
    else:
        import psycopg

        connection = psycopg.connect(app.url)
    connection.execute(sql)
    connection.commit()
    connection.close()


# --- large ------------------------------------------------------------------------------------------------------------


def test_a_large_result_is_a_blob_with_its_size_and_checksum(app: App, tmp_path: Path) -> None:
    """5 MB: the row has a reference, the file the text; a small one stays in the row."""
    task = large(app)

    @app.task(name="length", retry=ONCE)
    async def length(text: str) -> int:
        return len(text)

    with BackgroundWorker(app):
        job = chain(task.s(), length.s()).enqueue()
        assert job.result(timeout=60) == LARGE
        handle = task.enqueue()
        assert handle.result(timeout=60) == "x" * LARGE
        small = task.enqueue(10)
        assert small.result(timeout=60) == "x" * 10
    record = handle.record()
    assert record.result is None
    assert app.blobs is not None
    path = path_of(handle.id, record.claim_no, app.blobs.ledger)
    assert str(record.result_ref).startswith(f"{path}#size={LARGE + 2}&sha256=")
    assert (folder(tmp_path).parent / path).stat().st_size == LARGE + 2
    assert (small.record().result, small.record().result_ref) == ('"xxxxxxxxxx"', None)
    (taker,) = [app.tasks.get(record.id) for record in app.tasks.list(limit=10) if record.name == "length"]
    assert len(taker.arguments) < 100
    assert not list(folder(tmp_path).rglob("*.part"))


def test_the_limit_is_in_bytes_and_can_be_set(sqlite_app: App) -> None:
    app = sqlite_app
    object.__setattr__(app.settings, "result_inline", 100)

    @app.task(name="say", retry=ONCE)
    def say(text: str) -> str:
        return text

    with inline(app):
        handles = {text: say.enqueue(text) for text in ("x" * 98, "x" * 99, "é" * 49, "é" * 50)}
        assert {text: handle.result() for text, handle in handles.items()} == {text: text for text in handles}
        blobs = [text for text, handle in handles.items() if handle.record().result_ref is not None]
    assert blobs == ["x" * 99, "é" * 50]


@pytest.mark.parametrize("harm", ["flipped", "cut", "gone"])
def test_a_damaged_result_is_told_and_never_given(sqlite_app: App, tmp_path: Path, harm: str) -> None:
    app = sqlite_app
    task = large(app)

    @app.task(name="length")
    async def length(text: str) -> int:
        return len(text)

    job = chain(task.s(), length.s()).enqueue()
    (record,) = [record for record in app.tasks.list(limit=10) if record.name == "large"]
    with BackgroundWorker(app) as worker:
        job.wait(timeout=60)
        worker.wait_until_idle()
    (path,) = (folder(tmp_path) / str(record.id)).iterdir()
    match harm:
        case "flipped":
            data = bytearray(path.read_bytes())
            data[1000] ^= 1
            path.write_bytes(data)
        case "cut":
            path.write_bytes(path.read_bytes()[:-7])
        case _:
            path.unlink()
    said = {
        "flipped": "is damaged: the checksum",
        "cut": "4,999,995 bytes, not 5,000,002",
        "gone": "is not in the result store",
    }
    kind = ResultExpired if harm == "gone" else ResultError
    with pytest.raises(kind, match=said[harm]):
        app.tasks.handle(record.id).result()
    (taker,) = [found for found in app.tasks.list(limit=10) if found.name == "length"]
    app.tasks.retry(taker.id)
    drain(app, raise_on_failure=False)
    failed = app.tasks.get(taker.id)
    assert (failed.state, failed.attempt) == (TaskState.FAILED, 1)
    assert f"the result of task {record.id} (large), an input of this task," in str(failed.error_message)
    assert said[harm] in str(failed.error_message)


def test_a_place_that_cannot_be_written_fails_the_attempt_and_not_the_worker(sqlite_app: App, tmp_path: Path) -> None:
    app = sqlite_app
    (tmp_path / "headrace.db.results").write_text("a file where the directory should be")
    task = large(app)
    with BackgroundWorker(app):
        with pytest.raises(TaskFailed, match="its worker could not keep its result in"):
            task.enqueue().result(timeout=60)
        assert task.enqueue(5).result(timeout=60) == "xxxxx"


def test_without_a_place_results_stay_in_the_row(postgres_url: str) -> None:
    app = App(postgres_url)
    try:
        assert app.blobs is None
        with override(app, url=postgres_url):
            task = large(app)
            with inline(app):
                handle = task.enqueue(200_000)
                assert len(str(handle.record().result)) == 200_002
    finally:
        app.close()


def test_a_reference_of_another_place_is_told(sqlite_app: App) -> None:
    app = sqlite_app
    task = large(app)
    with inline(app):
        handle = task.enqueue()
    object.__setattr__(app.settings, "results_url", "none")
    app.engine.put_aside(app.url, app.settings, app.engine.clock)
    with pytest.raises(ResultError, match=r"in a result store .* and this app has none: set HEADRACE_RESULTS_URL"):
        handle.result()


# --- the end of a blob ------------------------------------------------------------------------------------------------


async def prune(store: Store, app: App) -> None:
    await Pruner(store=store, retention=Retention(keep=0.0), blobs=app.blobs).run_once()


def test_a_blob_goes_with_its_row(app: App, tmp_path: Path) -> None:
    task = large(app)
    with inline(app):
        ids = [task.enqueue(100_000).id for _ in range(3)]
    assert len(list(folder(tmp_path).iterdir())) == 3
    clock: Any = app.engine.clock
    clock.advance(60)
    on_store(app, lambda store: prune(store, app))
    assert list(folder(tmp_path).iterdir()) == []
    assert [record for record in app.tasks.list(limit=10) if record.id in ids] == []


def test_an_expired_result_takes_its_blob_along(app: App, tmp_path: Path) -> None:
    @app.task(name="brief", retry=ONCE, result_ttl=30)
    def brief() -> str:
        return "x" * 100_000

    with inline(app):
        handle = brief.enqueue()
        assert len(handle.result()) == 100_000
    clock: Any = app.engine.clock
    clock.advance(31)
    pruner = lambda store: Pruner(store=store, retention=Retention(keep=3600), blobs=app.blobs).run_once()  # noqa: E731
    on_store(app, pruner)
    assert list(folder(tmp_path).iterdir()) == []
    with pytest.raises(ResultExpired, match="was kept for its time and is gone"):
        handle.result()


def test_a_result_is_kept_while_a_dependent_needs_it(app: App, tmp_path: Path) -> None:
    """Pinned: its time is over, and the task that takes it has not run yet."""

    @app.task(name="brief", retry=ONCE, result_ttl=30)
    def brief() -> str:
        return "x" * 100_000

    @app.task(name="length", retry=ONCE)
    async def length(text: str) -> int:
        return len(text)

    job = chain(brief.s(), length.using(queue="later").s()).enqueue()
    drain(app, queue="default")
    clock: Any = app.engine.clock
    clock.advance(31)
    pruner = lambda store: Pruner(store=store, retention=Retention(keep=3600), blobs=app.blobs).run_once()  # noqa: E731
    on_store(app, pruner)
    assert len(list(folder(tmp_path).iterdir())) == 1
    drain(app, queue="later")
    assert job.result() == 100_000
    on_store(app, pruner)
    assert list(folder(tmp_path).iterdir()) == []


async def test_an_upstream_that_runs_again_is_waited_for() -> None:
    """Somebody retried it after this one was claimed: it has no result to give, which is not the result null."""
    again = Input(
        input=0, place=0, task=7, name="up", state=TaskState.PENDING, codec="json/1", result=None, result_ref=None
    )

    async def read(task: int) -> list[Input]:
        return [again]

    inputs = Inputs(read=read, codecs=CodecRegistry(), blobs=lambda: None)
    claim = ClaimedTask(
        *(8, 1, "down", "function", "default", "coroutine", 0, 0, "{}", "json/1", 1, "{}", 0, 0, 1, 1, None),
        *(False, False, "claimed", 0, 0.0),
    )
    launch = Launch(claim=claim, entry=None, options={"inputs": [{"at": "x", "shape": "one"}]})
    answer = await inputs.filled(launch)
    assert isinstance(answer, Released)
    assert answer.delay > 0


def test_blobs_of_a_ledger_that_has_moved_stay(sqlite_app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other ledger has the tasks, and refers to them here."""
    blobs = sqlite_app.blobs
    assert blobs is not None
    blobs.write(path_of(10**15, 1, blobs.ledger), b"?")

    async def elsewhere(store: Store) -> str:
        return "postgresql://elsewhere/db"

    monkeypatch.setattr("headrace.store.blobs.orphans.moved_to", elsewhere)
    assert on_store(sqlite_app, lambda store: Orphans(store, blobs, old=-1.0).collect()) == 0
    monkeypatch.undo()
    assert on_store(sqlite_app, lambda store: Orphans(store, blobs, old=-1.0).collect()) == 1


def test_what_nobody_refers_to_is_collected_after_a_day(sqlite_app: App, tmp_path: Path) -> None:
    app = sqlite_app
    task = large(app)
    with inline(app):
        used = task.enqueue(100_000)
        pending = task.using(run_after=3600).enqueue(100_000)
    blobs = app.blobs
    assert blobs is not None
    mine = blobs.ledger
    late = path_of(used.id, 99, mine)  # of a claim whose report was refused
    forgotten, young, others = path_of(10**15, 1, mine), path_of(10**15, 2, mine), path_of(used.id, 1, "0123")
    for path in (late, forgotten, young, others, path_of(pending.id, 1, mine), f"results/7/1-{mine}.4711.part"):
        blobs.write(path, b"?")
    root = tmp_path / "headrace.db.results" / "headrace"
    day_before = time.time() - 90_000
    for path in root.rglob("*"):
        if path.is_file() and path != root / young:
            os.utime(path, (day_before, day_before))
    assert on_store(app, lambda store: Orphans(store, blobs).collect()) == 4
    left = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert left == {path_of(used.id, 1, mine), young, others}
    assert len(used.result()) == 100_000


def test_the_search_for_them_is_bounded(sqlite_app: App, tmp_path: Path) -> None:
    app = sqlite_app
    blobs = app.blobs
    assert blobs is not None
    for task in range(25):
        blobs.write(path_of(10**15 + task, 1, blobs.ledger), b"?")
    orphans_of = lambda store: Orphans(store, blobs, old=-1.0)  # noqa: E731

    async def rounds(store: Store) -> list[int]:
        orphans = orphans_of(store)
        return [await orphans.collect(limit=10) for _ in range(4)]

    assert on_store(app, rounds) == [10, 10, 5, 0]


def test_what_prune_returns_is_what_is_removed() -> None:
    assert Pruned().blobs == ()
    assert owner_of("results/7/2-ab") == (7, 2, "ab")
    for path in ("results/7", "results/7/2-ab.99.part", "other/7/2-ab", "results/a/b", "results/7/2/3", "results/7/2"):
        assert owner_of(path) is None


# --- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["local", "memory", "file through fsspec"])
async def test_every_place_keeps_the_same_promises(kind: str, tmp_path: Path) -> None:
    blobs = {
        "local": lambda: LocalBlobs(tmp_path / "blobs", ledger="x"),
        "memory": lambda: FsspecBlobs(f"memory://{tmp_path.name}/app", ledger="x"),
        "file through fsspec": lambda: FsspecBlobs(f"file://{tmp_path}/through/app", ledger="x"),
    }[kind]()
    reference = await keep(blobs, path_of(7, 2, "x"), '"é and more"')
    assert await fetch(blobs, reference, what="it") == '"é and more"'
    await keep(blobs, path_of(8, 1, "x"), '"other"')
    assert {found.path for found in blobs.search()} == {"results/7/2-x", "results/8/1-x"}
    assert all(-5 < found.age < 300 for found in blobs.search())
    blobs.write(path_of(7, 2, "x"), b'"e and more!!"')
    with pytest.raises(BlobCorrupt, match="it is damaged"):
        await fetch(blobs, reference, what="it")
    for _ in range(2):
        blobs.remove(path_of(7, 2, "x"))
    with pytest.raises(BlobMissing, match="it is not in the result store"):
        await fetch(blobs, reference, what="it")
    assert {found.path for found in blobs.search()} == {"results/8/1-x"}


def test_which_place_an_app_has(tmp_path: Path) -> None:
    def place(url: str | None, database: str) -> str | None:
        found = open_blobs(url, database=database, name="shop")
        return None if found is None else found.place

    file = f"sqlite:///{tmp_path}/shop.db"
    assert place(None, file) == f"{tmp_path}/shop.db.results/shop"
    assert place(None, "sqlite:///:memory:") is None
    assert place(None, "postgresql://host/shop") is None
    assert place("none", file) is None
    assert place(str(tmp_path / "r"), "postgresql://host/shop") == f"{tmp_path}/r/shop"
    assert place(f"file://{tmp_path}/a%20b", file) == f"{tmp_path}/a b/shop"
    assert place("memory://bucket/folder/", file) == "memory://bucket/folder/shop"
    with pytest.raises(SettingsError, match="results_url 'nowhere://x/shop' is not understood"):
        place("nowhere://x", file)
