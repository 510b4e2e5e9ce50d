"""`headrace doctor --database https://…`: what can be seen of a server from afar, in the form of any other visit."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from fastapi import FastAPI

from headrace import App
from headrace.cli.diagnosis.findings import Finding
from headrace.cli.diagnosis.visit import visit
from headrace.core.accounts import Scope
from headrace.core.errors import StoreError
from headrace.core.task import WorkerRecord
from tests.server.serving import Serve, Serving, listening


async def found(url: str, *, thorough: bool = False) -> dict[str, Finding]:
    """By check; each is made once."""
    findings = [finding async for finding in visit(url, "headrace", None, thorough=thorough)]
    checks = [finding.check for finding in findings]
    assert len(checks) == len(set(checks)), findings
    assert all(finding.mend for finding in findings if finding.level != "ok")
    return {finding.check: finding for finding in findings}


@asynccontextmanager
async def reached(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, person: str | None, **options: object
) -> AsyncGenerator[tuple[Serving, str]]:
    async with serve(**options) as server, listening(server.api) as url:
        monkeypatch.delenv("HEADRACE_TOKEN", raising=False)
        if person is not None:
            monkeypatch.setenv("HEADRACE_TOKEN", server.secrets[person])
        yield server, url


async def test_nothing_is_wrong_with_a_server(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    async with reached(serve, monkeypatch, "operator") as (server, url):
        now = await server.app.engine.run(lambda store: store.now())
        worker = WorkerRecord(
            id="w1", kind="pool", hostname="here", pid=1, state="active", beat=0, lease=600.0, queues=(), version="1",
            started_at=now, last_heartbeat=now, stopped_at=None, tasks_completed=0, tasks_failed=0,
        )  # fmt: skip
        await server.app.engine.run(lambda store: store.register(worker))
        await server.app.get_task("add").aenqueue(1, 2)
        checks = await found(url)
        assert {finding.level for finding in checks.values()} == {"ok"}
        assert list(checks) == [
            "python", "sqlite", "url", "server", "database", "version", "token", "clock", "workers", "ledger",
        ]  # fmt: skip
        assert checks["token"].what == "of operator, whose role is operator, for control, read, submit"
        assert checks["workers"].what == "1 active"
        assert (await found(url, thorough=True))["ledger"].level == "warning"


async def test_the_command_prints_the_same_form_and_gives_the_same_exit_codes(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
):
    async with reached(serve_sqlite, monkeypatch, "viewer") as (server, url):
        await server.app.get_task("add").aenqueue(1, 2)  # and nobody works
        for words, environment, code in (
            (("--json",), os.environ, 1),
            ((), {**os.environ, "HEADRACE_TOKEN": "hr_wrong"}, 1),
        ):
            command = [sys.executable, "-m", "headrace.cli", "doctor", "--database", url, *words]
            done = await asyncio.to_thread(
                subprocess.run, command, env=environment, capture_output=True, text=True, check=False, timeout=60
            )
            assert (done.returncode, done.stderr) == (code, "")
            if words:
                answer = json.loads(done.stdout)
                assert answer["healthy"] is False
                wrong = [each for each in answer["findings"] if each["level"] == "problem"]
                assert [(each["check"], each["mend"]) for each in wrong] == [("workers", "headrace worker MODULE:APP")]
            else:
                assert "problem  token: the server does not take this token" in done.stdout
                assert "problems: 1, warnings: 0" in done.stdout


async def test_tokens_that_are_missing_wrong_narrow_or_about_to_end(
    serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch
):
    async with reached(serve_sqlite, monkeypatch, None) as (server, url):
        checks = await found(url)
        assert (checks["token"].level, list(checks)[-1]) == ("problem", "token")
        assert "no token is given" in checks["token"].what
        monkeypatch.setenv("HEADRACE_TOKEN", await server.token("user", Scope.SUBMIT))
        checks = await found(url)
        assert "403" in checks["token"].what
        assert "scope read" in (checks["token"].mend or "")
        monkeypatch.setenv("HEADRACE_TOKEN", await server.token("user", Scope.READ, ttl=3600))
        checks = await found(url)
        assert (checks["token"].level, "until 2" in checks["token"].what) == ("warning", True)
        assert checks["token"].mend == "make another before: headrace tokens create user"


async def test_a_server_without_users(serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch):
    async with reached(serve_sqlite, monkeypatch, None, auth=False) as (_, url):
        assert "has no users" in (await found(url))["token"].what


async def test_nobody_there_or_somebody_else(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("HEADRACE_TOKEN", raising=False)
    async with listening(FastAPI()) as url:
        other = await found(url)
        assert (other["server"].level, list(other)[-1]) == ("problem", "server")
        assert "not as a headrace server" in other["server"].what
    gone = await found(url.replace("http://", "http://ada:hunter2@"))
    assert (gone["server"].level, list(gone)[-1]) == ("problem", "server")
    assert "does not answer" in gone["server"].what
    assert "hunter2" not in repr(gone)


async def test_its_database_its_version_and_its_clock(serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch):
    async with reached(serve_sqlite, monkeypatch, "viewer") as (server, url):
        store = await server.app.engine.opened_store()

        async def ahead() -> datetime:
            return datetime.now(UTC) + timedelta(minutes=5)

        with monkeypatch.context() as patched:
            patched.setattr(store, "now", ahead)
            patched.setattr("headrace.cli.diagnosis.server.__version__", "0.0.1")
            checks = await found(url)
        assert (checks["version"].level, "this is 0.0.1" in checks["version"].what) == ("warning", True)
        assert (checks["clock"].level, "ahead of" in checks["clock"].what) == ("warning", True)

    async def away() -> datetime:
        raise StoreError("gone")

    async with reached(serve_sqlite, monkeypatch, "viewer") as (server, url):
        store = await server.app.engine.opened_store()
        monkeypatch.setattr(store, "now", away)
        checks = await found(url)
        assert (checks["database"].level, list(checks)[-1]) == ("problem", "database")


async def test_an_app_over_http_is_looked_at_with_its_own_token(serve_sqlite: Serve, monkeypatch: pytest.MonkeyPatch):
    async with reached(serve_sqlite, monkeypatch, None) as (server, url):
        monkeypatch.setattr("headrace.cli.diagnosis.visit.load_app", lambda _: App(url, token=server.secrets["admin"]))
        findings = [finding async for finding in visit("", "headrace", "tasks:app", thorough=False)]
        assert "of admin, whose role is admin" in next(each.what for each in findings if each.check == "token")
