"""A chat server, and an app whose task `summarize` asks it."""

import os
from collections.abc import Iterator

import pytest

from tests.support.chat_server import ChatServer
from tests.support.migrated import postgres_template as postgres_template
from tests.support.migrated import sqlite_template as sqlite_template

KEY = "sk-or-v1-0f5e1d2c3b4a59687766554433221100aabbccddeeff"


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    with ChatServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OPENROUTER_", "HEADRACE_")) and not name.startswith("HEADRACE_TEST"):
            monkeypatch.delenv(name)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENROUTER_API_KEY", KEY)
