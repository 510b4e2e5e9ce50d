"""Databases that already have the schema: migrated once, then emptied or copied, as there are hundreds of cases."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer

# A TRUNCATE makes a new file for every table and index, which takes longer than most cases; few rows are soon deleted.
_EMPTY = """
DO $$
DECLARE
    emptied text;
    filled boolean;
BEGIN
    FOR emptied IN
        SELECT format('headrace.%I', tablename) FROM pg_tables
        WHERE schemaname = 'headrace' AND tablename NOT IN ('meta', 'alembic_version')
    LOOP
        EXECUTE format('SELECT EXISTS (SELECT FROM %s OFFSET 500)', emptied) INTO filled;
        IF filled THEN
            EXECUTE format('TRUNCATE %s', emptied);
        ELSE
            EXECUTE format('DELETE FROM %s', emptied);
        END IF;
    END LOOP;
END $$
"""


@pytest.fixture(scope="session")
def conformance_database(postgres_server: PostgresServer, migrated_postgres_template: str) -> Iterator[str]:
    name = f"headrace_conformance_{os.getpid()}"
    postgres_server.create_database(name, migrated_postgres_template)
    yield name
    postgres_server.drop_database(name)


@pytest.fixture
def postgres_url(postgres_server: PostgresServer, conformance_database: str) -> str:
    empty_postgres(postgres_server, conformance_database)
    return postgres_server.url(conformance_database)


def empty_postgres(server: PostgresServer, database: str) -> None:
    with server.connect(database) as connection:
        connection.execute(_EMPTY)


@pytest.fixture(scope="session")
def sqlite_template(migrated_sqlite_template: Path) -> Path:
    return migrated_sqlite_template
