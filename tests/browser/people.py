"""Somebody of every role, with a password, and the cookies of a session of theirs."""

from functools import cache

import httpx

from headrace import App
from headrace.core.accounts import Role
from headrace.server.auth.passwords import hash_password

PASSWORD = "correct horse battery"
PEOPLE = {
    "vera": Role.VIEWER,
    "uma": Role.USER,
    "ugo": Role.USER,
    "oskar": Role.OPERATOR,
    "ada": Role.ADMIN,
}


async def let_in(app: App) -> None:
    for name, role in PEOPLE.items():
        await app.users.aadd(name, role, password_hash=hashed_password())


@cache
def hashed_password() -> str:
    """To hash takes long, on purpose; they have one password."""
    return hash_password(PASSWORD)


class Sessions:
    """Cookies by name of the person: each logs in once, over HTTP as the page does."""

    # A client that acts as somebody, where a test needs something of theirs before it opens a page.
    def client(self, name: str) -> httpx.Client:
        cookies = {each["name"]: each["value"] for each in self.cookies(name)}
        headers = {"Origin": self._address, "X-CSRF-Token": cookies["headrace_csrf"]}
        return httpx.Client(base_url=f"{self._address}/api/v1", cookies=cookies, headers=headers, timeout=60)

    def __init__(self, address: str) -> None:
        self._address = address
        self._cookies: dict[str, list[dict[str, str]]] = {}

    def cookies(self, name: str) -> list[dict[str, str]]:
        if name not in self._cookies:
            self._cookies[name] = self.log_in(name)
        return self._cookies[name]

    def log_in(self, name: str) -> list[dict[str, str]]:
        """One session more, which nobody else uses."""
        with httpx.Client(base_url=self._address, headers={"Origin": self._address}, timeout=60) as client:
            answer = client.post("/api/v1/session", json={"name": name, "password": PASSWORD})
            assert answer.status_code == 201, answer.text
            return [{"name": each.name, "value": each.value or "", "url": self._address} for each in client.cookies.jar]
