"""`headrace server` and `headrace up` as they are typed, and called over a socket."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.postgres import PostgresServer
from tests.support.processes import command_has
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(240)
CEILING = 90.0
TASKS = """
from headrace import App

app = App()

@app.task(name="add")
async def add(a: int, b: int) -> int:
    return a + b
"""


class Running:
    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def said(self) -> str:
        return self._log.read_text()

    def find(self, pattern: str) -> str:
        """The first group, once it is said."""
        found = wait_until(
            lambda: re.search(pattern, self.said) or (self.process.poll() is not None and "ended"), CEILING
        )
        assert isinstance(found, re.Match), self.said
        return found.group(1)

    @property
    def url(self) -> str:
        return self.find(r"serves its API on (http://\S+?)[;,]")

    @property
    def token(self) -> str:
        return self.find(r"shown this once: (hr_\S{43})\n")

    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children(recursive=True)

    def api(self) -> psutil.Process:
        def found() -> psutil.Process | None:
            for each in self.children():
                with suppress(psutil.NoSuchProcess):
                    if "--up-channel" in each.cmdline():
                        return each
            return None

        return wait_until(found, CEILING)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(CEILING)


@contextmanager
def command(folder: Path, url: str, *words: str, **variables: str) -> Iterator[Running]:
    (folder / "tasks.py").write_text(TASKS)
    log = folder / "said.log"
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_PORT": "0", **variables}
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", words[0], "tasks:app", *words[1:]],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield Running(process, log)
    finally:
        with suppress(psutil.NoSuchProcess):
            for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                with suppress(psutil.NoSuchProcess):
                    one.kill()
        process.wait(CEILING)
        print(log.read_text()[-4000:])


# Each in a process of its own, as it would be typed; what all of them import is imported once.
REFUSED = """
import json, os, sys
import headrace.cli.root, headrace.server.listening
from headrace.cli import main

for words in json.loads(sys.argv[1]):
    child = os.fork()
    if not child:
        sys.argv = ["headrace", *words]
        main()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"ended with {code}", file=sys.stderr, flush=True)
"""


def refusals(folder: Path, url: str, *commands: tuple[str, ...]) -> list[str]:
    """What each of them says, which ends with its exit code."""
    (folder / "tasks.py").write_text(TASKS)
    done = subprocess.run(
        [sys.executable, "-c", REFUSED, json.dumps([(name, "tasks:app", *words) for name, *words in commands])],
        cwd=folder, env={**os.environ, "HEADRACE_DATABASE_URL": url}, capture_output=True, text=True, timeout=CEILING,
        check=True,
    )  # fmt: skip
    return re.findall(r"(?s).*?ended with -?\d+\n", done.stderr)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Without the schema: `up` makes it."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'empty.db'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name = f"headrace_up_{os.getpid()}"
    yield server.create_database(name)
    server.drop_database(name)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_server_prints_its_address_and_the_first_token_and_stops_when_told(sqlite_url: str, tmp_path: Path):
    with command(tmp_path, sqlite_url, "server") as server:
        url, token = server.url, server.token
        me = httpx.get(f"{url}/api/v1/session", headers=bearer(token), timeout=CEILING)
        assert (me.status_code, me.json()["name"], me.json()["role"]) == (200, "admin", "admin")
        assert httpx.get(f"{url}/api/v1/session", timeout=CEILING).status_code == 401
        assert server.stop() == 0, server.said


def test_up_works_and_serves_and_both_stop_together(empty_url: str, tmp_path: Path):
    with command(tmp_path, empty_url, "up", "--children", "0", "--grace", "5") as up:
        url, token = up.url, up.token
        with httpx.Client(base_url=url, headers=bearer(token), timeout=CEILING) as client:
            made = client.post("/api/v1/tasks", json={"name": "add", "args": [1, 2]})
            assert made.status_code == 201, made.text
            id = made.json()["id"]
            wait_until(lambda: client.get(f"/api/v1/tasks/{id}").json()["state"] == "completed", CEILING)
        children = up.children()
        assert up.stop() == 0, up.said
    assert not psutil.wait_procs(children, timeout=CEILING)[1], "nobody is left"


def test_up_that_is_told_to_stop_answers_what_it_was_asked(sqlite_url: str, tmp_path: Path):
    """The workers have long ended when the rest of the request comes: they take nothing from it."""
    with command(tmp_path, sqlite_url, "up", "--children", "0", "--grace", "5") as up:
        address, token, api = httpx.URL(up.url), up.token, up.api()
        body = json.dumps({"name": "add", "args": [1, 2]}).encode()
        head = (
            f"POST /api/v1/tasks HTTP/1.1\r\nHost: {address.host}\r\nAuthorization: Bearer {token}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        place = (address.host, address.port or 0)
        with socket.create_connection(place, timeout=CEILING) as asking:
            asking.sendall(head.encode() + body[:5])
            # One that was asked later is answered: so this one has come.
            assert httpx.get(f"{address}/api/v1/session", headers=bearer(token), timeout=CEILING).status_code == 200
            up.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not accepts(place), CEILING)
            with suppress(psutil.TimeoutExpired):
                api.wait(3)
            with suppress(OSError):  # it has gone without a word
                asking.sendall(body[5:])
            answer = b""
            with suppress(ConnectionError):
                while more := asking.recv(65_536):
                    answer += more
            assert answer.startswith(b"HTTP/1.1 201 "), answer
        assert up.process.wait(CEILING) == 0, up.said


def accepts(place: tuple[str, int]) -> bool:
    with suppress(OSError), socket.create_connection(place, timeout=CEILING):
        return True
    return False


def test_up_ends_when_its_api_does_and_the_api_when_up_is_killed(sqlite_url: str, tmp_path: Path):
    with command(tmp_path, sqlite_url, "up", "--children", "0", "--grace", "5") as up:
        assert up.url
        token = up.token
        up.api().kill()
        assert up.process.wait(CEILING) == 1, up.said
        assert "the API has ended by itself" in up.said
    (tmp_path / "said.log").unlink()
    with command(tmp_path, sqlite_url, "up", "--children", "0") as up:
        assert httpx.get(f"{up.url}/api/v1/session", headers=bearer(token), timeout=CEILING).status_code == 200
        assert "hr_" not in up.said, "a second start makes no admin"
        api = up.api()
        up.process.kill()
        api.wait(CEILING)


def test_up_without_an_api_serves_none(sqlite_url: str, tmp_path: Path):
    with command(tmp_path, sqlite_url, "up", "--children", "0", "--no-api") as up:
        assert up.find("(takes every queue)")
        assert not any(command_has(each, "--up-channel") for each in up.children())
        assert up.stop() == 0, up.said
        assert "serves its API" not in up.said


def test_what_cannot_be_served_is_said_with_what_to_do(sqlite_url: str, tmp_path: Path):
    """A port in use, and no users where others reach it: of `server` and of `up`."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        in_use, open_door = ("--port", port), ("--no-auth", "--host", "0.0.0.0", "--port", "0")
        said = refusals(
            tmp_path,
            sqlite_url,
            ("server", *in_use),
            ("up", *in_use),
            ("server", *open_door),
            ("up", *open_door),
            ("up", "--trust-proxy", "the proxy"),
        )
    assert len(said) == 5, said
    assert all(each.endswith("ended with 2\n") and "Traceback" not in each for each in said), said
    assert all(f"port {port} on 127.0.0.1 is in use" in each and "--port" in each for each in said[:2]), said
    assert all("--no-auth-for-everyone" in each for each in said[2:4]), said
    assert "--trust-proxy takes the address or the network of a proxy" in said[4]


def test_no_auth_serves_without_users(sqlite_url: str, tmp_path: Path):
    with command(tmp_path, sqlite_url, "server", "--no-auth-for-everyone", "--host", "0.0.0.0") as server:
        me = httpx.get(f"{server.url}/api/v1/session", timeout=CEILING).json()
        assert (me["auth"], me["role"]) == (False, "admin")
        assert "hr_" not in server.said
        assert server.stop(signal.SIGINT) == 0


@pytest.mark.parametrize(
    ("words", "trusted"),
    [
        (("server",), False),
        (("server", "--trust-proxy", "127.0.0.1"), True),
        (("up", "--children", "0", "--trust-proxy", "192.0.2.200", "--trust-proxy", "127.0.0.1"), True),
    ],
)
def test_forwarded_headers_count_only_from_a_proxy_that_was_named(
    tmp_path: Path, words: tuple[str, ...], trusted: bool
) -> None:
    """Otherwise everybody has as many addresses as they like, and the rate limit holds for nobody."""
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    variables = {"HEADRACE_RATE_LIMIT": "3", "FORWARDED_ALLOW_IPS": "*"}
    with command(tmp_path, url, *words, **variables) as running:
        callers = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(5)]
        codes = [
            httpx.get(f"{running.url}/api/docs", headers=caller, timeout=CEILING).status_code for caller in callers
        ]
    assert codes == [200] * (5 if trusted else 3) + [429] * (0 if trusted else 2)
