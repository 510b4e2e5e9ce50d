"""What can be refused where a task is defined is refused there."""

import functools
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from headrace import App, Debounce, Limit, Queue, Rate, Retry
from headrace.core.errors import OptionError, UnknownTask
from headrace.core.limits import Gate


@pytest.fixture
def app() -> App:
    return App("sqlite://")


def module_level(a: int) -> int:
    return a + 1


async def async_module_level(a: int) -> int:
    return a + 1


def test_the_name_is_module_and_qualname(app: App):
    task = app.task(module_level)
    assert task.name == f"{__name__}.module_level"
    assert app.get_task(task.name) is task
    assert task.__doc__ is None
    assert task.__name__ == "module_level"


def test_a_program_has_the_name_of_its_file(tmp_path):
    import subprocess
    import sys

    program = tmp_path / "shop.py"
    program.write_text(
        "from headrace import App\napp = App('sqlite://')\n@app.task\ndef sell(): ...\nprint(sell.name)\n"
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "shop.sell"
    done = subprocess.run([sys.executable, "-m", "shop"], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout.strip() == "shop.sell"


def test_calling_a_task_runs_the_function_without_the_store(app: App):
    assert app.task(module_level)(2) == 3


async def test_calling_an_async_task_gives_its_coroutine(app: App):
    assert await app.task(async_module_level)(2) == 3


def test_aliases_find_the_task_and_are_not_listed(app: App):
    task = app.task(name="new.name", aliases=["old.name"])(module_level)
    assert app.get_task("old.name") is task
    assert list(app.registry) == ["new.name"]


def test_unknown_task(app: App):
    app.task(name="known")(module_level)
    with pytest.raises(UnknownTask, match="it has known"):
        app.resolve("missing", {})


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize("function", [generator, async_generator])
def test_generators_are_refused(app: App, function):
    with pytest.raises(OptionError, match="generator"):
        app.task(function)


def test_lambdas_local_functions_and_partials_are_refused(app: App):
    with pytest.raises(OptionError, match="lambda"):
        app.task(lambda: None)
    with pytest.raises(OptionError, match="lambda"):
        app.task(name="named")(lambda: None)

    def local() -> None: ...

    with pytest.raises(OptionError, match="inside a function"):
        app.task(local)
    assert app.task(name="local")(local).name == "local"
    with pytest.raises(OptionError, match="name of its own"):
        app.task(functools.partial(module_level, 1))


def test_a_name_can_be_taken_once(app: App):
    app.task(name="one", aliases=["two"])(module_level)
    for options in ({"name": "one"}, {"name": "two"}, {"name": "three", "aliases": ["one"]}):
        with pytest.raises(OptionError, match="defined already"):
            app.task(**options)(module_level)
    assert set(app.registry) == {"one"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"soft_timeout": 10, "timeout": 10}, "must be less than timeout"),
        ({"soft_timeout": 5000}, "must be less than the hard limit"),
        ({"timeout": 0}, "longer than zero"),
        ({"timeout": -1}, "negative"),
        ({"timeout": True}, "timedelta or a number"),
        ({"unique": "a", "debounce": Debounce("a", 1)}, "contradict"),
        ({"run_after": 5, "debounce": Debounce("a", 1)}, "contradict"),
        ({"executor": "coroutine"}, "async def"),
        ({"executor": "moon"}, "executor must be one of"),
        ({"queue": "a", "queue_name": "b"}, "one option"),
        ({"queue": ""}, "queue must be a name"),
        ({"queue": "a,b"}, "queue must be a name"),
        ({"priority": "high"}, "whole number"),
        ({"priority": True}, "whole number"),
        ({"priority": 2**40}, "32 bits"),
        ({"retry": 3}, "Retry"),
        ({"limit": 3}, "Limit"),
        ({"limit": ["a"]}, "Limit"),
        ({"tags": "red"}, "list of texts"),
        ({"metadata": {"when": object()}}, "metadata"),
        ({"run_after": datetime(2030, 1, 1)}, "naive"),  # noqa: DTZ001
        ({"on_conflict": "ignore"}, "on_conflict"),
        ({"unique": 7}, "unique must be"),
        ({"idempotency_key": True}, "idempotency_key must be"),
        ({"critical": "yes"}, "critical"),
        ({"colour": "red"}, "no option 'colour'"),
        ({"connection": object()}, "one call"),
    ],
)
def test_options_that_cannot_be_are_refused_and_the_task_is_named(app: App, options, said):
    with pytest.raises(OptionError) as refused:
        app.task(name="mine", **options)(module_level)
    assert said in str(refused.value)
    assert "mine" in str(refused.value)
    assert app.registry == {}


def test_an_async_def_does_not_run_in_a_thread(app: App):
    with pytest.raises(OptionError, match="thread is for a def"):
        app.task(executor="thread")(async_module_level)
    assert app.task(executor="child", name="x")(async_module_level).prepare(1).pool == "child"


def test_defaults_of_a_bare_task(app: App):
    row = app.task(module_level).prepare(1)
    assert (row.queue, row.priority, row.pool, row.max_attempts, row.max_age) == ("default", 0, "child", 4, None)
    assert row.options == '{"soft_timeout":3480.0,"timeout":3600.0}'
    assert app.task(async_module_level).prepare(1).pool == "coroutine"


def test_a_task_that_sets_only_its_hard_limit_has_no_soft_one(app: App):
    assert app.task(timeout=60)(module_level).prepare(1).options == '{"soft_timeout":null,"timeout":60.0}'
    both = app.task(name="both", timeout=60, soft_timeout=50)(module_level)
    assert both.prepare(1).options == '{"soft_timeout":50.0,"timeout":60.0}'
    none = app.task(name="none", timeout=None)(module_level)
    assert none.prepare(1).options == '{"soft_timeout":null,"timeout":null}'


def test_using_is_a_copy(app: App):
    task = app.task(name="t", queue="a", metadata={"x": 1}, tags=["red"])(module_level)
    other = task.using(queue_name="b", priority=3, run_after=timedelta(minutes=5), cpus=2, result_ttl=60)
    row = other.prepare(1)
    assert (row.queue, row.priority, row.delay) == ("b", 3, 300)
    assert '"result_ttl":60.0' in row.options
    assert '"cpus":2' in row.options
    assert '"metadata":{"x":1}' in row.options
    assert task.prepare(1).queue == "a"
    assert task.prepare(1).delay == 0
    with pytest.raises(OptionError, match="task t: soft_timeout"):
        task.using(soft_timeout=10, timeout=5)


def test_run_after_takes_an_instant(app: App):
    task = app.task(module_level)
    instant = datetime(2031, 5, 5, tzinfo=UTC)
    assert task.using(run_after=instant).prepare(1).run_at == instant
    assert task.using(run_after=instant).using(run_after=None).prepare(1).run_at is None


def test_a_classifying_function_stays_with_the_definition(app: App):
    policy = Retry(classify=lambda error: "permanent")
    task = app.task(name="t", retry=policy)(module_level)
    assert task.retry is policy
    assert "retry" not in task.prepare(1).options
    with pytest.raises(OptionError, match="classify"):
        app.task(name="u")(module_level).using(retry=policy)
    with pytest.raises(OptionError, match="classify"):
        Queue(retry=policy)


def test_gates_come_from_the_task_and_its_queue():
    app = App("sqlite://", queues={"mail": Queue(limit=Limit(3), rate=Rate(10, per=60))})
    task = app.task(name="t", queue="mail", limit=Limit(1, key="user-{a}"), order_key="o-{a}")(module_level)
    assert set(task.prepare(7).gates) == {
        Gate(kind="limit", key="queue:mail", n=3),
        Gate(kind="limit", key="user-7", n=1),
        Gate(kind="order", key="o-7"),
        Gate(kind="rate", key="queue:mail", n=10, per=60.0),
    }
    assert app.task(name="u", queue="mail")(module_level).prepare(1).gates == (
        Gate(kind="limit", key="queue:mail", n=3),
        Gate(kind="rate", key="queue:mail", n=10, per=60.0),
    )
    assert task.using(queue="default", limit=None, order_key=None).prepare(1).gates == ()
    with pytest.raises(OptionError, match="does not fit the arguments"):
        task.using(order_key="{wrong}").prepare(1)


def test_queue_names_are_those_of_tasks_and_settings():
    app = App("sqlite://", queues={"mail": Queue()})
    app.task(name="a", queue="one")(module_level)
    app.task(name="b")(module_level)
    assert set(app.queue_names()) == {"mail", "one", "default"}
