"""`headrace top`: what it shows, on any size of screen; the live screen is in test_terminal.py."""

import io
import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from headrace.cli.board.snapshot import Fire, Rates, Snapshot, total
from headrace.cli.board.view import Board, allotted
from headrace.cli.failures import OK
from headrace.core.task import QueueRecord, WorkerRecord
from headrace.store.base import COUNTED_AT_MOST
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good
from tests.cli.shell import Shell

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)


def worker(id: str, completed: int = 0, failed: int = 0, *, beat: float = 0.0) -> WorkerRecord:
    return WorkerRecord(
        id=id, kind="worker", hostname="host", pid=1, state="active", beat=0, lease=30.0, queues=("mail",),
        version="1", started_at=NOW, last_heartbeat=NOW - timedelta(seconds=beat), stopped_at=None,
        tasks_completed=completed, tasks_failed=failed,
    )  # fmt: skip


def snapshot(*workers: WorkerRecord, seconds: float = 0.0, queues: int = 1) -> Snapshot:
    records = [QueueRecord(name=f"queue-{n}", paused=False, depths={"primary": 3, "running": 2}) for n in range(queues)]
    return Snapshot(at=NOW + timedelta(seconds=seconds), queues=records, workers=workers, failures=[])


def rendered(board: Board, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=False)
    console.print(board.fitted(width, height))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_what_is_there_is_printed_once(either_shell: Shell):
    async def work(ledger: Ledger) -> None:
        await ledger.register("a", lease=600.0, queues=("default",))
        await ledger.enqueue_one()
        await ledger.finish("a", completed(await ledger.claim_one()))
        await ledger.enqueue_one("shop.pay")
        await ledger.finish("a", failed_for_good(await ledger.claim_one()))
        await ledger.enqueue_one(queue="mail")
        await ledger.store.pause("mail")

    either_shell.ledger(work)
    code, out, _ = either_shell("top", "--once")
    assert code == OK
    assert "mail  (paused)" in out
    assert "shop.pay" in out
    assert "ValueError: no" in out
    code, out, _ = either_shell("top", "--json")
    answer = json.loads(out)
    assert code == OK
    assert [(queue["name"], queue["depths"]["primary"]) for queue in answer["queues"]] == [("mail", 1)]
    assert [(found["tasks_completed"], found["tasks_failed"]) for found in answer["workers"]] == [(1, 1)]
    assert [failure["name"] for failure in answer["failures"]] == ["shop.pay"]
    assert answer["rates"] == {"completed": 0.0, "failed": 0.0}


def test_without_a_terminal_it_prints_once(shell: Shell):
    code, out, _ = shell("top", "--interval", "0.1")
    assert code == OK
    assert "no worker is active" in out
    assert "\x1b" not in out


def test_rates_are_what_workers_counted_in_the_last_seconds():
    rates = Rates()
    assert rates.note(snapshot(worker("a", 100, 1))) == {}
    assert rates.note(snapshot(worker("a", 150, 1), seconds=5))["a"] == (10.0, 0.0)
    for second in range(6, 60):
        found = rates.note(snapshot(worker("a", 150 + 20 * (second - 5), 1 + second - 5), worker("b"), seconds=second))
    assert found["a"] == (20.0, 1.0), "what was before the last ten seconds does not count"
    assert total(found) == (20.0, 1.0)
    assert set(rates.note(snapshot(worker("b"), seconds=60))) == {"b"}, "who has stopped is not shown"


@pytest.mark.parametrize(
    ("room", "wanted", "given"),
    [
        (100, [5, 2, 3], [5, 2, 3]),
        (15, [50, 50, 50], [3, 3, 3]),
        (12, [1, 50, 50], [1, 3, 2]),
        (8, [50, 50, 50], [2, 2, 0]),
        (3, [50, 50, 50], [1, 0, 0]),
        (2, [50, 50, 50], [0, 0, 0]),
        (0, [1], [0]),
        (-5, [1], [0]),
    ],
)
def test_rows_are_shared_out(room: int, wanted: Sequence[int], given: list[int]):
    assert allotted(room, wanted) == given


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 3, 6, 10, 24, 60])
def test_it_fits_on_every_screen(width: int, height: int):
    board = Board(
        place="sqlite:////somewhere/headrace.db",
        snapshot=snapshot(*[worker(f"host:{n}:17", 5, 1) for n in range(30)], queues=40),
        rates={},
        outage="the server is away; trying again",
    )
    lines = rendered(board, width, height)
    assert max(len(line) for line in lines) <= width
    assert len(lines) <= max(height, 3)
    assert lines[0].startswith("headrace top"[:width])
    if height >= 6:
        assert "queue-0" in "\n".join(lines)


def test_what_matters_is_marked():
    records = [
        QueueRecord(name="mail", paused=True, depths={"primary": COUNTED_AT_MOST}),
        QueueRecord(name="we[/]ird\x1b[2J", paused=False, depths={}),
    ]
    shown = replace(
        snapshot(worker("fresh"), worker("stale", beat=45)),
        queues=records,
        fires=[Fire(schedule="nightly", task="shop.report", at=NOW + timedelta(hours=3))],
    )
    text = "\n".join(rendered(Board(place="x", snapshot=shown, rates={}), 120, 40))
    assert "mail  (paused)" in text
    assert ">10000" in text
    assert "we[/]ird [2J" in text
    assert "silent" in text
    assert "nightly" in text
    assert "in 3h" in text
    assert "q quits" in text
