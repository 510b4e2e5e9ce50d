"""What waits for an operator, and who decides."""

from typing import Any

import pytest

from headrace import App
from headrace.core.accounts import Role, Scope
from headrace.core.errors import OptionError
from headrace.core.task import NewTask
from headrace.server.auth.approving import asked_role, may_decide, needs_approval
from headrace.server.auth.caller import ANYONE, Caller
from tests.server.serving import Serve
from tests.server.tasks import make_app

app = App("sqlite:///:memory:")


@app.task
async def plain() -> None: ...


@app.task(approval="operator")
async def careful(x: int) -> int:
    return x


@app.task(approval=Role.ADMIN)
async def very_careful() -> None: ...


def caller(role: Role) -> Caller:
    return Caller(name=role.value, role=role, scopes=frozenset(Scope))


COMMAND = app.commands.prepare(["true"])


@pytest.mark.parametrize(
    ("task", "waiting"),
    [
        (plain.prepare(), set()),
        (careful.prepare(1), {Role.VIEWER, Role.USER}),
        (very_careful.prepare(), {Role.VIEWER, Role.USER, Role.OPERATOR}),
        (COMMAND, {Role.VIEWER, Role.USER}),
    ],
)
def test_who_waits_for_what(task: NewTask, waiting: set[Role]) -> None:
    assert {role for role in Role if needs_approval(caller(role), task)} == waiting
    assert not needs_approval(ANYONE, task)


def test_who_decides() -> None:
    assert [role for role in Role if may_decide(caller(role), None)] == [Role.OPERATOR, Role.ADMIN]
    assert [role for role in Role if may_decide(caller(role), "operator")] == [Role.OPERATOR, Role.ADMIN]
    assert [role for role in Role if may_decide(caller(role), "admin")] == [Role.ADMIN]
    assert [role for role in Role if may_decide(caller(role), "finance")] == [Role.ADMIN]


def test_the_option_is_checked_and_code_of_ours_waits_for_nobody() -> None:
    for wrong in ("user", "viewer", "finance", "", True, 1):
        with pytest.raises(OptionError, match="approval is the role"):
            plain.using(approval=wrong)  # type: ignore[arg-type]
    assert asked_role(careful.prepare(1).options) == "operator"
    assert asked_role(plain.prepare().options) is None
    assert careful.prepare(1).approval is False
    assert asked_role(careful.using(approval=None).prepare(1).options) is None


def careful_app(url: str) -> App:
    made = make_app(url)

    @made.task(name="careful", approval="operator")
    async def careful(x: int) -> int:
        return x

    return made


async def submit(client: Any, body: dict[str, Any]) -> tuple[int, str]:
    answer = await client.post("/api/v1/tasks", json=body)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"], answer.json()["state"]


CAREFUL = {"name": "careful", "args": [1]}
A_COMMAND = {"command": {"argv": ["true"]}}


@pytest.mark.requirement("K34", "K70", "K71", "K72", "K75")
async def test_what_a_user_submits_waits_until_an_operator_approves(serve: Serve) -> None:
    """K34, K71: `waiting` of role user is pending_approval. K70: an operator's and an admin's is pending, and nobody
    had to approve it. K72: `decided` says who approved and when, and is pending. K75: the user is refused, the second
    decision is a conflict.
    """
    async with serve(app=careful_app(serve.url)) as server:
        for body in (CAREFUL, A_COMMAND):
            id, waiting = await submit(server.user, body)
            assert waiting == "pending_approval"
            for who in (server.operator, server.admin):
                other, direct = await submit(who, body)
                assert direct == "pending"
                assert (await who.get(f"/api/v1/tasks/{other}")).json()["approval"] is None
            assert (await server.user.post(f"/api/v1/tasks/{id}/approve")).status_code == 403
            assert (await server.user.post(f"/api/v1/tasks/{id}/reject")).status_code == 403
            shown = (await server.user.get(f"/api/v1/tasks/{id}")).json()
            assert (shown["state"], shown["approval"]["status"]) == ("pending_approval", "pending")
            # A command asks for no role: any operator decides.
            assert shown["approval"]["role"] == ("operator" if body is CAREFUL else None)
            answer = await server.operator.post(f"/api/v1/tasks/{id}/approve")
            assert answer.status_code == 200, answer.text
            decided = answer.json()
            assert decided["state"] == "pending"
            assert (decided["approval"]["status"], decided["approval"]["by"]) == ("approved", "operator")
            assert decided["approval"]["at"] is not None
            assert (await server.operator.post(f"/api/v1/tasks/{id}/approve")).status_code == 409
        _, plain_state = await submit(server.user, {"name": "add", "args": [1, 2]})
        assert plain_state == "pending"


@pytest.mark.requirement("K74", "K106")
async def test_a_rejected_task_has_ended_and_others_do_not_see_it(serve: Serve) -> None:
    """K74: the state is rejected, with its reason, and no act brings it back. K106: another user is refused (403), an
    operator and an admin are not.
    """
    async with serve(app=careful_app(serve.url)) as server:
        id, _ = await submit(server.user, CAREFUL)
        assert (await server.other.get(f"/api/v1/tasks/{id}")).status_code == 403
        assert (await server.other.post(f"/api/v1/tasks/{id}/cancel")).status_code == 403
        answer = await server.operator.post(f"/api/v1/tasks/{id}/reject", json={"note": "not today"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["state"] == "rejected"
        assert answer.json()["approval"]["status"] == "rejected"
        assert answer.json()["approval"]["note"] == "not today"
        assert answer.json()["approval"]["role"] == "operator"
        assert (await server.operator.post(f"/api/v1/tasks/{id}/approve")).status_code == 409
        for who in (server.operator, server.admin, server.user):
            assert (await who.get(f"/api/v1/tasks/{id}")).status_code == 200


@pytest.mark.requirement("K73")
async def test_without_users_nothing_waits(serve: Serve) -> None:
    """K73: both a command and a function that asks for an operator are pending at once."""
    async with serve(app=careful_app(serve.url), auth=False) as server:
        assert [(await submit(server.nobody, body))[1] for body in (CAREFUL, A_COMMAND)] == ["pending", "pending"]
