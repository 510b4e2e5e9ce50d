"""`tools/dashboard build`: once, with the node that can be had, and without harm where there is none."""

import shutil
import subprocess
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_TOOL = _ROOT / "tools/dashboard"
# A node that is new enough, and an npm that installs and builds by writing files; each call is a line of `calls`.
_NODE = """#!/bin/sh
case $1 in
    -e) exit {good} ;;
    -p) echo "{bin}/npm"; exit 0 ;;
esac
shift
echo "$*" >>"{calls}"
case $* in
    ci*) {fail_ci}; mkdir -p node_modules ;;
    *build*) {fail_build}; mkdir -p ../src/headrace/server/static
        cd ../src/headrace/server/static; echo page >index.html ;;
esac
"""


class Checkout:
    """A folder that looks like the project, with its own node."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin, self.calls = folder / "bin", folder / "calls"
        self.page = folder / "src/headrace/server/static/index.html"
        for part in ("public", "scripts", "src", "../bin", "../tools", "../src/headrace/server"):
            (folder / "dashboard" / part).mkdir(parents=True)
        for file in ("index.html", "package-lock.json", "vite.config.ts", "src/main.tsx"):
            (folder / "dashboard" / file).write_text(file)
        shutil.copy(_TOOL, folder / "tools/dashboard")
        # pip is asked for the wheel of node, and has none.
        (folder / "tools/find-python").write_text('echo "$PWD/bin/nothing"\n')
        self.node()

    def node(self, *, good: bool = True, fail_ci: bool = False, fail_build: bool = False) -> None:
        for name in ("node", "npm"):
            script = self.bin / name
            script.write_text(
                _NODE.format(
                    good=0 if good else 1,
                    bin=self.bin,
                    calls=self.calls,
                    fail_ci="echo no registry >&2; exit 1" if fail_ci else ":",
                    fail_build="echo broken >&2; exit 1" if fail_build else ":",
                )
            )
            script.chmod(0o755)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", "HOME": str(self.folder)}
        return subprocess.run(
            ["sh", "tools/dashboard", *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    def called(self) -> list[str]:
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return lines


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "a path with spaces")


def test_a_second_run_calls_nothing(checkout: Checkout):
    first = checkout.run("build")
    assert (first.returncode, first.stderr) == (0, "")
    assert checkout.page.read_text() == "page\n"
    assert [call.split()[0] for call in checkout.called()] == ["ci", "run"]
    second = checkout.run("build")
    assert (second.returncode, second.stdout, checkout.called()) == (0, "", [])


@pytest.mark.parametrize(
    ("changed", "calls"),
    [
        ("src/main.tsx", ["run"]),
        ("public/mark.svg", ["run"]),
        ("package-lock.json", ["ci", "run"]),
        ("src/main.test.tsx", []),
        ("README.md", []),
    ],
)
def test_it_is_built_again_when_what_it_is_made_of_changes(checkout: Checkout, changed: str, calls: list[str]):
    checkout.run("build")
    checkout.called()
    (checkout.folder / "dashboard" / changed).write_text("changed")
    assert checkout.run("build").returncode == 0
    assert [call.split()[0] for call in checkout.called()] == calls


def test_parts_for_tests_are_not_installed_to_build_and_not_taken_away_by_it(checkout: Checkout):
    checkout.run("build")
    assert "--omit=dev" in checkout.called()[0]
    (checkout.folder / "dashboard/node_modules/vitest").mkdir()
    (checkout.folder / "dashboard/src/main.tsx").write_text("changed")
    checkout.run("build")
    assert "--include=dev" in checkout.called()[0]


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ({"good": False}, "there is no node (20.19 or newer)"),
        ({"fail_ci": True}, "npm could not install its parts"),
        ({"fail_build": True}, "its build failed"),
    ],
)
def test_where_it_cannot_be_built_one_line_says_so_and_the_demo_goes_on(
    checkout: Checkout, trouble: dict[str, bool], why: str
):
    checkout.node(**trouble)
    optional = checkout.run("build", "--optional")
    assert optional.returncode == 0
    [line] = [line for line in optional.stdout.splitlines() if line.startswith("The dashboard is not built")]
    assert why in line
    assert not checkout.page.exists()
    required = checkout.run("build")
    assert required.returncode == 1
    assert why in required.stderr
    if "good" not in trouble:
        assert "no registry" in required.stderr or "broken" in required.stderr, "the tool's own words are shown"


def test_what_was_built_before_a_failed_build_is_not_taken_for_new(checkout: Checkout):
    checkout.run("build")
    (checkout.folder / "dashboard/src/main.tsx").write_text("broken")
    checkout.node(fail_build=True)
    assert checkout.run("build").returncode == 1
    checkout.node()
    checkout.called()
    assert checkout.run("build").returncode == 0
    assert [call.split()[0] for call in checkout.called()] == ["run"]


def test_an_unknown_act_is_refused(checkout: Checkout):
    assert checkout.run("paint").returncode == 2
    assert checkout.run().returncode != 0


def test_the_demo_builds_it_where_that_can_be_done():
    assert "sh tools/dashboard build --optional" in (_ROOT / "Makefile").read_text()
