"""The pytest plugin, as a user has it: a project of its own, a real run of pytest, the entry point of the package."""

import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

from headrace import __version__
from headrace.store import migrations

pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).resolve().parents[2]

TASKS = """
from headrace import App, Retry, current

app = App("sqlite:////nowhere/production.db")
seen = []

@app.task
def add(a: int, b: int) -> int:
    seen.append((a, b))
    return a + b

@app.task(retry=Retry(max_attempts=3, base=60, jitter=0))
async def flaky() -> int:
    if current.attempt < 3:
        raise OSError("not yet")
    return current.attempt
"""

CONFTEST = """
import pytest
from tasks import app

@pytest.fixture
def headrace_app():
    return app
"""

SUITE = """
import datetime
import pytest
from headrace.testing import FakeClock, assert_enqueued, drain
from tasks import add, app, flaky

def test_a_store(headrace_store):
    assert app.url == headrace_store.url
    add.enqueue(1, 2)
    assert_enqueued(app, add, count=1)
    assert drain(app).completed == 1

def test_another_is_empty(headrace_store):
    assert app.tasks.list() == []

def test_inline(headrace_inline):
    assert add.enqueue(1, 2).result() == 3
    assert flaky.enqueue().result() == 3

def test_a_clock(headrace_inline, headrace_clock):
    handle = add.using(run_after=3600).enqueue(1, 2)
    assert handle.state() == "pending"
    headrace_clock.advance(datetime.timedelta(hours=1))
    assert handle.result() == 3
    assert headrace_inline.clock is headrace_clock

def test_a_clock_alone(headrace_clock):
    assert isinstance(headrace_clock, FakeClock)
    assert not app.url.endswith("/nowhere/production.db")
    assert app.engine.clock is headrace_clock
    add.using(run_after=3600).enqueue(1, 2)
    headrace_clock.advance(3600)
    assert drain(app).completed == 1

@pytest.mark.parametrize("n", [1, 2])
@pytest.mark.usefixtures("headrace_clock")
def test_a_clock_that_only_a_mark_names(n):
    assert add.enqueue(1, n).id == 1

@pytest.fixture
def tomorrow(headrace_clock):
    headrace_clock.advance(datetime.timedelta(days=1))

def test_a_clock_that_another_fixture_takes(tomorrow):
    assert add.enqueue(1, 2).id == 1

def test_a_worker(headrace_worker):
    assert add.enqueue(1, 2).result(timeout=60) == 3
    headrace_worker.wait_until_idle(60)

@pytest.mark.headrace
def test_marked():
    add.enqueue(1, 2)
    assert_enqueued(app, add)

@pytest.mark.headrace(inline=True, with_retries=False)
def test_marked_inline():
    assert add.enqueue(1, 2).result() == 3
    assert flaky.enqueue().state() == "pending"

@pytest.mark.headrace(inline=True, now=datetime.datetime(2040, 5, 1, tzinfo=datetime.UTC))
def test_marked_with_an_instant():
    assert add.enqueue(1, 2).record().finished_at == datetime.datetime(2040, 5, 1, tzinfo=datetime.UTC)

@pytest.mark.headrace(inline=True, raise_on_failure=True)
class TestMarkedClass:
    def test_in_it(self):
        assert add.enqueue(2, 2).result() == 4

def test_nothing_asked():
    assert app.url.endswith("/nowhere/production.db")
    assert app.engine.inline is None
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with an app, and headrace installed as its pyproject.toml says."""
    installed = tmp_path / "site" / f"headrace-{__version__}.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: headrace\nVersion: {__version__}\n")
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in groups.items()]
    (installed / "entry_points.txt").write_text("".join(lines))
    # By this list pytest knows whose assertions to rewrite: those of every module of the package.
    modules = [path.relative_to(ROOT / "src") for path in (ROOT / "src" / "headrace").rglob("*.py")]
    (installed / "RECORD").write_text("".join(f"{module},,\n" for module in modules))
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "tasks.py").write_text(TASKS)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers -p no:cacheprovider\n")
    return folder


def run(folder: Path, *arguments: str, suite: str | None = None, status: int = 0, **settings: str) -> str:
    if suite is not None:
        (folder / "test_app.py").write_text(textwrap.dedent(suite))
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(folder),
        "PYTHONPATH": f"{folder.parent / 'site'}:{ROOT / 'src'}:{folder}",
        **settings,
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-W", "error", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_every_fixture_and_mark_in_a_users_project(project: Path) -> None:
    assert "14 passed" in run(project, suite=SUITE)
    assert not list(Path("/nowhere").glob("*")), "the production database was touched"


def test_the_same_in_two_processes_at_once(project: Path) -> None:
    assert "14 passed" in run(project, "-n", "2", suite=SUITE)


def test_on_postgres_tests_have_a_schema_that_is_emptied_for_each_and_gone_at_the_end(
    project: Path, postgres_url: str
) -> None:
    (project / "pytest.ini").write_text(f"[pytest]\nheadrace_database = {postgres_url}\n")
    suite = """
        import pytest
        from headrace.store import migrations
        from tasks import add, app

        names = set()

        @pytest.mark.parametrize("n", range(3))
        def test_where(headrace_inline, headrace_clock, n):
            names.add(app.name)
            assert app.url.startswith("postgres")
            assert app.tasks.list() == []
            handle = add.using(run_after=60).enqueue(1, 2)
            headrace_clock.advance(60)
            assert handle.result() == 3
            assert handle.record().finished_at == headrace_clock.now()
            print(f"schema={app.name}=")

        def test_with_a_worker(headrace_worker):
            assert app.tasks.list() == []
            assert add.enqueue(1, 2).result(timeout=60) == 3
            assert len(names) == 1
    """
    out = run(project, "-p", "no:cacheprovider", "-s", suite=suite)
    assert "4 passed" in out
    (name,) = set(re.findall("schema=(\\w+)=", out))
    assert name.startswith("headrace_")
    assert migrations.current(postgres_url, name=name) is None


def test_async_tests_of_whatever_plugin_and_an_app_named_in_the_settings(project: Path) -> None:
    """The fixtures are plain, so whoever runs the coroutine of a test may run it."""
    (project / "pytest.ini").write_text("[pytest]\nheadrace_app = tasks:app\n")
    (project / "conftest.py").write_text(
        textwrap.dedent("""
        import asyncio, inspect, pytest

        @pytest.hookimpl(tryfirst=True)
        def pytest_pyfunc_call(pyfuncitem):
            if inspect.iscoroutinefunction(pyfuncitem.obj):
                names = inspect.signature(pyfuncitem.obj).parameters
                asyncio.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
                return True
        """)
    )
    suite = """
        from headrace.testing import adrain, assert_enqueued
        from tasks import add, app, flaky

        async def test_inline(headrace_inline):
            assert await (await flaky.aenqueue()) == 3
            assert await (await add.aenqueue(1, 2)) == 3

        async def test_drained(headrace_store):
            await add.aenqueue(1, 2)
            assert_enqueued(app, add)
            assert (await adrain(app)).completed == 1
    """
    assert "2 passed" in run(project, "-p", "no:cacheprovider", suite=suite)


def test_no_app_and_a_wrong_mark_are_told_in_one_sentence(project: Path) -> None:
    (project / "conftest.py").unlink()
    out = run(project, suite="def test_it(headrace_store): ...", status=1)
    assert "which app is tested? Write in conftest.py: @pytest.fixture def headrace_app(): return app" in out
    wrong = "import pytest\n\n@pytest.mark.headrace(inlin=True)\ndef test_it(): ...\n"
    out = run(project, suite=wrong, status=4)
    assert "pytest.mark.headrace has no 'inlin'; it has inline, now, raise_on_failure, with_retries" in out


def test_a_clock_that_is_asked_for_too_late_is_refused(project: Path) -> None:
    suite = """
        from tasks import add

        def test_late(request):
            clock = request.getfixturevalue("headrace_clock")
            add.enqueue(1, 2)

        def test_in_time(request, headrace_store):
            clock = request.getfixturevalue("headrace_clock")
            add.enqueue(1, 2)
    """
    out = run(project, suite=suite, status=1)
    assert "test_late asks for headrace_clock while it runs, and would be on the app's own database" in out
    assert "1 failed, 1 passed" in out


def test_a_suite_that_does_not_use_it_pays_nothing(project: Path) -> None:
    (project / "conftest.py").unlink()
    suite = """
        import sys

        def test_what_is_loaded(request):
            assert request.config.pluginmanager.has_plugin("headrace")
            ours = {name for name in sys.modules if name.split(".")[0] == "headrace"}
            assert ours == {"headrace", "headrace._version", "headrace.testing", "headrace.testing.pytest_plugin"}
            assert not {"sqlalchemy", "alembic", "pydantic", "orjson"} & set(sys.modules)
            assert not [name for name in request.fixturenames if "headrace" in name]
    """
    assert "1 passed" in run(project, suite=suite)


def test_the_kit_does_not_need_pytest() -> None:
    code = """
import sys
sys.modules["pytest"] = None
import headrace.testing as testing
for name in testing.__all__:
    assert getattr(testing, name) is not None
    assert name in dir(testing)
import headrace.testing.store_conformance, headrace.testing.executor_conformance
print("fine")
try:
    testing.nothing
except AttributeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "fine\nmodule 'headrace.testing' has no attribute 'nothing'\n", done.stderr


def test_pytest_lists_the_fixtures_with_their_help(project: Path) -> None:
    listed = run(project, "--fixtures", suite="")
    for name in (
        "headrace_app",
        "headrace_clock",
        "headrace_store",
        "headrace_inline",
        "headrace_url",
        "headrace_worker",
    ):
        assert re.search(rf"^{name}\b.*\n    \w", listed, re.MULTILINE), name
