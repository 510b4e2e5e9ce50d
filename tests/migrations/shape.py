"""The shape of one app's objects in a database, as the database itself tells it."""

import re
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, inspect, text

from headrace.store.connect import postgres_dsn

type Shape = dict[str, Any]

# What Alembic keeps for itself, and the meta rows' table is part of the schema.
_ALEMBIC = "alembic_version"


def engine_for(url: str) -> Engine:
    if url.startswith("sqlite:"):
        return create_engine(url)
    return create_engine(postgres_dsn(url).replace("postgresql://", "postgresql+psycopg://", 1))


def shape(url: str, name: str) -> Shape:
    """Everything that belongs to the app: tables, columns, keys, indexes with predicates, checks, sequences."""
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            found = _sqlite(connection, name) if engine.dialect.name == "sqlite" else _postgres(connection, name)
            return found | {"columns": _columns(connection, name)}
    finally:
        engine.dispose()


def objects(url: str) -> set[str]:
    """Every schema object anywhere in the database that a user made."""
    engine = engine_for(url)
    try:
        with engine.connect() as connection:
            if engine.dialect.name == "sqlite":
                return set(connection.scalars(text("SELECT type || ' ' || name FROM sqlite_master")))
            return set(connection.scalars(text(_POSTGRES_OBJECTS)))
    finally:
        engine.dispose()


def _columns(connection: Connection, name: str) -> Shape:
    inspector = inspect(connection)
    sqlite = connection.dialect.name == "sqlite"
    schema = None if sqlite else name
    tables = [t for t in inspector.get_table_names(schema=schema) if not sqlite or t.startswith(f"{name}_")]
    return {
        table: [
            (c["name"], repr(c["type"]), c["nullable"], c["default"])
            for c in inspector.get_columns(table, schema=schema)
        ]
        for table in tables
        if not table.endswith(_ALEMBIC)
    }


def _sqlite(connection: Connection, name: str) -> Shape:
    rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE name LIKE :like ESCAPE '!'"),
                              {"like": f"{name}!_%"})  # fmt: skip
    return {
        f"{kind} {object_name}": re.sub(r"\s+", " ", sql or "")
        for kind, object_name, sql in rows
        if _ALEMBIC not in object_name
    }


def _postgres(connection: Connection, name: str) -> Shape:
    return {
        query: [tuple(row) for row in connection.execute(text(sql), {"name": name})] for query, sql in _POSTGRES.items()
    }


_POSTGRES = {
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = :name"
    " AND tablename <> 'alembic_version' ORDER BY 1, 2",
    "constraints": "SELECT c.conrelid::regclass::text, c.conname, pg_get_constraintdef(c.oid) FROM pg_constraint AS c"
    " JOIN pg_namespace AS n ON n.oid = c.connamespace"
    " WHERE n.nspname = :name AND c.conrelid::regclass::text NOT LIKE '%alembic_version' ORDER BY 1, 2",
    "storage": "SELECT c.relname, c.reloptions::text FROM pg_class AS c"
    " JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE n.nspname = :name AND c.relkind = 'r' AND c.relname <> 'alembic_version' ORDER BY 1",
    "sequences": "SELECT sequencename, data_type::text, start_value, increment_by, max_value, cycle FROM pg_sequences"
    " WHERE schemaname = :name ORDER BY 1",
}

_POSTGRES_OBJECTS = """
SELECT 'schema ' || nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
UNION ALL
SELECT 'relation ' || n.nspname || '.' || c.relname FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
UNION ALL
SELECT 'function ' || p.oid::regprocedure FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
UNION ALL
SELECT 'type ' || n.nspname || '.' || t.typname FROM pg_type AS t JOIN pg_namespace AS n ON n.oid = t.typnamespace
WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""
