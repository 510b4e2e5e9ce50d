"""`headrace logs`: the lines of tasks, as they are and as they come."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from headrace.cli import following
from headrace.cli.failures import OK
from headrace.core.errors import StoreUnavailable
from headrace.core.task import Ref
from headrace.store.base import LogLine
from headrace.testing.store_conformance.ledger import Ledger, completed, failed, ref
from tests.cli.shell import Shell
from tests.support.waiting import eventually


class Heard(following.Printer):
    """What a follower printed."""

    def __init__(self) -> None:
        super().__init__(json=False, names=False)
        self.lines: list[str] = []
        self.told: list[str] = []

    def print(self, lines: "list[LogLine]", record: object) -> None:  # type: ignore[override]
        self.lines += [line.line for line in lines]

    def say(self, text: str) -> None:
        self.told.append(text)


async def log(ledger: Ledger, claim: Ref, first: int, *lines: str) -> None:
    await ledger.store.append_logs([(claim, first + n, "info", line) for n, line in enumerate(lines)])


async def two_attempts(ledger: Ledger) -> int:
    id = await ledger.enqueue_one(name="shop.talk", queue="mail")
    claim = await ledger.claim_one(queue="mail")
    await log(ledger, ref(claim), 0, "first [/x]", "second")
    await ledger.finish("a", failed(claim))
    again = await ledger.claim_due(queue="mail")
    await log(ledger, ref(again), 0, "third")
    await ledger.finish("a", completed(again))
    return id


def test_the_lines_of_one_task(either_shell: Shell):
    id = either_shell.ledger(two_attempts)
    code, out, _ = either_shell("logs", str(id))
    assert code == OK
    assert [line.split(" ", 2)[2] for line in out.splitlines()] == ["first [/x]", "second", "third"]
    code, out, _ = either_shell("logs", str(id), "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    assert [(line["task"], line["claim_no"], line["line"]) for line in lines] == [
        (str(id), 1, "first [/x]"), (str(id), 1, "second"), (str(id), 2, "third"),
    ]  # fmt: skip
    assert "third" in either_shell("logs", str(id), "--claim", "2")[1]
    assert "first" not in either_shell("logs", str(id), "--claim", "2")[1]


def test_more_lines_than_a_page(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(following, "_PAGE", 7)

    async def talk(ledger: Ledger) -> int:
        id = await ledger.enqueue_one()
        claim = await ledger.claim_one()
        await log(ledger, ref(claim), 0, *[f"line {n}" for n in range(40)])
        await ledger.finish("a", completed(claim))
        return id

    id = shell.ledger(talk)
    for words in (["logs", str(id)], ["logs", str(id), "--follow"]):
        out = shell(*words)[1]
        assert [line.rpartition(" ")[2] for line in out.splitlines()] == [str(n) for n in range(40)]


def test_the_newest_tasks_where_no_id_is_given(either_shell: Shell):
    id = either_shell.ledger(two_attempts)
    code, out, _ = either_shell("logs", "--queue", "mail")
    assert code == OK
    assert [f"{id} shop.talk info third" in line for line in out.splitlines()] == [False, False, True]
    assert either_shell("logs", "--queue", "other")[1] == ""
    assert either_shell("logs", "--task", "shop.other")[1] == ""
    assert either_shell("logs", "--last", "0")[1] == ""


async def following_while(ledger: Ledger, follow: Callable[[Heard], object], act: object) -> Heard:
    heard = Heard()
    task = asyncio.ensure_future(follow(heard))  # type: ignore[arg-type]
    try:
        await act(heard)  # type: ignore[operator]
        await asyncio.wait_for(task, 60)
    finally:
        task.cancel()
    return heard


def test_a_task_is_followed_to_its_end(either_shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """Over two attempts; lines that are written after the end was reported are heard, too."""
    monkeypatch.setattr(following, "_LATE", timedelta(minutes=5))

    async def run(ledger: Ledger) -> Heard:
        id = await ledger.enqueue_one()

        async def act(heard: Heard) -> None:
            claim = await ledger.claim_one()
            await log(ledger, ref(claim), 0, "one")
            await eventually(lambda: heard.lines == ["one"])
            await ledger.finish("a", failed(claim))
            again = await ledger.claim_due()
            await log(ledger, ref(again), 0, "three")
            await eventually(lambda: heard.lines == ["one", "three"])
            await log(ledger, ref(claim), 1, "two, late")
            await eventually(lambda: heard.lines == ["one", "three", "two, late"])
            await ledger.finish("a", completed(again))
            await log(ledger, ref(again), 1, "four, after the end")
            await eventually(lambda: "four, after the end" in heard.lines)
            monkeypatch.setattr(following, "_LATE", timedelta(0))  # no more is waited for

        store = await ledger.another_store()
        return await following_while(ledger, lambda heard: following.follow_one(store, id, None, heard), act)

    heard = either_shell.ledger(run)
    assert heard.lines == ["one", "three", "two, late", "four, after the end"]
    assert heard.told[-1].endswith("is completed")


def test_whatever_runs_is_followed_without_an_id(either_shell: Shell, monkeypatch: pytest.MonkeyPatch):
    """A task that comes back does not repeat its lines."""
    monkeypatch.setattr(following, "_LATE", timedelta(minutes=5))

    async def run(ledger: Ledger) -> Heard:
        await ledger.register("a", lease=600.0)
        criteria = following.newest(queues=("default",), names=(), last=0)
        heard = Heard()
        store = await ledger.another_store()
        follower = asyncio.ensure_future(following.follow_many(store, criteria, heard, follow=True))
        try:
            await ledger.enqueue_one(queue="elsewhere")
            other = await ledger.claim_one(queue="elsewhere")
            await log(ledger, ref(other), 0, "not wanted")
            await ledger.enqueue_one()
            claim = await ledger.claim_one()
            await log(ledger, ref(claim), 0, "one")
            await eventually(lambda: heard.lines == ["one"])
            await ledger.finish("a", failed(claim))
            again = await ledger.claim_due()
            await log(ledger, ref(again), 0, "two")
            await ledger.finish("a", completed(again))
            await eventually(lambda: heard.lines == ["one", "two"])
            assert not follower.done()
        finally:
            follower.cancel()
            await asyncio.wait([follower])
        return heard

    assert either_shell.ledger(run).lines == ["one", "two"]


def test_a_store_that_goes_away_is_waited_for(shell: Shell):
    """Every read fails a few times, as it does when the server restarts; then the lines come."""

    async def run(ledger: Ledger) -> Heard:
        id = await two_attempts(ledger)
        store = await ledger.another_store()
        failures = iter(range(3))
        real = store.logs

        async def failing(*arguments: object, **options: object) -> list[LogLine]:
            if next(failures, None) is not None:
                raise StoreUnavailable("the server is away")
            return await real(*arguments, **options)  # type: ignore[arg-type]

        store.logs = failing  # type: ignore[method-assign]
        heard = Heard()
        await asyncio.wait_for(following.follow_one(store, id, None, heard), 60)
        return heard

    heard = shell.ledger(run)
    assert heard.lines == ["first [/x]", "second", "third"]
    assert heard.told[:2] == ["the server is away; waiting", "the store answers again"]
