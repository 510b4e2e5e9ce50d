"""Schedules in code: checked where they are written, kept without a word to the store."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import headrace
from headrace import App, Cron, Every, Once, Retry, Schedule
from headrace.core.errors import ArgumentError, DefinitionError, OptionError
from headrace.core.limits import Gate
from headrace.scheduling.cadence import cadence_from_json


@pytest.fixture
def app(tmp_path: Path) -> App:
    """Nothing may be written: the file must not even be made."""
    made = App(f"sqlite:///{tmp_path / 'never.db'}")
    yield made  # type: ignore[misc]
    assert not list(tmp_path.glob("never.db*")), "a declaration does no I/O"


def welcome(user_id: int, greeting: str = "hello") -> str:
    return f"{greeting} {user_id}"


def stored(app: App) -> dict[str, Any]:
    return {schedule.name: schedule for schedule in app.declared_schedules("tasks:app")}


def test_it_stands_above_the_task_and_gives_it_back(app: App):
    task = app.task(name="welcome", queue="mail", retry=Retry(max_attempts=2))(welcome)
    same = app.schedule(
        "*/5 * * * *",
        tz="Europe/Berlin",
        catch_up="skip",
        grace=timedelta(minutes=2),
        overlap="replace",
        jitter=10,
        paused=True,
        arguments={"user_id": 7},
    )(task)
    assert same is task
    found = stored(app)["welcome"]
    assert cadence_from_json(found.cadence) == Cron("*/5 * * * *", "Europe/Berlin")
    assert (found.task.name, found.task.arguments, found.task.queue) == ("welcome", '{"user_id":7}', "mail")
    assert found.task.max_attempts == 2
    assert (found.catch_up, found.grace, found.overlap, found.jitter) == ("skip", 120.0, "replace", 10.0)
    assert (found.paused, found.declared_by) == (True, "tasks:app")


def test_several_may_be_stacked_under_names(app: App):
    task = app.task(name="welcome")(welcome)
    app.schedule(60, name="often", arguments={"user_id": 1})(app.schedule("@daily", arguments={"user_id": 2})(task))
    assert sorted(stored(app)) == ["often", "welcome"]


@pytest.mark.parametrize(
    ("when", "cadence"),
    [
        ("0 9 * * *", Cron("0 9 * * *")),
        ("@daily", Cron("0 0 * * *")),
        (90, Every(90)),
        (2.5, Every(2.5)),
        (timedelta(hours=2), Every(7200)),
        (datetime(2031, 1, 1, tzinfo=UTC), Once(datetime(2031, 1, 1, tzinfo=UTC))),
        (Every(60, datetime(2030, 1, 1, tzinfo=UTC)), Every(60, datetime(2030, 1, 1, tzinfo=UTC))),
    ],
)
def test_when_is_said_in_many_ways(app: App, when: Any, cadence: Any):
    assert Schedule(when).cadence == cadence
    app.task(name="welcome")(welcome).schedule(when, 7)
    assert cadence_from_json(stored(app)["welcome"].cadence) == cadence


def test_a_call_declares_with_arguments_and_keeps_the_options(app: App):
    task = app.task(name="welcome")(welcome)
    task.using(queue="mail", priority=3).schedule(Schedule("0 9 * * *", name="morning"), 7, greeting="hi")
    found = stored(app)["morning"].task
    assert (found.queue, found.priority, found.arguments) == ("mail", 3, '{"greeting":"hi","user_id":7}')


def test_queue_as_overlap_puts_its_runs_in_order_unless_the_task_does(app: App):
    task = app.task(name="welcome")(welcome)
    task.schedule(Schedule(60, name="a", overlap="queue"), 1)
    task.using(order_key="mine").schedule(Schedule(60, name="b", overlap="queue"), 1)
    task.schedule(Schedule(60, name="c"), 1)
    gates = {name: schedule.task.gates for name, schedule in stored(app).items()}
    assert gates == {
        "a": (Gate(kind="order", key="schedule:a"),),
        "b": (Gate(kind="order", key="mine"),),
        "c": (),
    }


def test_an_instant_that_is_over_is_no_mistake_of_old_code(app: App):
    app.task(name="welcome")(welcome).schedule(datetime(2001, 1, 1, tzinfo=UTC), 7)
    assert "welcome" in stored(app)


def test_an_annotation_that_is_defined_later_is_looked_at_later(app: App, monkeypatch: pytest.MonkeyPatch):
    def late(thing: "Defined") -> None: ...  # noqa: F821

    task = app.task(name="late")(late)
    app.schedule(60, arguments={"thing": 3})(task)
    monkeypatch.setitem(late.__globals__, "Defined", int)
    assert stored(app)["late"].task.arguments == '{"thing":3}'
    monkeypatch.setitem(late.__globals__, "Defined", str)
    other = app.task(name="other")(late)
    with pytest.raises(ArgumentError, match="'thing'"):
        app.schedule(60, arguments={"thing": 3})(other)


REFUSED = {
    "four fields": (lambda task: task.schedule("* * * *", 1), OptionError, "exactly 5"),
    "six fields": (lambda task: task.schedule("0 * * * * *", 1), OptionError, "has 6 fields"),
    "a bad field": (lambda task: task.schedule("61 * * * *", 1), OptionError, "minute field"),
    "an unknown zone": (
        lambda task: task.schedule(Schedule("* * * * *", tz="Berlin"), 1), OptionError, "Europe/Berlin"),
    "a zone of an interval": (lambda task: Schedule(60, tz="UTC"), OptionError, "intervals have no zone"),
    "a zone of a cadence": (lambda task: Schedule(Cron("* * * * *"), tz="UTC"), OptionError, "has its own"),
    "a zone of an instant": (
        lambda task: Schedule(datetime(2030, 1, 1, tzinfo=UTC), tz="UTC"), OptionError, "has its own"),
    "a naive instant": (lambda task: task.schedule(datetime(2030, 1, 1), 1), OptionError, "time zone"),  # noqa: DTZ001
    "too often": (lambda task: task.schedule(0.5, 1), OptionError, "one second"),
    "no cadence": (lambda task: task.schedule(None, 1), OptionError, "five fields"),
    "a flag": (lambda task: task.schedule(True, 1), OptionError, "five fields"),
    "an argument too many": (lambda task: task.schedule(60, 1, colour="red"), ArgumentError, "'colour'"),
    "an argument too few": (lambda task: task.schedule(60), ArgumentError, "'user_id' is missing"),
    "a wrong argument": (lambda task: task.schedule(60, "seven"), ArgumentError, "'user_id'"),
    "an instant for one task": (
        lambda task: task.using(run_after=datetime(2030, 1, 1, tzinfo=UTC)).schedule(60, 1), OptionError, "run_after"),
    "a job": (lambda task: task.using(job=5).schedule(60, 1), OptionError, "job=5"),
    "a connection": (lambda task: task.using(connection=object()).schedule(60, 1), OptionError, "connection"),
    "a key that lasts": (lambda task: task.using(idempotency_key="k").schedule(60, 1), OptionError, "idempotency_key"),
    "a name of nothing": (lambda task: Schedule(60, name=""), OptionError, "name of a schedule"),
    "a name with a dash in front": (lambda task: Schedule(60, name="-x"), OptionError, "name of a schedule"),
    "a name with a line break": (lambda task: Schedule(60, name="a\nb"), OptionError, "name of a schedule"),
    "an unknown policy": (lambda task: Schedule(60, catch_up="none"), OptionError, "catch_up must be one of"),
    "policies at odds": (lambda task: Schedule(60, catch_up="all", overlap="skip"), OptionError, "drops all"),
    "no flag": (lambda task: Schedule(60, paused="yes"), OptionError, "paused"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_where_it_is_written(app: App, case: str):
    act, error, said = REFUSED[case]
    task = app.task(name="welcome")(welcome)
    with pytest.raises(error, match=said):
        act(task)
    assert stored(app) == {}


def test_a_name_is_given_once(app: App):
    task = app.task(name="welcome")(welcome)
    task.schedule(60, 1)
    with pytest.raises(DefinitionError, match=r"welcome is declared already.*name="):
        task.schedule(90, 1)
    with pytest.raises(DefinitionError, match="declared already"):
        app.schedule(90, name="welcome", arguments={"user_id": 1})(task)


def test_the_order_of_the_decorators_is_said(app: App):
    with pytest.raises(DefinitionError, match=r"stands above @app\.task"):
        app.schedule(60)(welcome)  # type: ignore[type-var]


def test_a_task_of_another_app_is_refused(app: App, tmp_path: Path):
    other = App(f"sqlite:///{tmp_path / 'never.db'}")
    task = other.task(name="welcome")(welcome)
    with pytest.raises(DefinitionError, match="another app"):
        app.schedule(60, arguments={"user_id": 1})(task)


def test_options_go_into_the_schedule_that_was_given(app: App):
    task = app.task(name="welcome")(welcome)
    with pytest.raises(OptionError, match=r"jitter= belongs into the Schedule"):
        app.schedule(Schedule(60), jitter=3)(task)
    app.schedule(Schedule(60, name="x"), arguments={"user_id": 1})(task)
    assert sorted(stored(app)) == ["x"]


def test_importing_headrace_and_defining_tasks_imports_no_calendar():
    import subprocess
    import sys

    code = (
        "import sys\nfrom headrace import App\napp = App('sqlite:///x.db')\n"
        "@app.task(name='x')\ndef x() -> None: ...\nprint('cronsim' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
    assert headrace.Schedule is Schedule
