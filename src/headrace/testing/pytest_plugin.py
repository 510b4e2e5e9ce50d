"""The pytest plugin: fixtures for tests of an application that uses headrace.

pytest loads it in every project that has headrace installed. A test that takes none of its fixtures, and has no mark of
it, does not notice: nothing is imported and nothing runs.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from headrace.testing.application import TestedApp
    from headrace.testing.background import BackgroundWorker
    from headrace.testing.clock import FakeClock
    from headrace.testing.databases import TemporaryDatabase
    from headrace.testing.inlining import InlineMode
    from headrace.testing.overriding import Override

_MARK = (
    "headrace(inline=False, now=None, with_retries=True, raise_on_failure=False): the test has the app of the fixture "
    "headrace_app on a database of its own; inline=True runs what it enqueues at once, now= is where its clock stands"
)
_OPTIONS = {"inline", "now", "with_retries", "raise_on_failure"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("headrace_app", "the app under test, as module:app, for the fixture headrace_app", default="")
    parser.addini("headrace_database", "a PostgreSQL URL: tests get a schema of their own in it", default="")
    group = parser.getgroup("headrace")
    group.addoption(
        "--headrace-database",
        metavar="URL",
        default="",
        help="run the tests of headrace tasks on this PostgreSQL database, each in a schema of its own, "
        "instead of on temporary SQLite files",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARK)


def pytest_itemcollected(item: pytest.Item) -> None:
    """A mark asks for the fixtures that it needs, and so does the clock: it is the clock of a database."""
    names: list[str] | None = getattr(item, "fixturenames", None)
    if names is None:
        return
    mark = item.get_closest_marker("headrace")
    if mark is not None:
        _check_options(item, mark)
        # In front, also of where the test names them itself: its other fixtures may enqueue.
        names[:0] = ["headrace_store", "headrace_inline"] if mark.kwargs.get("inline") else ["headrace_store"]
    elif "headrace_clock" in names and "headrace_store" not in names:
        # Else the test would be on the app's own database, and what it enqueues there would be run by real workers.
        names.insert(0, "headrace_store")


def _check_options(item: pytest.Item, mark: pytest.Mark) -> None:
    unknown = sorted(set(mark.kwargs) - _OPTIONS)
    if unknown or mark.args:
        raise pytest.UsageError(
            f"{item.nodeid}: pytest.mark.headrace has no {(*unknown, *mark.args)[0]!r}; "
            f"it has {', '.join(sorted(_OPTIONS))}"
        )


def _marked(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The options of the nearest mark of the test."""
    mark = request.node.get_closest_marker("headrace")
    return {} if mark is None else dict(mark.kwargs)


@pytest.fixture
def headrace_app(pytestconfig: pytest.Config) -> "TestedApp":
    """The app under test: override this fixture to return yours, or name it in pytest's settings (headrace_app)."""
    target: str = pytestconfig.getini("headrace_app")
    if not target:
        raise pytest.UsageError(
            "which app is tested? Write in conftest.py: @pytest.fixture def headrace_app(): return app -- or set "
            'headrace_app = "module:app" in the settings of pytest'
        )
    from headrace.worker.application import load

    return load(target)  # pyright: ignore[reportReturnType] -- an App, whatever a worker needs of it


@pytest.fixture
def headrace_clock(request: pytest.FixtureRequest) -> "FakeClock":
    """A clock that stands at the second in which the test began (or at `now` of the mark) until the test moves it. A
    test that takes it has it as the clock of its database: `headrace_store` comes with it."""
    if "headrace_store" not in request.fixturenames:  # asked for with getfixturevalue: too late to add it
        raise pytest.UsageError(
            f"{request.node.nodeid} asks for headrace_clock while it runs, and would be on the app's own database; "
            "take the fixture headrace_store, too"
        )
    from headrace.testing.clock import FakeClock

    return FakeClock(instant=_marked(request).get("now") or datetime.now(UTC).replace(microsecond=0))


@pytest.fixture
def headrace_url() -> str | None:
    """Where tests have their ledger, instead of in a database of headrace's own: override this fixture to return the
    URL of the database that your own transactions are on. Empty it between tests, and have the schema there
    (an SQLite file gets it by itself)."""
    return None


@pytest.fixture(scope="session")
def _headrace_schemas(pytestconfig: pytest.Config) -> "Generator[Callable[[str], TemporaryDatabase | None]]":
    """For each name of an app a schema of this test run, made once and emptied for every test: a migration takes
    seconds. None where tests run on SQLite."""
    server: str = pytestconfig.getoption("--headrace-database") or pytestconfig.getini("headrace_database")
    with ExitStack() as stack:
        made: dict[str, TemporaryDatabase] = {}

        def schema(name: str) -> "TemporaryDatabase | None":
            if not server:
                return None
            from headrace.store import migrations
            from headrace.testing.databases import temporary_database

            if name in made:
                migrations.empty(server, name=made[name].name)
            else:
                made[name] = stack.enter_context(temporary_database(server, name=name))
            return made[name]

        yield schema


@pytest.fixture
def headrace_store(
    request: pytest.FixtureRequest,
    headrace_app: "TestedApp",
    headrace_url: str | None,
    _headrace_schemas: "Callable[[str], TemporaryDatabase | None]",
) -> "Generator[Override]":
    """The app on an empty database of its own, for this test alone; afterwards it is where it was.

    What tests may use of it: `url`, `name`, `clock`.
    """
    from headrace.testing.overriding import override

    clock = None
    if "headrace_clock" in request.fixturenames or _marked(request).get("now") is not None:
        clock = request.getfixturevalue("headrace_clock")
    schema = _headrace_schemas(headrace_app.settings.name) if headrace_url is None else None
    url, name = (headrace_url, None) if schema is None else schema
    with override(headrace_app, url=url, name=name, clock=clock) as pointed:
        yield pointed


@pytest.fixture
def headrace_inline(
    request: pytest.FixtureRequest, headrace_app: "TestedApp", headrace_store: "Override"
) -> "Generator[InlineMode]":
    """What the test enqueues has run when the enqueue returns: see `headrace.testing.inline`."""
    from headrace.testing.inlining import inline

    asked = {name: value for name, value in _marked(request).items() if name in ("with_retries", "raise_on_failure")}
    with inline(headrace_app, **asked) as mode:
        yield mode


@pytest.fixture
def headrace_worker(headrace_app: "TestedApp", headrace_store: "Override") -> "Generator[BackgroundWorker]":
    """A real worker on a thread of this process, which takes every queue of the test's database. At the end of the
    test it finishes what runs and stops."""
    from headrace.testing.background import BackgroundWorker

    with BackgroundWorker(headrace_app) as worker:
        yield worker
