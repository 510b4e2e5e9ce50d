"""Users, tokens and the audit log: what is given once, what is revoked at once, and who is never locked out."""

import asyncio
from datetime import timedelta
from typing import Any

from headrace.core.accounts import NewAudit, NewToken, Role, Scope, TokenKind
from headrace.core.errors import NotFound, OptionError, WrongState
from headrace.store.base import Store
from headrace.testing.store_conformance.case import Cases
from headrace.testing.store_conformance.ledger import Ledger, refused

cases = Cases("accounts")

_LOCK = 900.0


def _token(user: str = "ada", digest: str = "d1", **fields: Any) -> NewToken:
    said: dict[str, Any] = {
        "user": user, "kind": "api", "label": "ci", "digest": digest, "hint": "hr_abcde",
        "scopes": (Scope.READ, Scope.SUBMIT), **fields,
    }  # fmt: skip
    return NewToken(**said)


async def _fail(store: Store, name: str = "ada", *, most: int = 5) -> Any:
    return await store.login_failed(name, most=most, lock=_LOCK)


@cases.add()
async def a_user_is_kept_by_its_name(ledger: Ledger) -> None:
    made = await ledger.store.add_user("ada", Role.OPERATOR, password="$argon2id$1")
    assert (made.name, made.role, made.password, made.disabled) == ("ada", Role.OPERATOR, "$argon2id$1", False)
    assert (made.failed_logins, made.locked_until) == (0, None)
    assert made.created_at == made.changed_at
    assert await ledger.store.get_user("ada") == made
    assert await ledger.store.get_user("bob") is None
    await ledger.store.add_user("Zoe", Role.VIEWER)
    await ledger.store.add_user("bob@example.org", Role.USER)
    assert [user.name for user in await ledger.store.users()] == ["Zoe", "ada", "bob@example.org"]
    bob = await ledger.store.get_user("bob@example.org")
    assert bob is not None
    assert bob.password is None


@cases.add()
async def a_name_is_given_once(ledger: Ledger) -> None:
    first = await ledger.store.add_user("ada", Role.USER)
    error = await refused(ledger.store.add_user("ada", Role.ADMIN), WrongState)
    assert "'ada'" in str(error)
    assert await ledger.store.users() == [first]
    others = [await ledger.another_store() for _ in range(3)]
    answers = await asyncio.gather(*(store.add_user("eve", Role.USER) for store in others), return_exceptions=True)
    assert sum(isinstance(answer, WrongState) for answer in answers) == 2


@cases.add()
async def a_name_is_one_that_can_be_written(ledger: Ledger) -> None:
    for name in ("", "-x", "a b", "a\0", "\ud800", "ä", "x" * 65, "a/b", "a:b"):
        error = await refused(ledger.store.add_user(name, Role.USER), OptionError)
        assert "cannot be the name of a user" in str(error)
        assert await ledger.store.get_user(name) is None
        assert await _fail(ledger.store, name) is None
        await ledger.store.login_succeeded(name)
        await refused(ledger.store.change_user(name, disabled=True), NotFound)
        await refused(ledger.store.add_token(_token(name)), NotFound)
        assert await ledger.store.tokens(user=name) == []
    assert await ledger.store.users() == []


@cases.add()
async def the_first_admin_comes_with_a_token(ledger: Ledger) -> None:
    token = await ledger.store.add_first_admin("root", _token("root", scopes=tuple(Scope)))
    assert token is not None
    assert (token.user, token.scopes, token.expires_at) == ("root", tuple(Scope), None)
    found = await ledger.store.find_token("d1")
    assert found is not None
    assert (found.user.name, found.user.role, found.token) == ("root", Role.ADMIN, token)
    # Whoever lost the answer gets it again, from another store as well; nobody else does.
    again = await (await ledger.another_store()).add_first_admin("root", _token("root", scopes=tuple(Scope)))
    assert again == token
    assert await ledger.store.add_first_admin("other", _token("other", "d2")) is None
    assert [user.name for user in await ledger.store.users()] == ["root"]
    assert await ledger.store.find_token("d2") is None


@cases.add()
async def whoever_is_there_makes_a_first_admin_needless(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.VIEWER)
    assert await ledger.store.add_first_admin("root", _token("root")) is None
    assert [user.name for user in await ledger.store.users()] == ["ada"]


@cases.add()
async def of_many_first_admins_one_is(ledger: Ledger) -> None:
    stores = [ledger.store, *[await ledger.another_store() for _ in range(3)]]
    answers = await asyncio.gather(
        *(store.add_first_admin(f"root{n}", _token(f"root{n}", f"d{n}")) for n, store in enumerate(stores))
    )
    (won,) = [answer for answer in answers if answer is not None]
    assert [user.name for user in await ledger.store.users()] == [won.user]
    assert await ledger.store.tokens() == [won]


@cases.add()
async def what_is_not_said_stays(ledger: Ledger) -> None:
    await ledger.store.add_user("root", Role.ADMIN)
    before = await ledger.store.add_user("ada", Role.USER, password="$argon2id$1")
    await ledger.let_pass(0.001)
    after = await ledger.store.change_user("ada", role=Role.OPERATOR)
    assert (after.role, after.password, after.disabled) == (Role.OPERATOR, "$argon2id$1", False)
    assert (after.created_at, after.changed_at > before.changed_at) == (before.created_at, True)
    assert (await ledger.store.change_user("ada", disabled=True)).disabled
    assert (await ledger.store.change_user("ada", password="$argon2id$2")).disabled
    last = await ledger.store.change_user("ada", disabled=False)
    assert (last.role, last.password, last.disabled) == (Role.OPERATOR, "$argon2id$2", False)
    assert await ledger.store.get_user("ada") == last
    assert "'bob'" in str(await refused(ledger.store.change_user("bob", disabled=True), NotFound))


@cases.add()
async def the_last_admin_stays(ledger: Ledger) -> None:
    root = await ledger.store.add_user("root", Role.ADMIN)
    await ledger.store.add_user("ada", Role.OPERATOR)
    await ledger.store.add_token(_token("root", kind="session"))
    assert "last enabled admin" in str(await refused(ledger.store.change_user("root", disabled=True), WrongState))
    await refused(ledger.store.change_user("root", role=Role.OPERATOR, disabled=False), WrongState)
    await refused(ledger.store.change_user("root", role=Role.ADMIN, disabled=True), WrongState)
    assert await ledger.store.get_user("root") == root
    assert await ledger.store.find_token("d1") is not None
    # What takes nothing from them is allowed, and so is whatever happens to the others.
    await ledger.store.change_user("root", password="$argon2id$2", disabled=False)
    await ledger.store.change_user("ada", disabled=True)
    # A disabled admin does not count.
    await ledger.store.change_user("ada", role=Role.ADMIN)
    await refused(ledger.store.change_user("root", disabled=True), WrongState)
    await ledger.store.change_user("ada", disabled=False)
    assert (await ledger.store.change_user("root", disabled=True)).disabled


@cases.add()
async def two_admins_do_not_disable_each_other_at_once(ledger: Ledger) -> None:
    names = ("ada", "bob")
    stores = (ledger.store, await ledger.another_store())
    for name in names:
        await ledger.store.add_user(name, Role.ADMIN)
    for _ in range(5):
        answers = await asyncio.gather(
            *(store.change_user(name, disabled=True) for store, name in zip(stores, names, strict=True)),
            return_exceptions=True,
        )
        assert sum(isinstance(answer, WrongState) for answer in answers) == 1, answers
        assert sum(not user.disabled for user in await ledger.store.users()) == 1
        for name in names:
            await ledger.store.change_user(name, disabled=False)
    await ledger.store.change_user("bob", role=Role.USER)
    twice = await asyncio.gather(*(store.change_user("ada", disabled=True) for store in stores), return_exceptions=True)
    assert all(isinstance(answer, WrongState) for answer in twice)


@cases.add()
async def wrong_passwords_lock_for_a_while(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER, password="$argon2id$1")
    assert await _fail(ledger.store, "bob") is None
    for count in (1, 2):
        user = await _fail(ledger.store, most=3)
        assert (user.failed_logins, user.locked_until) == (count, None)
    await ledger.store.login_succeeded("ada")
    for count in (1, 2):
        assert (await _fail(ledger.store, most=3)).failed_logins == count
    now = await ledger.store.now()
    locked = await _fail(ledger.store, most=3)
    assert locked.failed_logins == 0
    assert locked.locked_until is not None
    assert timedelta(seconds=_LOCK) <= locked.locked_until - now <= timedelta(seconds=_LOCK + 60)
    # While it holds nothing is counted, and nothing makes it longer or lifts it.
    assert await _fail(ledger.store, most=3) == locked
    await ledger.store.login_succeeded("ada")
    assert await ledger.store.get_user("ada") == locked
    fresh = await ledger.store.change_user("ada", password="$argon2id$2")
    assert (fresh.failed_logins, fresh.locked_until) == (0, None)


@cases.add()
async def a_lock_ends_by_the_clock_of_the_store(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    locked = await ledger.store.login_failed("ada", most=1, lock=0.05)
    assert locked is not None
    assert locked.locked_until is not None
    await ledger.let_pass(0.06)
    again = await _fail(ledger.store)
    assert (again.failed_logins, again.locked_until) == (1, None)


@cases.add()
async def many_wrong_passwords_at_once_lock_at_the_limit(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    stores = [ledger.store, *[await ledger.another_store() for _ in range(3)]]
    answers = await asyncio.gather(*(_fail(store) for store in stores for _ in range(5)))
    before = [user.failed_logins for user in answers if user.locked_until is None]
    assert sorted(before) == [1, 2, 3, 4]
    assert len({user.locked_until for user in answers if user.locked_until is not None}) == 1
    user = await ledger.store.get_user("ada")
    assert user is not None
    assert (user.failed_logins, user.locked_until) == (0, next(u.locked_until for u in answers if u.locked_until))


@cases.add()
async def a_token_is_found_by_its_digest(ledger: Ledger) -> None:
    user = await ledger.store.add_user("ada", Role.USER)
    made = await ledger.store.add_token(_token(ttl=3600.0))
    assert (made.user, made.kind, made.label, made.hint) == ("ada", "api", "ci", "hr_abcde")
    assert made.scopes == (Scope.READ, Scope.SUBMIT)
    assert made.expires_at == made.created_at + timedelta(hours=1)
    assert (made.last_used_at, made.revoked_at) == (None, None)
    found = await ledger.store.find_token("d1")
    assert found is not None
    assert (found.user, found.token) == (user, made)
    assert await ledger.store.find_token("d2") is None


@cases.add()
async def a_token_ends_by_the_earlier_of_two(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    end = (await ledger.store.now()).replace(microsecond=7) + timedelta(hours=1)
    for n, (ttl, expected) in enumerate(((None, end), (86_400.0, end))):
        made = await ledger.store.add_token(_token(digest=f"d{n}", ttl=ttl, not_after=end))
        assert made.expires_at == expected
    sooner = await ledger.store.add_token(_token(digest="sooner", ttl=60.0, not_after=end))
    assert sooner.expires_at == sooner.created_at + timedelta(minutes=1)
    past = end - timedelta(days=1)
    assert (await ledger.store.add_token(_token(digest="past", not_after=past))).expires_at == past
    assert await ledger.store.find_token("past") is None


@cases.add()
async def an_expired_token_is_none(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    made = await ledger.store.add_token(_token(ttl=0.05))
    await ledger.let_pass(0.06)
    assert await ledger.store.find_token("d1") is None
    assert await ledger.store.tokens() == [made]


@cases.add()
async def a_token_is_revoked_once(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    made = await ledger.store.add_token(_token())
    kept = await ledger.store.add_token(_token(digest="d2"))
    others = (ledger.store, await ledger.another_store(), await ledger.another_store())
    assert sorted(await asyncio.gather(*(store.revoke_token(made.id) for store in others))) == [False, False, True]
    assert await ledger.store.find_token("d1") is None
    first = {token.id: token.revoked_at for token in await ledger.store.tokens()}
    assert first[made.id] is not None
    assert first[kept.id] is None
    assert not await ledger.store.revoke_token(made.id)
    assert not await ledger.store.revoke_token(kept.id + 1000)
    assert {token.id: token.revoked_at for token in await ledger.store.tokens()} == first


@cases.add()
async def whoever_is_disabled_has_no_token(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    await ledger.store.add_token(_token())
    await ledger.store.add_token(_token(digest="d2", kind="session"))
    await ledger.store.change_user("ada", disabled=True)
    assert await ledger.store.find_token("d1") is None
    assert await ledger.store.find_token("d2") is None
    assert "'ada'" in str(await refused(ledger.store.add_token(_token(digest="d3")), NotFound))
    await refused(ledger.store.add_token(_token("bob", "d3")), NotFound)
    await ledger.store.change_user("ada", disabled=False)
    # The token of a program is good again; who was logged in logs in again.
    assert await ledger.store.find_token("d1") is not None
    assert await ledger.store.find_token("d2") is None


@cases.add()
async def a_new_password_ends_every_session(ledger: Ledger) -> None:
    for name in ("ada", "bob"):
        await ledger.store.add_user(name, Role.USER, password="$argon2id$1")
        await ledger.store.add_token(_token(name, f"api of {name}"))
        await ledger.store.add_token(_token(name, f"session of {name}", kind="session"))
    await ledger.store.change_user("ada", role=Role.OPERATOR)
    assert await ledger.store.find_token("session of ada") is not None
    await ledger.store.change_user("ada", password="$argon2id$2")
    assert await ledger.store.find_token("session of ada") is None
    for digest in ("api of ada", "api of bob", "session of bob"):
        assert await ledger.store.find_token(digest) is not None


@cases.add()
async def a_password_hashed_anew_changes_nothing_else(ledger: Ledger) -> None:
    before = await ledger.store.add_user("ada", Role.USER, password="$argon2id$1")
    await ledger.store.add_token(_token(kind="session"))
    counted = await _fail(ledger.store)
    renewed = await ledger.store.renew_password("ada", verified="$argon2id$1", fresh="$argon2id$2")
    assert renewed is not None
    assert (renewed.password, renewed.failed_logins) == ("$argon2id$2", counted.failed_logins)
    assert renewed.changed_at == before.changed_at
    assert await ledger.store.get_user("ada") == renewed
    assert await ledger.store.find_token("d1") is not None
    # What was changed after it was looked at stays, and so does whoever is shut out.
    changed = await ledger.store.change_user("ada", password="$argon2id$3")
    for verified in ("$argon2id$1", "$argon2id$2"):
        assert await ledger.store.renew_password("ada", verified=verified, fresh="$argon2id$4") is None
    assert await ledger.store.get_user("ada") == changed
    disabled = await ledger.store.change_user("ada", disabled=True)
    assert await ledger.store.renew_password("ada", verified="$argon2id$3", fresh="$argon2id$4") is None
    assert await ledger.store.get_user("ada") == disabled
    await ledger.store.add_user("bob", Role.USER)
    for name in ("bob", "eve", "a\0"):
        assert await ledger.store.renew_password(name, verified="$argon2id$1", fresh="$argon2id$4") is None


@cases.add()
async def a_login_by_the_old_password_gets_no_session(ledger: Ledger) -> None:
    """It was looked at before the change, and its token is made after it."""
    await ledger.store.add_user("ada", Role.USER, password="$argon2id$1")
    await ledger.store.add_token(_token(kind="session"), password="$argon2id$1")
    await ledger.store.change_user("ada", password="$argon2id$2")
    late = ledger.store.add_token(_token(digest="d2", kind="session"), password="$argon2id$1")
    assert "changed meanwhile" in str(await refused(late, WrongState))
    assert await ledger.store.find_token("d2") is None
    await ledger.store.add_token(_token(digest="d3", kind="session"), password="$argon2id$2")


@cases.add()
async def a_session_does_not_outlive_a_change_at_the_same_moment(ledger: Ledger) -> None:
    other = await ledger.another_store()
    await ledger.store.add_user("ada", Role.USER)
    for n in range(5):
        await asyncio.gather(
            ledger.store.change_user("ada", disabled=True),
            other.add_token(_token(digest=f"d{n}", kind="session")),
            return_exceptions=True,
        )
        await ledger.store.change_user("ada", disabled=False)
        assert await ledger.store.find_token(f"d{n}") is None


@cases.add()
async def tokens_are_listed_newest_first(ledger: Ledger) -> None:
    kinds: dict[str, TokenKind] = {"d1": "api", "d2": "session", "d3": "api"}
    for name in ("ada", "bob"):
        await ledger.store.add_user(name, Role.USER)
    made: list[int] = []
    for digest, kind in kinds.items():
        made.append((await ledger.store.add_token(_token("bob" if digest == "d3" else "ada", digest, kind=kind))).id)
        await ledger.let_pass(0.001)
    first, second, third = made

    async def listed(**wanted: Any) -> list[int]:
        return [token.id for token in await ledger.store.tokens(**wanted)]

    assert await listed() == [third, second, first]
    assert await listed(user="ada") == [second, first]
    assert await listed(kind="api") == [third, first]
    assert await listed(user="ada", kind="api") == [first]
    assert await listed(user="eve") == []


@cases.add()
async def a_use_is_noted(ledger: Ledger) -> None:
    await ledger.store.add_user("ada", Role.USER)
    used = await ledger.store.add_token(_token())
    await ledger.store.add_token(_token(digest="d2"))
    await ledger.let_pass(0.001)
    await ledger.store.touch_tokens([used.id, used.id + 1000])
    await ledger.store.touch_tokens([])
    first, second = await ledger.store.find_token("d1"), await ledger.store.find_token("d2")
    assert first is not None
    assert second is not None
    assert first.token.last_used_at is not None
    assert first.token.last_used_at > used.created_at
    assert second.token.last_used_at is None


@cases.add()
async def an_act_is_on_the_list_before_it_is_done(ledger: Ledger) -> None:
    entries = [
        NewAudit(actor="ada", act="tasks.retry", subject="task/17", detail='{"n":1}', request="r1"),
        NewAudit(actor="cli:eve", act="queues.pause", subject="queue/mail"),
    ]
    first, second = await ledger.store.write_audit(entries)
    assert await ledger.store.write_audit([]) == []
    newer, older = await ledger.store.audit()
    assert (older.id, newer.id, first < second) == (first, second, True)
    assert (older.actor, older.act, older.subject, older.detail) == ("ada", "tasks.retry", "task/17", '{"n":1}')
    assert (older.request, older.outcome, newer.request, newer.detail) == ("r1", None, None, "{}")
    assert older.at <= await ledger.store.now()
    await ledger.store.close_audit([first], "done")
    await ledger.store.close_audit([first, second], "task 17 is running")
    await ledger.store.close_audit([], "done")
    assert [entry.outcome for entry in await ledger.store.audit()] == ["task 17 is running", "done"]


@cases.add()
async def the_list_is_read_by_pages_and_by_what_one_looks_for(ledger: Ledger) -> None:
    entries = [
        NewAudit(actor=actor, act=act, subject=subject)
        for subject in ("task/1", "task/2")
        for actor in ("ada", "bob")
        for act in ("tasks.retry", "tasks.cancel")
    ]
    ids: list[int] = []
    for entry in entries:
        ids += await ledger.store.write_audit([entry])
    assert ids == sorted(ids)
    first = await ledger.store.audit(limit=3)
    rest = await ledger.store.audit(before=first[-1].id)
    assert [entry.id for entry in (*first, *rest)] == ids[::-1]
    wanted: tuple[dict[str, Any], ...] = (
        {"actor": "ada"}, {"act": "tasks.retry"}, {"subject": "task/2"}, {"actor": "bob", "act": "tasks.cancel"},
        {"actor": "ada", "subject": "task/1"}, {"act": "tasks.retry", "subject": "task/1"},
        {"actor": "ada", "act": "tasks.retry", "subject": "task/2"}, {"actor": "eve"}, {"actor": "\0"},
    )  # fmt: skip
    for filters in wanted:
        expected = [
            id
            for id, entry in zip(ids, entries, strict=True)
            if all(getattr(entry, name) == value for name, value in filters.items())
        ][::-1]
        assert [entry.id for entry in await ledger.store.audit(**filters)] == expected
        assert [entry.id for entry in await ledger.store.audit(**filters, limit=1)] == expected[:1]
        if expected:
            assert [entry.id for entry in await ledger.store.audit(**filters, before=expected[0])] == expected[1:]


@cases.add()
async def whatever_somebody_sent_can_be_on_the_list(ledger: Ledger) -> None:
    (id,) = await ledger.store.write_audit(
        [NewAudit(actor="ada", act="users.add", subject="user/a\0b", request="\ud800")]
    )
    await ledger.store.close_audit([id], "no \0 in names")
    (entry,) = await ledger.store.audit()
    assert entry.subject.startswith("user/a")
    assert entry.subject.endswith("b")
    assert "\0" not in entry.subject
    assert entry.outcome is not None


@cases.add()
async def prune_removes_tokens_that_are_good_for_nothing(ledger: Ledger) -> None:
    """As long ago as it is told, and neither one that is good nor what was revoked just now. The audit log stays for a
    year, whatever is told."""
    await ledger.store.add_user("ada", Role.USER)
    kept = [
        (await ledger.store.add_token(_token())).id,
        (await ledger.store.add_token(_token(digest="d2", ttl=3600.0))).id,
    ]
    await ledger.store.add_token(_token(digest="d3", ttl=0.01))
    revoked = await ledger.store.add_token(_token(digest="d4"))
    await ledger.store.revoke_token(revoked.id)
    await ledger.store.write_audit([NewAudit(actor="ada", act="tasks.retry", subject="task/1")])
    assert (await ledger.store.prunable(keep=60.0)).tokens == 0
    assert (await ledger.store.prune(keep=60.0)).tokens == 0
    await ledger.let_pass(0.3)
    late = await ledger.store.add_token(_token(digest="d5"))
    await ledger.store.revoke_token(late.id)
    there = await ledger.store.prunable(keep=0.2)
    assert (there.tokens, there.audit) == (2, 0)
    pruned = await ledger.store.prune(keep=0.2)
    assert (pruned.tokens, pruned.audit) == (2, 0)
    assert {token.id for token in await ledger.store.tokens()} == {*kept, late.id}
    assert len(await ledger.store.audit()) == 1
