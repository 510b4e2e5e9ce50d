"""`headrace users`, `headrace tokens`, `headrace audit`: who comes in by a server, and what is on the list."""

import hashlib
import io
import json
import os
import pty
import re
import select
import subprocess
import sys
import time

import pytest

from headrace.cli.auditing import actor
from headrace.cli.failures import FAILED, NOT_FOUND, OK, UNAVAILABLE, USAGE
from headrace.core.accounts import Credential, Role, Scope, UserRecord
from headrace.server.auth.passwords import verify_password
from headrace.testing.store_conformance.ledger import Ledger
from tests.cli.shell import Shell, environment

PATIENCE = 60
SECRET = re.compile(r"hr_[A-Za-z0-9_-]{43}")


def user_of(shell: Shell, name: str) -> UserRecord:
    async def read(ledger: Ledger) -> UserRecord | None:
        return await ledger.store.get_user(name)

    found = shell.ledger(read)
    assert found is not None
    return found


def credential_of(shell: Shell, secret: str) -> Credential | None:
    async def read(ledger: Ledger) -> Credential | None:
        return await ledger.store.find_token(hashlib.sha256(secret.encode()).hexdigest())

    return shell.ledger(read)


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_users_are_added_changed_and_shut_out(either_shell: Shell):
    code, out, _ = either_shell("users", "add", "root", "--role", "admin", "--no-password")
    assert (code, out) == (OK, "user root (admin) may come in\n")
    code, out, _ = either_shell("users", "add", "ada", "--no-password", "--json")
    assert code == OK
    made = json.loads(out)
    assert (made["name"], made["role"], made["has_password"], made["disabled"]) == ("ada", "user", False, False)
    assert either_shell("users", "role", "ada", "operator")[:2] == (OK, "user ada (operator) is operator from now on\n")
    assert either_shell("users", "disable", "ada")[0] == OK
    code, out, _ = either_shell("users", "list")
    assert code == OK
    assert re.search(r"^ada +operator +tokens only +disabled", out, re.MULTILINE)
    assert re.search(r"^root +admin +tokens only +enabled", out, re.MULTILINE)
    assert json.loads(either_shell("users", "enable", "ada", "--json")[1])["disabled"] is False
    listed = json.loads(either_shell("users", "list", "--json")[1])
    assert [(user["name"], user["role"]) for user in listed] == [("ada", "operator"), ("root", "admin")]


def test_what_cannot_be_is_refused(shell: Shell):
    assert shell("users", "list")[:2] == (
        OK,
        "no users; a server makes the first admin when it starts, or `headrace users add`\n",
    )
    assert shell("users", "add", "root", "--role", "admin", "--no-password")[0] == OK
    code, _, err = shell("users", "add", "root", "--no-password")
    assert code == FAILED
    assert "a name is given once" in err
    code, _, err = shell("users", "disable", "root")
    assert code == FAILED
    assert "last enabled admin" in err
    assert shell("users", "role", "eve", "viewer")[0] == NOT_FOUND
    assert shell("users", "add", "a b", "--no-password")[0] == USAGE
    assert shell("users", "add", "ada", "--role", "king", "--no-password")[0] == USAGE
    assert shell("users", "add", "ada", "--no-password", "--password-stdin")[0] == USAGE
    assert shell("users", "list", "--database", "sqlite:///nowhere.db")[0] == UNAVAILABLE
    assert [user["name"] for user in json.loads(shell("users", "list", "--json")[1])] == ["root"]


def test_a_password_comes_from_stdin(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    typed(monkeypatch, "correct horse\nbattery\n")
    code, out, err = shell("users", "add", "ada", "--password-stdin")
    assert code == OK
    assert "correct horse" not in out + err
    assert verify_password(user_of(shell, "ada").password, "correct horse").good
    typed(monkeypatch, "battery staple\r\n")
    assert shell("users", "password", "ada", "--password-stdin")[0] == OK
    assert verify_password(user_of(shell, "ada").password, "battery staple").good
    # The hash is nobody's business, nor is what was typed.
    for words in (("users", "list", "--json"), ("audit", "--json")):
        out = shell(*words)[1]
        assert "argon2" not in out
        assert "staple" not in out
    for text, said in (("", "nothing on the first line"), ("short\n", "8 to 1000 characters")):
        typed(monkeypatch, text)
        code, _, err = shell("users", "password", "ada", "--password-stdin")
        assert code == USAGE
        assert said in err
    typed(monkeypatch, "")
    code, _, err = shell("users", "password", "ada")
    assert code == USAGE
    assert "--password-stdin" in err


def test_a_password_is_asked_for_twice_and_not_shown(shell: Shell):
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "users", "add", "ada"],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(shell.url),
        start_new_session=True,
    )
    os.close(theirs)
    said, answered, deadline = "", 0, time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                part = os.read(ours, 1000)
            except OSError:  # the other end is closed
                break
            said += part.decode()
            if said.count(": ") > answered and said.endswith(": "):
                answered += 1
                os.write(ours, b"correct horse\n")
        assert process.wait(PATIENCE) == OK
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(ours)
    assert answered == 2, said
    assert "correct horse" not in said
    assert verify_password(user_of(shell, "ada").password, "correct horse").good


def test_a_secret_is_shown_once(either_shell: Shell):
    either_shell("users", "add", "ada", "--role", "admin", "--no-password")
    code, secret, err = either_shell("tokens", "create", "ada", "--label", "pipeline", "--expires-in", "90d")
    assert code == OK
    assert SECRET.fullmatch(secret.strip())
    assert "the only time that it is shown" in err
    found = credential_of(either_shell, secret.strip())
    assert found is not None
    assert (found.user.role, found.token.label, found.token.hint) == (Role.ADMIN, "pipeline", secret[:8])
    assert found.token.scopes == (Scope.READ, Scope.SUBMIT, Scope.CONTROL)
    assert found.token.expires_at is not None
    assert (found.token.expires_at - found.token.created_at).days == 90
    made = json.loads(either_shell("tokens", "create", "ada", "--scope", "read", "--scope", "admin", "--json")[1])
    assert SECRET.fullmatch(made["secret"])
    assert (made["scopes"], made["expires_at"]) == (["read", "admin"], None)
    for words in (("tokens", "list", "--all"), ("tokens", "list", "--all", "--json"), ("audit", "--json")):
        out = either_shell(*words)[1]
        assert secret.strip() not in out
        assert made["secret"] not in out
    code, out, _ = either_shell("tokens", "list")
    assert re.search(rf"{found.token.id} +ada +{re.escape(secret[:8])}… +api .* good +never +pipeline", out)
    assert either_shell("tokens", "revoke", str(found.token.id))[:2] == (OK, f"token {found.token.id} is revoked\n")
    assert credential_of(either_shell, secret.strip()) is None
    code, _, err = either_shell("tokens", "revoke", str(found.token.id))
    assert code == NOT_FOUND
    assert "revoked before" in err
    assert [token["id"] for token in json.loads(either_shell("tokens", "list", "--json")[1])] == [made["id"]]
    assert len(json.loads(either_shell("tokens", "list", "--all", "--user", "ada", "--json")[1])) == 2
    assert json.loads(either_shell("tokens", "list", "--user", "eve", "--json")[1]) == []


def test_a_token_of_nobody_or_for_nothing_is_refused(shell: Shell):
    assert shell("tokens", "create", "ada")[0] == NOT_FOUND
    shell("users", "add", "ada", "--no-password")
    assert shell("tokens", "create", "ada", "--scope", "everything")[0] == USAGE
    assert shell("tokens", "create", "ada", "--expires-in", "soon")[0] == USAGE
    assert shell("tokens", "create", "ada", "--expires-in", "0s")[0] == USAGE
    assert shell("tokens", "revoke", "0")[0] == USAGE
    assert json.loads(shell("tokens", "list", "--all", "--json")[1]) == []


def test_what_the_command_line_did_is_on_the_list(either_shell: Shell):
    """In the name of the login, before it is done, and with how it ended."""
    either_shell("users", "add", "root", "--role", "admin", "--no-password")
    either_shell("users", "disable", "root")
    either_shell("tokens", "create", "root", "--label", "ci")
    found = json.loads(either_shell("audit", "--json")[1])
    assert [(entry["act"], entry["subject"]) for entry in found] == [
        ("tokens.create", "user/root"),
        ("users.change", "user/root"),
        ("users.add", "user/root"),
    ]
    assert {entry["actor"] for entry in found} == {actor()}
    assert actor().startswith("cli:")
    assert [entry["outcome"] == "done" for entry in found] == [True, False, True]
    assert "last enabled admin" in found[1]["outcome"]
    assert found[1]["detail"] == {"disabled": True}
    assert found[0]["detail"]["label"] == "ci"
    code, out, _ = either_shell("audit", "--act", "users.add")
    assert code == OK
    assert re.search(r"users.add +user/root +done", out)
    assert len(out.splitlines()) == 2
    (second,) = json.loads(either_shell("audit", "--limit", "1", "--before", found[0]["id"], "--json")[1])
    assert second["id"] == found[1]["id"]
    assert json.loads(either_shell("audit", "--actor", "eve", "--json")[1]) == []
    assert len(json.loads(either_shell("audit", "--subject", "user/root", "--json")[1])) == 3
