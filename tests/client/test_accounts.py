"""`app.users`, `app.tokens`, `app.audit`: both faces, and what they refuse."""

import hashlib
import re
from datetime import timedelta

import pytest

from headrace import App
from headrace.client.accounts import USUAL_SCOPES, digest_of, hint_of, new_secret
from headrace.core.accounts import NewAudit, Role, Scope
from headrace.core.errors import NotFound, OptionError, WrongState
from headrace.core.task import NewJob


def test_a_secret_is_unguessable_and_known_by_its_digest():
    made = {new_secret() for _ in range(100)}
    assert len(made) == 100
    for secret in made:
        assert re.fullmatch(r"hr_[A-Za-z0-9_-]{43}", secret)
        assert digest_of(secret) == hashlib.sha256(secret.encode()).hexdigest()
        assert hint_of(secret) == secret[:8]


def test_users_by_the_blocking_face(app: App):
    assert app.users.list() == []
    root = app.users.add("root", "admin", password_hash="$argon2id$1")
    assert (root.role, root.password) == (Role.ADMIN, "$argon2id$1")
    assert app.users.add("ada").role is Role.USER
    assert app.users.get("ada").name == "ada"
    assert app.users.change_role("ada", Role.OPERATOR).role is Role.OPERATOR
    assert app.users.set_password_hash("ada", "$argon2id$2").password == "$argon2id$2"
    assert app.users.disable("ada").disabled
    assert not app.users.enable("ada").disabled
    assert [user.name for user in app.users.list()] == ["ada", "root"]
    with pytest.raises(WrongState, match="a name is given once"):
        app.users.add("ada")
    with pytest.raises(WrongState, match="last enabled admin"):
        app.users.disable("root")
    with pytest.raises(NotFound, match="'eve'"):
        app.users.get("eve")
    with pytest.raises(NotFound, match="'eve'"):
        app.users.change_role("eve", "viewer")
    with pytest.raises(OptionError, match="no role 'king'; there are: viewer, user, operator, admin"):
        app.users.add("eve", "king")
    with pytest.raises(OptionError, match="cannot be the name of a user"):
        app.users.add("two words")


async def test_users_by_the_async_face(app: App):
    await app.users.aadd("root", Role.ADMIN)
    await app.users.aadd("ada")
    await app.users.achange_role("ada", "viewer")
    await app.users.aset_password_hash("ada", "$argon2id$1")
    await app.users.adisable("ada")
    found = await app.users.aget("ada")
    assert (found.role, found.password, found.disabled) == (Role.VIEWER, "$argon2id$1", True)
    assert not (await app.users.aenable("ada")).disabled
    assert [user.name for user in await app.users.alist()] == ["ada", "root"]


async def test_a_token_gives_its_secret_once(app: App):
    await app.users.aadd("ada")
    made = await app.tokens.acreate("ada", label="ci", scopes=["read", Scope.SUBMIT, "read"], expires_in=7200)
    assert made.record.scopes == (Scope.READ, Scope.SUBMIT)
    assert made.record.expires_at == made.record.created_at + timedelta(hours=2)
    assert (made.record.label, made.record.hint, made.record.kind) == ("ci", made.secret[:8], "api")
    found = await app.engine.run(lambda store: store.find_token(digest_of(made.secret)))
    assert found is not None
    assert found.token == made.record
    (listed,) = await app.tokens.alist(user="ada", kind="api")
    assert listed == made.record
    assert made.secret not in repr(listed)
    assert await app.tokens.arevoke(made.record.id)
    assert not await app.tokens.arevoke(made.record.id)
    assert await app.engine.run(lambda store: store.find_token(digest_of(made.secret))) is None


def test_tokens_by_the_blocking_face(app: App):
    with pytest.raises(NotFound, match="'ada'"):
        app.tokens.create("ada")
    app.users.add("ada")
    made = app.tokens.create("ada", expires_in=timedelta(days=1))
    assert made.record.scopes == USUAL_SCOPES
    assert [token.id for token in app.tokens.list()] == [made.record.id]
    with pytest.raises(OptionError, match="no scope 'all'"):
        app.tokens.create("ada", scopes=["all"])
    with pytest.raises(OptionError, match="without a scope"):
        app.tokens.create("ada", scopes=[])
    with pytest.raises(OptionError, match="good for nothing"):
        app.tokens.create("ada", expires_in=0)
    assert app.tokens.revoke(made.record.id)
    assert len(app.tokens.list()) == 1


async def test_the_audit_log_is_read_page_by_page(app: App):
    entries = [NewAudit(actor="ada", act=f"act.{n}", subject="task/1") for n in range(5)]
    ids = await app.engine.run(lambda store: store.write_audit(entries))
    first = await app.audit.alist(limit=2)
    assert [entry.id for entry in first] == [ids[4], ids[3]]
    rest = await app.audit.alist(before=first[-1].id, actor="ada", subject="task/1")
    assert [entry.id for entry in rest] == [ids[2], ids[1], ids[0]]
    assert [entry.id for entry in await app.audit.alist(act="act.3")] == [ids[3]]


async def test_jobs_of_one_owner(app: App):
    for owner in ("ada", None, "ada"):
        job = NewJob(name="j", owner=owner)
        await app.engine.run(lambda store, job=job: store.create_job(job))
    assert [job.owner for job in await app.jobs.alist(owner="ada")] == ["ada", "ada"]
    assert len(await app.jobs.alist()) == 3
