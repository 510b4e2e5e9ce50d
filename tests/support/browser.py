"""A browser for the tests of the dashboard: Chromium of the machine, driven by Playwright's Python package. The browser
that Playwright would download by itself is never asked for.
"""

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from tests.support.parts import missing

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "src" / "headrace" / "server" / "static" / "index.html"
AXE = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# As root a sandbox is refused, and nothing in there is foreign. The rest keeps it from calling home.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",  # 64 MB in many containers
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)


def find_chromium() -> str | None:
    """HEADRACE_TEST_CHROMIUM, or what the machine has."""
    given = os.environ.get("HEADRACE_TEST_CHROMIUM")
    found = [shutil.which(each) for each in ((given,) if given else _NAMES)]
    return next((each for each in found if each is not None), None)


def need_browser() -> str:
    """The path of Chromium. Skips, or fails under HEADRACE_REQUIRE=browser, where something is not there."""
    if find_spec("playwright") is None:
        missing("browser", "the package playwright is not installed")
    chromium = find_chromium()
    if chromium is None:
        missing("browser", "there is no Chromium")
    if not PAGE.exists():
        missing("browser", "the dashboard is not built")
    return chromium


def need_axe() -> str:
    """The text of axe-core, which looks for what keeps people out."""
    if not AXE.exists():
        missing("browser", "axe-core is not installed")
    return AXE.read_text()
