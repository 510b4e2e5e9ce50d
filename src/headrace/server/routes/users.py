"""Users: for admins."""

from typing import Annotated, cast

from fastapi import APIRouter, Depends, Path, Request, Response

from headrace.core.accounts import Role, Scope, UserRecord
from headrace.core.errors import NotFound
from headrace.server.access import TheApp, permit
from headrace.server.auditing import audited
from headrace.server.auth.authenticating import Authenticator
from headrace.server.auth.caller import Caller
from headrace.server.auth.passwords import Passwords
from headrace.server.models.accounts import AddUser, ChangeUser, UserAnswer, UserName, UsersAnswer

router = APIRouter(prefix="/users", tags=["users"])
Admin = Annotated[Caller, Depends(permit(Scope.ADMIN, role=Role.ADMIN))]
Name = Annotated[UserName, Path(examples=["ada"])]


@router.get("")
async def list_users(app: TheApp, caller: Admin) -> UsersAnswer:
    """All of them, by name."""
    found = await app.engine.run(lambda store: store.users())
    return UsersAnswer(items=[UserAnswer.of(user) for user in found])


@router.get("/{name}")
async def get_user(name: Name, app: TheApp, caller: Admin) -> UserAnswer:
    """One user."""
    found = await app.engine.run(lambda store: store.get_user(name))
    if found is None:
        raise NotFound(f"no user {name!r}")
    return UserAnswer.of(found)


@router.post("", status_code=201)
async def add_user(body: AddUser, request: Request, response: Response, app: TheApp, caller: Admin) -> UserAnswer:
    """A name is given once. Without a password they cannot log in, and an admin makes their first token."""
    hashed = None if body.password is None else await _hash(request, body.password.get_secret_value())
    async with audited(app, caller, "users.add", f"user/{body.name}", {"role": body.role}):
        made = await app.engine.run(lambda store: store.add_user(body.name, body.role, password=hashed))
    response.headers["Location"] = f"{request.url.path}/{made.name}"
    return UserAnswer.of(made)


@router.patch("/{name}")
async def change_user(name: Name, body: ChangeUser, request: Request, app: TheApp, caller: Admin) -> UserAnswer:
    """Another role, a new password, disabled or enabled again. A new password and disabling end every session; the last
    admin stays one.
    """
    hashed = None if body.password is None else await _hash(request, body.password.get_secret_value())
    # The password itself is nobody's to read, not even here: that there is a new one is.
    said = {"role": body.role, "disabled": body.disabled, "new_login": hashed is not None}

    async def change() -> UserRecord:
        return await app.engine.run(
            lambda store: store.change_user(name, role=body.role, password=hashed, disabled=body.disabled)
        )

    async with audited(app, caller, "users.change", f"user/{name}", said):
        changed = await change()
    if isinstance(found := request.app.state.authenticate, Authenticator):
        found.forget(user=name)
    return UserAnswer.of(changed)


async def _hash(request: Request, password: str) -> str:
    return await cast("Passwords", request.app.state.passwords).hash(password)
