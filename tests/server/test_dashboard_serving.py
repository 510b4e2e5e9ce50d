"""The built dashboard is shown wherever the API has no route, and only to who wants a page."""

import gzip
import os
import subprocess
import sys
import zipfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from headrace.server.dashboard import Dashboard
from tests.server.serving import Serve
from tests.support.parts import missing

_ROOT = Path(__file__).parents[2]
_PAGE = "<!doctype html><title>Headrace</title>"
_SCRIPT = "export const answer = 42;\n" * 100
HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Accept-Encoding": "identity"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(_PAGE)
    (folder / "theme.js").write_text("1")
    (folder / ".stamp").write_text("secret")
    (folder / "assets/index-abc.js").write_text(_SCRIPT)
    (folder / "assets/index-abc.js.gz").write_bytes(gzip.compress(_SCRIPT.encode()))
    (folder / "assets/index-abc.js.br").write_bytes(b"brotli")
    return folder


@asynccontextmanager
async def showing(serve: Serve, folder: Path) -> AsyncGenerator[httpx.AsyncClient]:
    async with serve() as server:
        server.api.router.default = Dashboard(server.api.router.not_found, folder)
        yield server.nobody


@pytest.mark.parametrize("path", ["/", "/tasks", "/tasks/17", "/jobs/3/graph?tab=gantt", "/queues/a%2Fb", "/apiary"])
async def test_an_address_of_the_dashboard_is_its_page(serve_sqlite: Serve, built: Path, path: str):
    async with showing(serve_sqlite, built) as nobody:
        answer = await nobody.get(path, headers=HTML)
    assert (answer.status_code, answer.text) == (200, _PAGE)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"


async def test_the_page_may_run_no_script_but_the_files_of_this_server(serve_sqlite: Serve, built: Path):
    async with showing(serve_sqlite, built) as nobody:
        answer = await nobody.get("/", headers=HTML)
    policy = dict(each.strip().split(" ", 1) for each in answer.headers["content-security-policy"].split(";"))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["x-frame-options"] == "DENY"


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("GET", "/nowhere", {"Accept": "*/*"}),
        ("GET", "/nowhere", {"Accept": "application/json"}),
        ("POST", "/nowhere", HTML),
        ("GET", "/api/v1/nowhere", HTML),
        ("GET", "/api", HTML),
        ("GET", "/ws/nowhere/", HTML),
        ("GET", "/assets/gone.js", HTML),
        ("GET", "/.stamp", {"Accept": "*/*"}),
        ("GET", "/assets/../../dashboard.py", {"Accept": "*/*"}),
        ("GET", "/assets/%2e%2e/%2e%2e/dashboard.py", {"Accept": "*/*"}),
    ],
)
async def test_what_is_no_page_is_a_problem_as_before(
    serve_sqlite: Serve, built: Path, method: str, path: str, headers: dict[str, str]
):
    async with showing(serve_sqlite, built) as nobody:
        answer = await nobody.request(method, path, headers=headers)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("accept", ["*/*", "text/html", None])
async def test_at_the_root_anybody_is_shown_the_page(serve_sqlite: Serve, built: Path, accept: str | None):
    """Also who looks with curl; but not a program that wants JSON."""
    async with showing(serve_sqlite, built) as nobody:
        answer = await nobody.get("/", headers={} if accept is None else {"Accept": accept})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert (await nobody.get("/", headers={"Accept": "application/json"})).status_code == 404


async def test_routes_of_the_api_win(serve_sqlite: Serve, built: Path):
    (built / "live").write_text("not this")
    async with showing(serve_sqlite, built) as nobody:
        assert (await nobody.get("/live", headers=HTML)).json() == {"live": True}


async def test_files_with_a_hash_are_kept_for_good_and_others_are_asked_for(serve_sqlite: Serve, built: Path):
    async with showing(serve_sqlite, built) as nobody:
        script = await nobody.get("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
        theme = await nobody.get("/theme.js")
        again = await nobody.get("/theme.js", headers={"If-None-Match": theme.headers["etag"]})
        head = await nobody.head("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
    assert script.text == _SCRIPT
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert theme.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert head.headers["content-length"] == str(len(_SCRIPT))


@pytest.mark.parametrize(
    ("takes", "encoding"),
    [("gzip, deflate, br", "br"), ("gzip;q=1.0, deflate", "gzip"), ("identity", None)],
)
async def test_what_was_compressed_beforehand_is_sent_so(
    serve_sqlite: Serve, built: Path, takes: str, encoding: str | None
):
    expected = {"br": b"brotli", "gzip": (built / "assets/index-abc.js.gz").read_bytes(), None: _SCRIPT.encode()}
    async with (
        showing(serve_sqlite, built) as nobody,
        nobody.stream("GET", "/assets/index-abc.js", headers={"Accept-Encoding": takes}) as answer,
    ):
        raw = b"".join([part async for part in answer.aiter_raw()])
    assert answer.headers.get("content-encoding") == encoding
    assert "accept-encoding" in answer.headers["vary"].lower()
    assert raw == expected[encoding]


def build_anew(folder: Path) -> None:
    (folder / "index.html").unlink()
    (folder / "index.html").write_text("another build")
    (folder / "assets/index-abc.js").rename(folder / "assets/index-def.js")


async def test_without_built_files_a_page_says_how_to_build_them_and_shows_them_when_they_are(
    serve_sqlite: Serve, built: Path
):
    elsewhere = built.parent / "later"
    os.rename(built, elsewhere)
    async with showing(serve_sqlite, built) as nobody:
        before = await nobody.get("/tasks", headers=HTML)
        script = await nobody.get("/assets/index-abc.js")
        os.rename(elsewhere, built)
        after = await nobody.get("/tasks", headers=HTML)
        build_anew(built)
        anew = await nobody.get("/tasks", headers=HTML)
        gone = await nobody.get("/assets/index-abc.js")
    assert before.status_code == 404
    assert "make dashboard" in before.text
    assert "/api/docs" in before.text
    assert script.status_code == 404
    assert (after.status_code, after.text) == (200, _PAGE)
    assert anew.text == "another build"
    assert gone.status_code == 404


async def test_every_server_has_one(serve_sqlite: Serve):
    async with serve_sqlite() as server:
        assert isinstance(server.api.router.default, Dashboard)
        answer = await server.nobody.get("/tasks", headers=HTML)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "Headrace" in answer.text


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_wheel_carries_the_dashboard(tmp_path: Path):
    """Built by the hook, with node; `tools/dashboard` says why where that cannot be had."""
    made = subprocess.run(["sh", "tools/dashboard", "build"], cwd=_ROOT, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        missing("browser", made.stderr.strip().splitlines()[0])
    command = [sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--wheel-dir", str(tmp_path), str(_ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "headrace/server/static/index.html" in names
    assert any(name.startswith("headrace/server/static/assets/index-") and name.endswith(".js.br") for name in names)
    assert not any("node_modules" in name for name in names)
