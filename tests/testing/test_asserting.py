"""What was enqueued, asked and told."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from uuid import UUID

import pytest

from headrace.core.errors import ArgumentError
from headrace.testing import (
    FakeClock,
    all_enqueued,
    assert_enqueued,
    assert_not_enqueued,
    inline,
    override,
    refute_enqueued,
)


def test_by_task_name_arguments_and_options(shop: SimpleNamespace) -> None:
    app = shop.app
    with override(app):
        shop.add.enqueue(1, b=2)
        shop.add.using(queue="sums", priority=3, tags=["x", "y"], metadata={"tenant": "a", "n": 1}).enqueue(1, 3)
        assert [task.id for task in assert_enqueued(app, shop.add)] == [1, 2]
        assert_enqueued(app, "add", count=2)
        assert_enqueued(app, shop.add, args=(1,), count=2)
        assert_enqueued(app, shop.add, args=(1, 2), count=1)
        assert_enqueued(app, shop.add, kwargs={"b": 3}, count=1)
        assert_enqueued(app, shop.add, args=(1,), kwargs={"b": 3}, queue="sums", priority=3, count=1)
        assert_enqueued(app, tags=["y"], metadata={"tenant": "a"}, count=1)
        assert_enqueued(app, count=2)
        assert_enqueued(app, queue="sums")
        assert_not_enqueued(app, shop.greet)
        assert_not_enqueued(app, shop.add, kwargs={"b": 4})
        refute_enqueued(app, shop.add, queue="sums", kwargs={"b": 2})
        (found,) = all_enqueued(app, shop.add, queue="sums")
        assert (found.name, dict(found.arguments), found.priority, found.state) == (
            "add",
            {"a": 1, "b": 3},
            3,
            "pending",
        )
        assert all_enqueued(app, "nobody") == []


def test_what_has_run_counts_too_and_the_state_can_be_asked(shop: SimpleNamespace) -> None:
    with inline(shop.app):
        shop.add.enqueue(1, 2)
        shop.add.using(run_after=60).enqueue(3, 4)
        assert_enqueued(shop.app, shop.add, count=2)
        assert_enqueued(shop.app, shop.add, state="completed", kwargs={"a": 1}, count=1)
        assert_enqueued(shop.app, shop.add, state=["pending", "failed"], count=1)


async def test_from_async_code_too(shop: SimpleNamespace) -> None:
    async with override(shop.app):
        await shop.greet.aenqueue("you")
        assert_enqueued(shop.app, shop.greet, kwargs={"name": "you"})
        refute_enqueued(shop.app, shop.add)


def test_when_it_is_to_run(shop: SimpleNamespace) -> None:
    clock = FakeClock(instant=datetime(2031, 1, 1, tzinfo=UTC))
    with override(shop.app, clock=clock):
        shop.add.using(run_after=timedelta(hours=1)).enqueue(1, 2)
        assert_enqueued(shop.app, shop.add, run_after=timedelta(hours=1))
        assert_enqueued(shop.app, shop.add, run_at=datetime(2031, 1, 1, 1, tzinfo=UTC))
        assert_enqueued(shop.app, shop.add, run_after=timedelta(minutes=55), within=timedelta(minutes=5))
        with pytest.raises(AssertionError, match=r"it runs after 1:00:00, wanted 2:00:00"):
            assert_enqueued(shop.app, shop.add, run_after=timedelta(hours=2))
        with pytest.raises(AssertionError, match=r"it runs at 2031-01-01T01:00:00\+00:00, wanted 2031-01-02"):
            assert_enqueued(shop.app, shop.add, run_at=datetime(2031, 1, 2, tzinfo=UTC))


def test_values_are_compared_as_the_task_gets_them(shop: SimpleNamespace) -> None:
    token = UUID(int=7)

    @shop.app.task(name="typed")
    def typed(day: date, price: Decimal, token: UUID, anything: object = None) -> None: ...

    with override(shop.app):
        typed.enqueue(date(2030, 1, 1), Decimal("1.10"), token, {"deep": {"a": [1, 2], "b": 3}})
        assert_enqueued(shop.app, typed, kwargs={"day": date(2030, 1, 1), "price": Decimal("1.10"), "token": token})
        assert_enqueued(shop.app, typed, kwargs={"anything": {"deep": {"a": [1, 2]}}})
        assert_enqueued(shop.app, typed, kwargs={"anything": {"deep": {"a": (1, 2)}}})
        assert_not_enqueued(shop.app, typed, kwargs={"anything": {"deep": {"a": [1]}}})


def test_a_failure_tells_the_nearest_and_what_was_enqueued_instead(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.greet.enqueue("somebody")
        shop.add.enqueue(1, 2)
        shop.add.using(queue="sums").enqueue(1, 3)
        with pytest.raises(AssertionError) as raised:
            assert_enqueued(shop.app, shop.add, kwargs={"a": 1, "b": 4}, queue="sums")
        assert str(raised.value) == (
            "add(a=1, b=4, …) with queue='sums' was not enqueued\n"
            "nearest: add(a=1, b=3) in queue 'sums': pending\n"
            "    b is 3, wanted 4\n"
            "all that was enqueued:\n"
            "  greet(name='somebody') in queue 'mail': pending\n"
            "  add(a=1, b=2) in queue 'default': pending\n"
            "  add(a=1, b=3) in queue 'sums': pending"
        )
        with pytest.raises(
            AssertionError, match=r"was not enqueued 3 times, but 2 times\nthose that fit:\n  add\(a=1, b=2"
        ):
            assert_enqueued(shop.app, shop.add, count=3)
        with pytest.raises(AssertionError, match=r"no task 'flaky' was enqueued; what was:\n  greet"):
            assert_enqueued(shop.app, shop.flaky)
        with pytest.raises(AssertionError, match=r"add\(…\) was enqueued\nit was:\n  add\(a=1, b=2\)"):
            refute_enqueued(shop.app, shop.add)


def test_nothing_at_all(shop: SimpleNamespace) -> None:
    with override(shop.app):
        assert_not_enqueued(shop.app)
        with pytest.raises(AssertionError, match="nothing was enqueued: is the app pointed"):
            assert_enqueued(shop.app, shop.add)
        assert assert_enqueued(shop.app, shop.add, count=0) == []


def test_long_lists_are_cut_and_everything_is_found(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.add.enqueue_many([{"a": n, "b": 0} for n in range(1200)])
        assert_enqueued(shop.app, shop.add, count=1200)
        with pytest.raises(AssertionError, match=r"… and 1190 more"):
            assert_not_enqueued(shop.app, shop.add)


def test_a_mistake_of_the_test_is_not_an_absence(shop: SimpleNamespace) -> None:
    with override(shop.app):
        with pytest.raises(ArgumentError, match="no parameter 'c'; it has a, b"):
            assert_not_enqueued(shop.app, shop.add, kwargs={"c": 1})
        with pytest.raises(ArgumentError, match="takes 2 positional arguments"):
            assert_not_enqueued(shop.app, shop.add, args=(1, 2, 3))
        with pytest.raises(ArgumentError, match="args needs a task of this app"):
            assert_not_enqueued(shop.app, "of another app", args=(1,))


def test_tasks_that_the_app_does_not_define_and_commands_are_seen(shop: SimpleNamespace) -> None:
    with override(shop.app):
        shop.app.commands.submit(["echo", "x"])
        assert_enqueued(shop.app, "command", kwargs={"argv": ["echo", "x"]})
