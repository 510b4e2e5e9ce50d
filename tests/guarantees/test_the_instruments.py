"""The instruments of these suites work: the guard refuses, the proxy cuts where it says, a clock can be wrong.

A suite that proves the absence of errors is worth what its instruments can see.
"""

import asyncio
import subprocess
import sys
import time
from pathlib import Path

import asyncpg
import pytest

from tests.guarantees.harness import WrongClock, as_host
from tests.guarantees.ledger import Ledger
from tests.guarantees.processes import alive, freeze, kill, stopped, thaw
from tests.guarantees.proxy import Moment, Proxy


@pytest.fixture
def ledger(store_url: str) -> Ledger:
    ledger = Ledger(store_url)
    ledger.prepare()
    _insert(ledger, 1)
    return ledger


def _insert(ledger: Ledger, task: int, *, table: str = "{tasks}", state: str = "pending", claim_no: int = 0) -> None:
    at = "1" if ledger.sqlite else "now()"
    extra, value = (", finished_at", f", {at}") if table == "{history}" else ("", "")
    ledger.query(
        f"INSERT INTO {table} (id, name, kind, queue, pool, state, claim_no, arguments, codec, options,"
        f" created_at, enqueued_at, eligible_at, order_at{extra}) VALUES"
        f" ({task}, 'x', 'function', 'q', 'child', '{state}', {claim_no}, '{{}}', 'json/1', '{{}}',"
        f" {at}, {at}, {at}, {at}{value})"
    )


def _claim(ledger: Ledger, claim_no: int) -> None:
    ledger.query(f"UPDATE {{tasks}} SET state = 'claimed', worker = 'w', claim_no = {claim_no} WHERE id = 1")


def _end(ledger: Ledger, claim_no: int) -> None:
    _insert(ledger, 1, table="{history}", state="completed", claim_no=claim_no)
    ledger.query("DELETE FROM {tasks} WHERE id = 1")


def test_the_guard_lets_the_state_machine_through_and_keeps_a_journal(ledger: Ledger) -> None:
    _claim(ledger, 1)
    ledger.query("UPDATE {tasks} SET state = 'pending', worker = NULL WHERE id = 1")
    _claim(ledger, 2)
    _end(ledger, 2)

    assert [(step.before, step.after, step.claim_no) for step in ledger.journal(1)] == [
        (None, "pending", 0),
        ("pending", "claimed", 1),
        ("claimed", "pending", 1),
        ("pending", "claimed", 2),
        ("claimed", "completed", 2),
    ]
    ledger.close()


@pytest.mark.parametrize(
    "crime",
    [
        "a step that is not in the table",
        "the same claim twice",
        "a lower claim",
        "a second outcome",
        "an outcome of a task nobody claimed",
        "back from the dead",
    ],
)
def test_the_guard_refuses(ledger: Ledger, crime: str) -> None:
    _claim(ledger, 2)
    with pytest.raises(Exception, match=r"guard|UNIQUE|unique"):  # noqa: PT012 the last statement is the crime
        match crime:
            case "a step that is not in the table":
                ledger.query("UPDATE {tasks} SET state = 'blocked', worker = NULL WHERE id = 1")
                ledger.query("UPDATE {tasks} SET state = 'running', worker = 'w' WHERE id = 1")
            case "the same claim twice":
                ledger.query("UPDATE {tasks} SET state = 'pending', worker = NULL WHERE id = 1")
                _claim(ledger, 2)
            case "a lower claim":
                ledger.query("UPDATE {tasks} SET claim_no = 1 WHERE id = 1")
            case "a second outcome":
                _end(ledger, 2)
                ledger.query("DELETE FROM {history} WHERE id = 1")
                _insert(ledger, 1, table="{history}", state="failed", claim_no=2)
            case "an outcome of a task nobody claimed":
                _insert(ledger, 2)
                _insert(ledger, 2, table="{history}", state="completed")
            case _:
                _end(ledger, 2)
                _insert(ledger, 1)
    ledger.close()


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("explicit", [True, False], ids=["in a transaction", "alone"])
def test_the_proxy_loses_the_connection_at_the_commit(postgres_url: str, moment: Moment, explicit: bool) -> None:
    async def run() -> int:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("CREATE TABLE t (n int)")
        with Proxy(postgres_url) as proxy:
            cut = await asyncpg.connect(proxy.url)
            proxy.arm("INSERT INTO t", moment)
            with pytest.raises((OSError, asyncpg.PostgresError, asyncpg.InterfaceError)):  # noqa: PT012
                if explicit:
                    async with cut.transaction():
                        await cut.execute("INSERT INTO t VALUES ($1)", 1)
                else:
                    await cut.execute("INSERT INTO t VALUES ($1)", 1)
            assert len(proxy.cuts) == 1
            again = await asyncpg.connect(proxy.url)
            assert await again.fetchval("SELECT 1") == 1
            await again.close()
        count = await connection.fetchval("SELECT count(*) FROM t")
        await connection.close()
        return count

    assert asyncio.run(run()) == (1 if moment == "after" else 0)


def test_a_wrong_clock_can_be_stepped_while_a_process_runs(tmp_path: Path) -> None:
    clock = WrongClock(tmp_path, 3600)
    script = (
        "import time, datetime, socket\n"
        "for _ in range(2):\n"
        "    print(time.time(), datetime.datetime.now(datetime.UTC).timestamp(), time.monotonic(), flush=True)\n"
        "    input()\n"
        "print(socket.gethostname())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        env={**clock.environment, **as_host("pod-0")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for offset in (3600, -7200):
        clock.step(offset)
        if offset < 0:
            process.stdin.write("\n")
            process.stdin.flush()
        wall, aware, monotonic = (float(word) for word in process.stdout.readline().split())
        assert wall - time.time() == pytest.approx(offset, abs=60)
        assert aware - time.time() == pytest.approx(offset, abs=60)
        assert monotonic == pytest.approx(time.monotonic(), abs=60)
    output, _ = process.communicate("\n", timeout=30)
    assert output.strip() == "pod-0"


def test_processes_are_stopped_continued_and_killed() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    freeze(process.pid)
    assert stopped(process.pid)
    thaw(process.pid)
    kill(process.pid)
    assert not alive(process.pid)
    process.communicate()
