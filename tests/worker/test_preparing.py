"""What every attempt of a name has in common is read once, and read anew when the app says that it changed."""

import random
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from headrace import App
from headrace.client.middleware import Middleware
from headrace.core.outcome import Expired, Released
from headrace.core.task import ClaimedTask
from headrace.executors.base import Launch
from headrace.worker.execution import Pipeline
from tests.worker.test_buffer import held

app = App("sqlite:///:memory:")


@app.task(name="double", timeout=5)
async def double(n: int) -> int:
    return 2 * n


@app.task(name="in_a_child")
def in_a_child(n: "int") -> int:
    return n


def claim(**changes: Any) -> ClaimedTask:
    return held().claim._replace(name="double", arguments='{"n":1}', **changes)


class Counting:
    """An app that says how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    @property
    def revision(self) -> int:
        return app.revision

    def resolve(self, name: str, options: Any) -> Any:
        self.asked += 1
        return app.resolve(name, options)


def test_the_app_is_asked_once_per_name_and_options() -> None:
    source = Counting()
    pipeline = Pipeline(source, rng=random.Random(1))
    launches = [pipeline.prepare(claim()) for _ in range(3)]
    other = pipeline.prepare(claim(options='{"timeout":1.0}'))
    assert source.asked == 2
    assert [launch.entry for launch in launches if isinstance(launch, Launch)] == [double] * 3
    assert isinstance(other, Launch)
    assert other.limits.hard == 1.0


def test_middleware_that_comes_later_is_around_the_next_attempt() -> None:
    own = App("sqlite:///:memory:")
    own.task(double.function, name="double")
    pipeline = Pipeline(own, rng=random.Random(1))
    before = pipeline.prepare(claim())

    class Quiet(Middleware):
        @contextmanager
        def attempt(self, context: Any) -> Generator[None]:
            yield

    own.add_middleware(Quiet())
    after = pipeline.prepare(claim())
    assert isinstance(before, Launch)
    assert isinstance(after, Launch)
    assert before.entry is own.get_task("double")
    assert after.entry is not before.entry, "what was read before the middleware came is not used any more"


@pytest.mark.parametrize("known", [False, True])
def test_a_claim_that_is_too_old_does_not_run_whether_its_task_is_known_or_not_yet(known: bool) -> None:
    pipeline = Pipeline(app, rng=random.Random(1))
    if known:
        assert isinstance(pipeline.prepare(claim()), Launch)
    assert isinstance(pipeline.prepare(claim(expired=True)), Expired)


def test_a_name_that_nobody_knows_is_asked_for_each_time() -> None:
    """It may be defined by then."""
    own = App("sqlite:///:memory:")
    pipeline = Pipeline(own, rng=random.Random(1))
    assert isinstance(pipeline.prepare(claim()), Released)
    own.task(double.function, name="double")
    assert isinstance(pipeline.prepare(claim()), Launch)


_WARMED = """
import sys
from headrace import App
from headrace.worker.application import warm

app = App("sqlite:///:memory:")

{kind}def one(thing: "Nowhere") -> None: ...

one = app.task(one, name="one")

warm(app)
print("pydantic._internal._generate_schema" in sys.modules, one.arguments._compiled)
"""


@pytest.mark.parametrize(("kind", "warmed"), [("async ", True), ("", False)])
def test_validators_are_imported_before_the_first_task_without_reading_its_annotations(kind: str, warmed: bool) -> None:
    """For a task that runs in the worker's own process; children import for themselves."""
    program = [sys.executable, "-c", _WARMED.format(kind=kind)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(warmed), "None"]
