"""Pages that are made from the code, the marks of the tests and the requirement lines say what those say now."""

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


def tool(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"tools_{name}", ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["references", "specifications"])
def test_the_pages_are_what_the_tool_makes(name: str):
    check = subprocess.run(
        [sys.executable, f"tools/{name}.py", "--check"], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert check.returncode == 0, f"{check.stderr}(`make pages` writes them all)"


def test_every_line_stands_on_the_page_of_its_specification():
    pages = tool("specifications").pages(ROOT)
    rows = [row for text in pages.values() for row in re.findall(r"^\| ([A-Z]\d+) \|", text, re.MULTILINE)]
    lines = [
        line["id"]
        for path in (ROOT / "tests" / "requirements").glob("*.toml")
        for line in tomllib.loads(path.read_text())["requirement"]
    ]
    assert len(lines) == 459
    assert sorted(rows) == sorted(lines)


def test_what_shows_a_line_is_found_in_every_form(tmp_path: Path):
    """A mark on a test, a case of the shipped suite, and the table of the executors' suite."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "src" / "headrace" / "testing").mkdir(parents=True)
    (tmp_path / "tests" / "test_a.py").write_text(
        '@pytest.mark.requirement("A1", "A2")\ndef test_x(): ...\n\nPROVES = {"a_case": ("A3",)}\n# requirement\n'
    )
    (tmp_path / "src/headrace/testing/b.py").write_text('@cases.add("A1")\nasync def the_case(): ...\n')
    assert tool("specifications").find_marks(tmp_path) == {
        "A1": ["tests/test_a.py::test_x", "src/headrace/testing/b.py::the_case"],
        "A2": ["tests/test_a.py::test_x"],
        "A3": ["tests/test_a.py::a_case"],
    }


def test_the_places_that_the_specifications_name_exist():
    places = tomllib.loads((ROOT / "tools" / "specifications.toml").read_text())
    named = {
        path
        for specification in places.values()
        if isinstance(specification, dict)
        for section in specification["sections"].values()
        for path in section.get("lives", ())
    }
    assert named
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_a_section_says_where_it_lives_or_what_it_waits_for():
    places = tomllib.loads((ROOT / "tools" / "specifications.toml").read_text())
    silent = [
        (name, section)
        for name, specification in places.items()
        if isinstance(specification, dict)
        for section, place in specification["sections"].items()
        if not place.get("lives") and not place.get("waits_for")
    ]
    assert silent == []


def test_every_promise_has_its_file_of_tests():
    """The README's promises, the page that explains them and the files that prove them belong together."""
    promises = (ROOT / "docs" / "explanation" / "promises.md").read_text()
    explained = re.findall(r"^## (\d+)\. (.+)$", promises, re.MULTILINE)
    files = {path.name.split("_")[1]: path for path in (ROOT / "tests" / "guarantees").glob("test_[0-9]*_*.py")}
    promised = re.findall(r"^(\d+)\. \*\*(.+?)[.*]", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert [number for number, _ in explained] == [str(number) for number in range(1, 10)]
    assert [number for number, _ in promised] == [number for number, _ in explained]
    assert {path.name for path in files.values() if path.name not in promises} == set(), (
        "proofs that the page is silent of"
    )
    for number, title in explained:
        section = promises.partition(f"## {number}. {title}")[2].partition("\n## ")[0]
        assert f"tests/guarantees/{files[number].name}" in section, f"promise {number} does not name its tests"


def test_every_test_that_the_promises_name_exists():
    promises = (ROOT / "docs" / "explanation" / "promises.md").read_text()
    named = re.findall(r"`(test_\w+)`", promises)
    assert len(named) >= 9, "each promise names at least one test"
    defined = {
        test
        for path in (ROOT / "tests").rglob("test_*.py")
        for test in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert set(named) - defined == set()
