"""Run by Alembic: configures it for one app on a connection that is already in its transaction."""

from alembic import context
from sqlalchemy import Connection, text

from headrace.store.migrations import current_revision, version_table
from headrace.store.schema import build


def _create_schema(connection: Connection, name: str) -> None:
    # CREATE SCHEMA IF NOT EXISTS wants the right to create even where there is nothing to do.
    found = connection.scalar(text("SELECT 1 FROM pg_namespace WHERE nspname = :name"), {"name": name})
    if not found:
        connection.exec_driver_sql(f'CREATE SCHEMA IF NOT EXISTS "{name}"')


def _write_meta(connection: Connection, table: str, revision: str) -> None:
    """What `open` reads: the schema's revision, and the oldest code that may work with it."""
    script = context.script.get_revision(revision)
    assert script is not None
    for key, value in (("schema", revision), ("min_code", script.module.min_code)):
        connection.execute(text(f"DELETE FROM {table} WHERE key = :key"), {"key": key})
        connection.execute(
            text(f"INSERT INTO {table} (key, value) VALUES (:key, :value)"), {"key": key, "value": value}
        )


def _sweep(connection: Connection, name: str) -> None:
    """After the last table, what only the migrations needed."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"DROP TABLE IF EXISTS {name}_alembic_version")
        return
    connection.exec_driver_sql(f'DROP TABLE IF EXISTS "{name}".alembic_version')
    if connection.scalar(text(_EMPTY_AND_OURS), {"name": name}):
        connection.exec_driver_sql(f'DROP SCHEMA "{name}"')


_EMPTY_AND_OURS = """
SELECT 1 FROM pg_namespace AS n
WHERE n.nspname = :name
  AND pg_has_role(n.nspowner, 'USAGE')
  AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.refclassid = 'pg_namespace'::regclass AND d.refobjid = n.oid)
"""


def _migrate(connection: Connection, name: str) -> None:
    dialect = connection.dialect.name
    table, schema = version_table(dialect, name)
    if dialect != "sqlite":
        _create_schema(connection, name)
    context.configure(
        connection=connection,
        target_metadata=build(dialect, name),
        version_table=table,
        version_table_schema=schema,
        include_schemas=schema is not None,
    )
    context.run_migrations(name=name)
    revision = current_revision(connection, name)
    if revision is None:
        _sweep(connection, name)
    else:
        _write_meta(connection, f"{name}_meta" if dialect == "sqlite" else f'"{name}".meta', revision)


_migrate(context.config.attributes["connection"], context.config.attributes["name"])
