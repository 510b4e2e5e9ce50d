"""The site builds without a warning and without the network, and fetches nothing from elsewhere when it is read."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.parts import missing

ROOT = Path(__file__).resolve().parents[2]
# A proxy at which nobody listens: whatever asked for the network would fail.
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for module in ("mkdocs", "material", "mkdocstrings"):
        if importlib.util.find_spec(module) is None:
            missing("docs", f"{module} is not installed")
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, **NO_NETWORK, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    said = built.stdout + built.stderr
    assert built.returncode == 0, said
    assert "WARNING" not in said
    return folder


def test_every_page_is_built_and_can_be_found(site: Path):
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[2]
    assert {page for page in pages if page not in navigation} == set(), "pages that the navigation does not lead to"
    built = {
        page.replace("index.md", "index.html") if page.endswith("index.md") else page.replace(".md", "/index.html")
        for page in pages
    }
    assert {page for page in built if not (site / page).exists()} == set()
    assert (site / "search" / "search_index.json").stat().st_size > 10_000


def test_nothing_is_fetched_from_elsewhere(site: Path):
    fetched = re.compile(
        r"<(?:script|img|iframe)[^>]+src=\"?https?://|<link[^>]+rel=\"?(?:stylesheet|preconnect)[^>]+href=\"?https?://"
    )
    assert [page.name for page in site.rglob("*.html") if fetched.search(page.read_text())] == []


def test_links_out_of_the_documentation_are_named_by_their_path(site: Path):
    page = (site / "explanation" / "promises" / "index.html").read_text()
    assert "tests/guarantees/test_1_nothing_is_lost.py" in page
    assert 'href="../../../tests' not in page
