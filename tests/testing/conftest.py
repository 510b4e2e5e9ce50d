"""Databases that have the schema already: to copy one takes far less time than to migrate."""

from tests.support.migrated import postgres_template, sqlite_template

__all__ = ["postgres_template", "sqlite_template"]
