"""Several processes on one file: nobody starves, a heartbeat does not queue behind batches, the schema is made once."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.locking import Turns

WRITER = """
import asyncio, json, sys, time
from headrace.core.task import NewTask
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore

async def main(path, seconds):
    store = SQLiteStore(path, StoreOptions())
    await store.open()
    print("ready", flush=True)
    sys.stdin.readline()
    until, n, longest = time.monotonic() + seconds, 0, 0.0
    while (began := time.monotonic()) < until:
        await store.enqueue([NewTask(name="write")] * 20)
        longest = max(longest, time.monotonic() - began)
        n += 1
    await store.close()
    print(json.dumps([n, longest]), flush=True)

asyncio.run(main(sys.argv[1], float(sys.argv[2])))
"""

OPENER = """
import asyncio, sys
from headrace.core.task import NewTask
from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore

async def main(path):
    store = SQLiteStore(path, StoreOptions())
    print("ready", flush=True)
    sys.stdin.readline()
    await store.open()
    print((await store.enqueue([NewTask(name="first")]))[0].id, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1]))
"""


def started(code: str, n: int, *arguments: str) -> list[subprocess.Popen[str]]:
    """`n` processes that have all reached their starting line, and are let go together."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(n)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    return processes


def answers(processes: list[subprocess.Popen[str]]) -> list[str]:
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return outputs


async def test_no_process_starves(tmp_path: Path) -> None:
    path = str(tmp_path / "fair.db")
    store = SQLiteStore(path, StoreOptions())
    await store.open()
    try:
        found = [json.loads(output) for output in answers(started(WRITER, 5, path, "2"))]
        counts = [n for n, _ in found]
        longest = [seconds for _, seconds in found]
        assert min(counts) >= sum(counts) / len(counts) / 4, f"transactions by process: {counts}"
        assert max(longest) < 2.0, f"longest waits: {longest}"
        with contextlib.closing(sqlite3.connect(path)) as connection:  # the store's own counts stop at a cap
            assert connection.execute("SELECT count(*) FROM headrace_tasks").fetchone() == (20 * sum(counts),)
    finally:
        await store.close()


async def test_eight_processes_make_the_schema_once(tmp_path: Path) -> None:
    path = str(tmp_path / "new.db")
    ids = sorted(int(output) for output in answers(started(OPENER, 8, path)))
    assert ids == list(range(1, 9))


def test_an_urgent_write_does_not_wait_for_its_turn(tmp_path: Path) -> None:
    """A batch that has the turn but not the lock does not stop a heartbeat."""
    path = str(tmp_path / "turns.db")
    batch, heartbeat = Turns(path), Turns(path)
    try:
        batch._turn.acquire()  # pyright: ignore[reportPrivateUsage]
        with heartbeat.taken(urgent=True):
            entered = True
        assert entered
    finally:
        batch.close()
        heartbeat.close()
