"""Finding the user's App from `module:attribute`, and the store from a URL."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import CommandError
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect, sqlite_path

if TYPE_CHECKING:
    from headrace.app import App

Target = Annotated[
    str, typer.Argument(help="Where your App is, as module:attribute, for example tasks:app.", show_default=False)
]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        envvar="HEADRACE_DATABASE_URL",
        help="URL of the store, or module:attribute of your App.",
        show_default="sqlite:///headrace.db",
    ),
]
Namespace = Annotated[
    str,
    typer.Option("--name", envvar="HEADRACE_NAME", help="App(name=…): schema on PostgreSQL, table prefix on SQLite."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

DEFAULT_URL = "sqlite:///headrace.db"


def load_app(target: str) -> "App":
    """Import the App. The working directory is importable, as it is for `python -m`."""
    from headrace.app import App

    module_name, separator, attribute = target.partition(":")
    if not separator or not module_name or not attribute:
        raise CommandError(f"{target!r} does not name an App: write module:attribute, for example tasks:app")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name and (module_name == error.name or module_name.startswith(error.name + ".")):
            raise CommandError(f"no module {module_name!r} below {os.getcwd()} or on the Python path") from error
        raise
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise CommandError(f"module {module_name!r} has no {attribute!r}")
        value = getattr(value, part)
    if not isinstance(value, App):
        raise CommandError(f"{target!r} is a {type(value).__name__}, not a headrace App")
    return value


def store_of(database: str | None, name: str) -> Store:
    """The store that a command without an App works on; `database` may also name an App."""
    url = database or DEFAULT_URL
    if "://" not in url and ":" in url:
        app = load_app(url)
        url, name = app.url, app.name
    if database is None and not Path(sqlite_path(url)).exists():
        raise CommandError(
            f"no {Path('headrace.db').absolute()}: say which store with --database, or set HEADRACE_DATABASE_URL"
        )
    return connect(url, StoreOptions(name=name))


def with_store[T](database: str | None, name: str, act: Callable[[Store], Awaitable[T]]) -> T:
    """Open the store, act, close."""

    async def run() -> T:
        store = store_of(database, name)
        await store.open()
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def full_url(url: str) -> str:
    """The URL as commands print it: a relative SQLite path in full."""
    if url.startswith("sqlite"):
        path = sqlite_path(url)
        return url if path == ":memory:" else f"sqlite:///{Path(path).absolute()}"
    return url


def administer(
    database: str | None, name: str, act: Callable[[Store], Awaitable[None]]
) -> tuple[str | None, str | None]:
    """Change the schema of a store that need not have one yet; the revisions before and after."""

    async def run() -> tuple[str | None, str | None]:
        store = store_of(database or DEFAULT_URL, name)
        try:
            before = await store.schema_revision()
            await act(store)
            return before, await store.schema_revision()
        finally:
            await store.close()

    return asyncio.run(run())
