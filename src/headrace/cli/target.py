"""Finding the user's App from `module:attribute`, and the store from a URL."""

import os
import sys
from collections.abc import Awaitable, Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.failures import UNAVAILABLE, CommandError
from headrace.cli.output import use_redaction
from headrace.core.errors import HeadraceError

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.store.base import Store

Target = Annotated[
    str, typer.Argument(help="Where your App is, as module:attribute, for example tasks:app.", show_default=False)
]
Database = Annotated[
    str | None,
    typer.Option(
        "--database",
        "-d",
        envvar="HEADRACE_DATABASE_URL",
        help="URL of the store, or of a server (https://…, with HEADRACE_TOKEN), or module:attribute of your App.",
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
        raise CommandError(_why(module_name, error)) from error
    except HeadraceError:
        raise
    except Exception as error:
        raise CommandError(_why(module_name, error)) from error
    value = module
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise CommandError(f"module {module_name!r} has no {attribute!r}")
        value = getattr(value, part)
    if not isinstance(value, App):
        raise CommandError(f"{target!r} is a {type(value).__name__}, not a headrace App")
    use_redaction(value.redaction)
    return value


def _why(module_name: str, error: Exception) -> str:
    """Why the user's module cannot be imported: its own lines, without those of the import system and ours."""
    import traceback

    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in (__file__, import_module.__code__.co_filename)
        and not frame.filename.startswith("<frozen importlib")
    ]
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(error)]
    return f"importing {module_name!r} failed:\n{''.join(lines).rstrip()}"


def place_of(database: str | None, name: str) -> tuple[str, str]:
    """URL and name of the store; `database` may also name an App, which knows both."""
    url = database or DEFAULT_URL
    if "://" not in url and ":" in url:
        app = load_app(url)
        return app.url, app.name
    return url, name


def app_of(database: str | None, name: str) -> "App":
    """An App that is named knows how its payloads are to be written; else one is made for the store alone."""
    if database is not None and "://" not in database and ":" in database:
        return load_app(database)
    from headrace.app import App

    url, name = place_of(database, name)
    require_file(url)
    return App(url, name=name)


def store_of(database: str | None, name: str, *, must_exist: bool = True) -> "Store":
    """The store that a command without an App works on; `database` may also name an App.

    A mistyped SQLite path or name must not become an empty ledger that is then found sound: only what makes a schema
    may make the file.
    """
    from headrace.settings import read_settings
    from headrace.store.base import StoreOptions
    from headrace.store.connect import connect

    url, name = place_of(database, name)
    if must_exist:
        require_file(url)
    extra = {"token": read_settings({}).token} if url.startswith("http") else {}
    return connect(url, StoreOptions(name=name, migrate=not must_exist, extra=extra))


def require_file(url: str) -> None:
    """An SQLite file that is not there must not be made by whoever only looks."""
    from headrace.store.connect import sqlite_path

    if url.startswith("sqlite") and (path := sqlite_path(url)) != ":memory:" and not Path(path).exists():
        raise CommandError(
            f"no {Path(path).absolute()}: say which store with --database or HEADRACE_DATABASE_URL, "
            "or make a new one with `headrace db upgrade`",
            code=UNAVAILABLE,
        )


def with_store[T](database: str | None, name: str, act: "Callable[[Store], Awaitable[T]]") -> T:
    """Open the store, act, close."""
    import asyncio

    async def run() -> T:
        store = store_of(database, name)
        await store.open()
        try:
            return await act(store)
        finally:
            await store.close()

    return asyncio.run(run())


def shown_url(url: str) -> str:
    """The URL as commands print it: a relative SQLite path in full, a password never."""
    from headrace.store.connect import masked_url, sqlite_path

    if url.startswith("sqlite"):
        path = sqlite_path(url)
        return url if path == ":memory:" else f"sqlite:///{Path(path).absolute()}"
    return masked_url(url)


def administer(
    database: str | None, name: str, act: "Callable[[Store], Awaitable[None]]"
) -> tuple[str | None, str | None]:
    """Change the schema of a store that need not have one yet; the revisions before and after."""
    import asyncio

    async def run() -> tuple[str | None, str | None]:
        store = store_of(database, name, must_exist=False)
        try:
            before = await store.schema_revision()
            await act(store)
            return before, await store.schema_revision()
        finally:
            await store.close()

    return asyncio.run(run())
