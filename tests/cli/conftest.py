"""A shell on a database that has the schema."""

from pathlib import Path

import pytest

from tests.cli.shell import Shell
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template


def _shell(url: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("HEADRACE_DATABASE_URL", url)
    return Shell(capsys, folder, url)


@pytest.fixture
def shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], sqlite_url: str
) -> Shell:
    return _shell(sqlite_url, tmp_path, monkeypatch, capsys)


@pytest.fixture
def either_shell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store_url: str
) -> Shell:
    """On SQLite and on PostgreSQL, one after the other."""
    return _shell(store_url, tmp_path, monkeypatch, capsys)
