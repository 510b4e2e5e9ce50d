"""An app whose tasks leave a trace, and databases that have the schema already."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import App, Retry, current
from headrace.testing import inline
from headrace.testing.inlining import InlineMode
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template

ONCE = Retry(max_attempts=1)


def make_works() -> SimpleNamespace:
    """Tasks, and `ran`: their names in the order in which they ran, with what they were given."""
    app = App("sqlite:///never-opened.db")
    ran: list[tuple[str, Any]] = []

    @app.task(name="add")
    async def add(a: int, b: int = 1) -> int:
        ran.append(("add", (a, b)))
        return a + b

    @app.task(name="total")
    def total(numbers: list[int]) -> int:
        ran.append(("total", numbers))
        return sum(numbers)

    @app.task(name="tell")
    async def tell(*words: Any) -> list[Any]:
        ran.append(("tell", list(words)))
        return list(words)

    @app.task(name="nothing")
    async def nothing() -> None:
        ran.append(("nothing", None))

    @app.task(name="fail", retry=ONCE)
    async def fail(*words: Any) -> int:
        ran.append(("fail", list(words)))
        if broken:
            raise ValueError("it was not to be")
        return 0

    @app.task(name="grow")
    async def grow(by: int) -> int:
        ran.append(("grow", by))
        first = await current.job.add(add.s(by, by), after=current)
        await current.job.add(add.s(first, 100))
        return by

    broken = [True]
    return SimpleNamespace(
        app=app, ran=ran, broken=broken, add=add, total=total, tell=tell, nothing=nothing, fail=fail, grow=grow
    )


@pytest.fixture
def works() -> SimpleNamespace:
    return make_works()


@pytest.fixture
def running(works: SimpleNamespace, sqlite_url: str) -> Iterator[InlineMode]:
    """What is enqueued runs at once."""
    with inline(works.app, url=sqlite_url) as mode:
        yield mode
