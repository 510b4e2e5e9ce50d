"""The browser, the stage that every test of a process shares, and pages on it.

Tests here are coroutines on one event loop of the session: Playwright's objects belong to the loop they were made on.
"""

import asyncio
import inspect
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.browser.browsing import Browsing
from tests.browser.driver import Browser, async_playwright
from tests.browser.scene import GATE, Scene, set_up
from tests.browser.stage import Stage
from tests.support.browser import FLAGS, need_browser
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template
from tests.support.postgres import PostgresServer

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """They belong to `make test-all`; whoever names this folder wants them, at the size that is set."""
    named = [Path(each.partition("::")[0]).resolve() for each in config.args]
    asked = any(place == HERE or HERE in place.parents for place in named)
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not asked:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    runner: asyncio.Runner = pyfuncitem.funcargs["runner"]
    names = pyfuncitem._fixtureinfo.argnames
    runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.fixture(scope="session", autouse=True)
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


@pytest.fixture(scope="session")
def browser(runner: asyncio.Runner) -> Iterator[Browser]:
    chromium = need_browser()
    playwright = runner.run(async_playwright().start())
    browser = runner.run(playwright.chromium.launch(executable_path=chromium, args=FLAGS))
    yield browser
    runner.run(browser.close())
    runner.run(playwright.stop())


def _staged(runner: asyncio.Runner, folder: Path, url: str) -> Iterator[Stage]:
    stage = Stage(folder, url)
    runner.run(stage.__aenter__())
    try:
        yield stage
    finally:
        stage.open_gate(GATE)
        runner.run(stage.__aexit__(None, None, None))
        print(stage.server.said[-4000:], stage.worker.said[-4000:], sep="\n")


@pytest.fixture(scope="session")
def stage(
    browser: Browser, runner: asyncio.Runner, tmp_path_factory: pytest.TempPathFactory, sqlite_template: Path
) -> Iterator[Stage]:
    """On SQLite, for every test of this process: a test that acts makes what it acts on."""
    folder = tmp_path_factory.mktemp("shop")
    shutil.copy(sqlite_template, folder / "shop.db")
    yield from _staged(runner, folder, f"sqlite:///{folder / 'shop.db'}")


@pytest.fixture(scope="session")
def scene(stage: Stage, runner: asyncio.Runner) -> Scene:
    """Something in every state, to look at."""
    return runner.run(set_up(stage))


@pytest.fixture(scope="session")
def postgres_stage(
    browser: Browser,
    runner: asyncio.Runner,
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    postgres_template: str,
) -> Iterator[Stage]:
    name = f"headrace_browser_{os.getpid()}"
    url = postgres_server.create_database(name, postgres_template)
    yield from _staged(runner, tmp_path_factory.mktemp("postgres-shop"), url)
    postgres_server.drop_database(name)


@pytest.fixture(scope="session")
def postgres_scene(postgres_stage: Stage, runner: asyncio.Runner) -> Scene:
    return runner.run(set_up(postgres_stage))


@pytest.fixture
def browsing(browser: Browser, stage: Stage, runner: asyncio.Runner) -> Iterator[Browsing]:
    """Pages on the stage; what they complained of fails the test."""
    yield from _visited(browser, stage, runner)


@pytest.fixture
def postgres_browsing(browser: Browser, postgres_stage: Stage, runner: asyncio.Runner) -> Iterator[Browsing]:
    yield from _visited(browser, postgres_stage, runner)


def _visited(browser: Browser, stage: Stage, runner: asyncio.Runner) -> Iterator[Browsing]:
    browsing = Browsing(browser, stage)
    yield browsing
    runner.run(browsing.close())
    assert browsing.complaints.left == []
