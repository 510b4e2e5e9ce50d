"""One visit: the machine, the place, the schema, then what is in it. It ends where nothing behind can be reached."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from headrace.cli.diagnosis.findings import Finding, Level, fine, problem
from headrace.cli.diagnosis.ledger import Patient, examine
from headrace.cli.diagnosis.machine import extra, is_server, place, versions
from headrace.cli.target import load_app
from headrace.core.errors import HeadraceError, MissingExtra, SchemaError
from headrace.settings import read_settings
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect

if TYPE_CHECKING:
    from headrace.app import App


async def visit(url: str, name: str, target: str | None, *, thorough: bool) -> AsyncIterator[Finding]:
    for finding in versions():
        yield finding
    app: App | None = None
    if target is not None:
        try:
            app = load_app(target)
        except HeadraceError as error:
            yield problem("app", str(error), "name it as module:attribute, from the folder that holds the module")
            return
        url, name = app.url, app.name
        yield fine("app", f"{target}: {len(app.registry)} tasks")
        if app.settings.metrics_port is not None:
            yield extra("metrics")
    if is_server(url):
        async for finding in _from_afar(url, name, app, thorough=thorough):
            yield finding
        return
    closed = False
    for finding in place(url):
        closed = closed or finding.level is Level.PROBLEM
        yield finding
    if closed:
        return
    pool = app.settings.pool_size + app.settings.pool_overflow if app else StoreOptions().pool_size
    try:
        store = app.new_store() if app else connect(url, StoreOptions(name=name, migrate=False))
    except MissingExtra as error:
        yield problem("extras", str(error), "install it in the environment of this command")
        return
    except HeadraceError as error:
        yield problem("url", str(error), "correct --database, --name or the App's settings")
        return
    try:
        async for finding in _inside(store, app, pool, thorough=thorough):
            yield finding
    finally:
        await store.close()


async def _from_afar(url: str, name: str, app: "App | None", *, thorough: bool) -> AsyncIterator[Finding]:
    # Its client is not for the commands that look at a database.
    from headrace.cli.diagnosis.server import examine_server

    token = app.settings.token if app else read_settings({}).token
    store = app.new_store() if app else connect(url, StoreOptions(name=name, extra={"token": token}))
    try:
        async for finding in examine_server(url, token, store, thorough=thorough):
            yield finding
    finally:
        await store.close()


async def _inside(store: Store, app: "App | None", pool: int, *, thorough: bool) -> AsyncIterator[Finding]:
    try:
        schema = await _schema(store)
        yield schema
        if schema.level is Level.PROBLEM:
            return
        await store.open()
        async for finding in examine(Patient(store=store, app=app, pool=pool, thorough=thorough)):
            yield finding
    except SchemaError as error:
        yield problem("schema", str(error), "headrace db upgrade, with the newest headrace")
    except (HeadraceError, OSError) as error:
        yield problem(
            "store", str(error), "see that the server runs, and that the URL, the user and the rights are right"
        )


async def _schema(store: Store) -> Finding:
    # Alembic, behind this, is not for the commands that are run all day.
    from headrace.store import migrations
    from headrace.store.sqlite.administration import known_revisions

    found, (head, *_) = await store.schema_revision(), migrations.heads()
    if found is None:
        return problem("schema", "the database has no schema of this name", "headrace db upgrade")
    if found == head:
        return fine("schema", f"at {found}")
    if found in known_revisions():
        return problem("schema", f"the schema is at {found}, this code wants {head}", "headrace db upgrade")
    return problem(
        "schema", f"the schema {found} is newer than this code, which knows {head}", "upgrade headrace on this machine"
    )
