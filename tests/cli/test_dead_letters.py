"""`headrace dlq`: many dead letters are chosen, replayed and removed page by page."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from headrace.cli import dead_letters
from headrace.cli.failures import FAILED, OK, CommandError
from headrace.cli.times import instant_before
from headrace.client import selecting
from headrace.core.task import ErrorInfo, Key, TaskFilter
from headrace.testing.store_conformance.ledger import Ledger, failed_for_good, task
from tests.cli.shell import Shell

DECLINED = ErrorInfo(error_class="shop.Declined", message="no money", traceback="Traceback: no money")
BROKEN = ErrorInfo(error_class="builtins.ValueError", message="it is [/broken]", traceback="Traceback: broken")


async def fail(
    ledger: Ledger, n: int, error: ErrorInfo, *, name: str = "shop.pay", queue: str = "default"
) -> list[int]:
    ids = await ledger.enqueue(*[task(name, queue=queue, dead_letter=True) for _ in range(n)])
    claims = await ledger.claim(n=n, queue=queue)
    await ledger.finish("a", *[failed_for_good(claim, error) for claim in claims])
    return ids


async def left(ledger: Ledger) -> set[int]:
    return {record.id for record in await ledger.store.list(TaskFilter(dead_letter=True, limit=10_000))}


def test_they_are_listed_and_shown(either_shell: Shell):
    (declined,) = either_shell.ledger(lambda ledger: fail(ledger, 1, DECLINED))
    (broken,) = either_shell.ledger(lambda ledger: fail(ledger, 1, BROKEN, name="shop.send", queue="mail"))
    code, out, _ = either_shell("dlq", "list")
    assert code == OK
    assert "shop.Declined" in out
    assert "it is [/broken]" in out

    def listed(*words: str) -> list[str]:
        return [record["id"] for record in json.loads(either_shell("dlq", "list", "--json", *words)[1])]

    assert listed() == [str(broken), str(declined)]
    assert listed("--queue", "mail") == [str(broken)]
    assert listed("--task", "shop.pay") == [str(declined)]
    assert listed("--error", "Declined") == listed("--error", "shop.Declined") == [str(declined)]
    assert listed("--error", "clined") == []
    assert listed("--since", "1h") == [str(broken), str(declined)]
    assert listed("--since", (datetime.now(UTC) + timedelta(hours=1)).isoformat()) == []
    assert listed("--before", "1h") == []
    assert listed("--before", (datetime.now(UTC) + timedelta(hours=1)).isoformat()) == [str(broken), str(declined)]
    assert listed("--limit", "1") == [str(broken)]
    code, out, _ = either_shell("dlq", "show", str(declined))
    assert code == OK
    assert "Traceback: no money" in out
    assert json.loads(either_shell("dlq", "show", str(declined), "--json")[1])["task"]["dead_letter"] is True


def test_many_are_replayed_page_by_page(either_shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """Pages of ten: none is forgotten between them, and only what was asked for goes back."""
    monkeypatch.setattr(selecting, "PAGE", 10)
    declined = either_shell.ledger(lambda ledger: fail(ledger, 37, DECLINED))
    broken = either_shell.ledger(lambda ledger: fail(ledger, 25, BROKEN))
    code, out, _ = either_shell("dlq", "retry", "--error", "Declined", "--dry-run")
    assert (code, out) == (OK, "37 dead letters match; nothing was changed\n")
    assert either_shell.ledger(left) == {*declined, *broken}
    code, out, _ = either_shell("dlq", "retry", "--error", "Declined", "--limit", "12", "--json")
    assert (code, json.loads(out)) == (OK, {"matched": 12, "retried": 12, "kept": []})
    code, out, _ = either_shell("dlq", "retry", "--error", "Declined")
    assert (code, out) == (OK, "25 of 25 dead letters back in the queue\n")
    assert either_shell.ledger(left) == set(broken)
    code, out, _ = either_shell("dlq", "retry", "--all", "--yes", "--json")
    assert (code, json.loads(out)["retried"]) == (OK, 25)
    assert either_shell.ledger(left) == set()
    code, out, _ = either_shell("dlq", "retry", "--all")
    assert (code, out) == (OK, "0 dead letters match; nothing was changed\n")


def test_one_page_is_in_memory_at_a_time(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(selecting, "PAGE", 10)
    shell.ledger(lambda ledger: fail(ledger, 45, BROKEN))

    async def sizes(ledger: Ledger) -> list[int]:
        return [len(page) async for page in selecting.Selection().pages(ledger.store)]

    assert shell.ledger(sizes) == [10, 10, 10, 10, 5]


def test_some_are_removed_for_good(either_shell: Shell):
    first, second, third = either_shell.ledger(lambda ledger: fail(ledger, 3, BROKEN))
    assert either_shell("dlq", "purge", str(first), "--yes")[:2] == (OK, "1 of 1 dead letters removed\n")
    assert either_shell.ledger(left) == {second, third}
    code, out, _ = either_shell("dlq", "purge", "--all", "--yes", "--json")
    assert (code, json.loads(out)) == (OK, {"matched": 2, "purged": 2, "kept": []})
    assert json.loads(either_shell("tasks", "list", "--json")[1]) == []


@pytest.mark.parametrize("verb", ["retry", "purge"])
def test_what_fails_while_the_question_stands_is_not_taken(
    either_shell: Shell, monkeypatch: pytest.MonkeyPatch, verb: str
):
    asked = either_shell.ledger(lambda ledger: fail(ledger, 2, BROKEN))
    late: list[int] = []

    def agree(question: str) -> bool:
        late.extend(either_shell.ledger(lambda ledger: fail(ledger, 3, BROKEN)))
        return " 2 " in question

    monkeypatch.setattr(dead_letters, "_somebody_looks", lambda: True)
    monkeypatch.setattr(dead_letters.typer, "confirm", agree)
    code, out, _ = either_shell("dlq", verb, "--all", "--json")
    past = {"retry": "retried", "purge": "purged"}[verb]
    assert (code, json.loads(out)) == (OK, {"matched": 2, past: 2, "kept": []})
    assert len(late) == 3
    assert either_shell.ledger(left) == set(late)
    assert not set(asked) & set(late)


def test_the_old_ones_are_removed(either_shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """By the instant at which they failed; more than a page of recent ones before them is no hindrance."""
    monkeypatch.setattr(selecting, "PAGE", 2)
    old = either_shell.ledger(lambda ledger: fail(ledger, 3, BROKEN))

    async def ends(ledger: Ledger) -> list[datetime]:
        return [record.finished_at for record in (await ledger.store.get(old)).values() if record.finished_at]

    border = max(either_shell.ledger(ends))
    recent = either_shell.ledger(lambda ledger: fail(ledger, 5, BROKEN))
    code, out, _ = either_shell("dlq", "purge", "--before", border.isoformat(), "--yes", "--json")
    assert (code, json.loads(out)["purged"]) == (OK, 3)
    assert either_shell.ledger(left) == set(recent)
    assert "is no time" in either_shell("dlq", "purge", "--before", "yesterday", "--yes")[2]


def test_what_stays_is_named(shell: Shell):
    """Its unique key is somebody else's by now; and what is no dead letter is not touched."""

    async def prepare(ledger: Ledger) -> tuple[int, int]:
        key = (Key(scope="unique", key="k"),)
        dead = await ledger.enqueue_one(dead_letter=True, keys=key)
        await ledger.finish("a", failed_for_good(await ledger.claim_one(), BROKEN))
        return dead, await ledger.enqueue_one(keys=key)

    dead, live = shell.ledger(prepare)
    code, out, err = shell("dlq", "retry", str(dead), str(live))
    assert (code, out) == (FAILED, "0 of 2 dead letters back in the queue\n")
    assert f"not retried: {dead}, {live} (" in err
    assert shell("dlq", "purge", str(live), "--yes")[0] == FAILED
    assert shell.ledger(lambda ledger: ledger.state(live)) == "pending"


def test_instants_as_people_write_them():
    now = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert instant_before("90s", now) == now - timedelta(seconds=90)
    assert instant_before("1.5h", now) == now - timedelta(minutes=90)
    assert instant_before("2w", now) == now - timedelta(weeks=2)
    assert instant_before("2026-05-01T08:00", now) == datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert instant_before("2026-05-01T08:00+02:00", now) == datetime(2026, 5, 1, 6, tzinfo=UTC)
    for wrong in ("", "2", "h", "-2h", "9999999999w", "0001-01-01T00:00+05:00", "tomorrow"):
        with pytest.raises(CommandError, match="is no time"):
            instant_before(wrong, now)
