"""The first user of a ledger, made by a server whose database may answer or not."""

import pytest

from headrace.client.accounts import digest_of
from headrace.core.accounts import Role
from headrace.core.errors import StoreError
from headrace.server import running
from headrace.server.options import ServerOptions
from tests.server.tasks import make_app


async def test_a_first_token_whose_answer_was_lost_is_printed_all_the_same(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "_PAUSE", 0.01)
    app = make_app(store_url)
    add, tries, said = running.add_first_admin, 0, list[str]()

    async def answers_late(*given: object) -> object:
        nonlocal tries
        tries += 1
        made = await add(*given)  # type: ignore[arg-type]
        if tries == 1:
            raise StoreError("the connection was lost after the commit")
        return made

    monkeypatch.setattr(running, "add_first_admin", answers_late)
    await running._prepare(app, ServerOptions(), said.append)
    assert tries == 2
    [secret] = said
    found = await app.engine.run(lambda store: store.find_token(digest_of(secret)))
    assert found is not None
    assert (found.user.name, found.user.role) == (running.FIRST_ADMIN, Role.ADMIN)
    # The next server finds a user, and has nothing to print.
    await running._prepare(app, ServerOptions(), said.append)
    assert said == [secret]
    # Who made the first user is on the list of acts, once.
    [entry] = await app.engine.run(lambda store: store.audit())
    assert (entry.actor, entry.act, entry.subject) == ("headrace server", "users.add", "user/admin")
    assert (entry.outcome, secret in entry.detail) == ("done", False)
