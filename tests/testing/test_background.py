"""A real worker beside a test."""

import threading
import time
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import App
from headrace.testing import FakeClock, NotOverridden, StillWaiting, override
from headrace.testing.background import BackgroundWorker


def test_it_runs_tasks_of_every_kind_and_stops_when_the_block_ends(shop: SimpleNamespace) -> None:
    with override(shop.app):
        with BackgroundWorker(shop.app) as worker:
            assert shop.add.enqueue(1, 2).result(timeout=60) == 3
            assert shop.greet.enqueue("you").result(timeout=60) == "hello you"
            assert shop.parent.enqueue(4).result(timeout=60) == 15
            assert shop.app.commands.submit(["echo", "x"]).result(timeout=60)["stdout"] == "x\n"
            shop.add.enqueue_many([{"a": n, "b": 0} for n in range(20)])
            worker.wait_until_idle(60)
            assert len(shop.app.tasks.list(states=["completed"])) == 26
            (record,) = shop.app.workers.list()
            assert record.id == worker.id
            assert record.state != "stopped"
        assert shop.app.workers.list()[0].state == "stopped"
        assert shop.mailboxes[0].closed
        assert shop.app.check() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "headrace-testing-worker"]


def test_what_runs_at_the_end_is_finished(shop: SimpleNamespace) -> None:
    entered = threading.Event()

    @shop.app.task(name="long")
    def long() -> str:
        entered.set()
        time.sleep(0.3)
        return "whole"

    with override(shop.app):
        with BackgroundWorker(shop.app):
            handle = long.enqueue()
            assert entered.wait(60)
        assert handle.result() == "whole"


def test_it_follows_the_clock_of_the_test(shop: SimpleNamespace) -> None:
    clock = FakeClock()
    with override(shop.app, clock=clock), BackgroundWorker(shop.app) as worker:
        handle = shop.add.using(run_after=timedelta(days=3)).enqueue(1, 2)
        worker.wait_until_idle(60)
        assert handle.state() == "pending"
        clock.advance(timedelta(days=3))
        assert handle.result(timeout=60) == 3


def test_one_that_cannot_start_says_why(shop: SimpleNamespace) -> None:
    with (
        override(shop.app, url="sqlite:////nowhere/at_all.db"),
        pytest.raises(Exception, match="nowhere"),
        BackgroundWorker(shop.app),
    ):
        raise AssertionError


def test_it_does_not_work_on_the_database_of_the_app_itself(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/production.db")
    advice = r"/production\.db; use override\(app\) or the fixture headrace_store"
    with pytest.raises(NotOverridden, match=advice), BackgroundWorker(app):
        raise AssertionError
    assert not list(tmp_path.iterdir())


def test_waiting_for_it_ends(shop: SimpleNamespace) -> None:
    release = threading.Event()

    @shop.app.task(name="stuck")
    def stuck() -> None:
        release.wait(60)

    with override(shop.app), BackgroundWorker(shop.app) as worker:
        stuck.enqueue()
        try:
            with pytest.raises(StillWaiting, match=r"after 0\.5 s: task 1 \(stuck\) is"):
                worker.wait_until_idle(0.5)
        finally:
            release.set()
