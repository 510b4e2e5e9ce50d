"""The requirement files are whole, and the marks in the tests name lines that exist."""

import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent.parent
FILES = {
    "recotem": ("R", 114),
    "aaiclick": ("A", 82),
    "kohakuriver": ("K", 108),
    "asynctaskflow": ("F", 74),
    "django_ray": ("D", 81),
}
_MARK = re.compile(r"mark\.requirement\(([^)]*)\)")


def _lines(name: str) -> list[dict[str, object]]:
    return tomllib.loads((TESTS / "requirements" / f"{name}.toml").read_text(encoding="utf-8"))["requirement"]


@pytest.mark.parametrize("name", FILES)
def test_each_file_holds_its_lines_in_order_without_a_gap(name: str) -> None:
    letter, count = FILES[name]
    assert [line["id"] for line in _lines(name)] == [f"{letter}{number}" for number in range(1, count + 1)]


def test_there_are_459_lines_and_no_other_file() -> None:
    assert {path.stem for path in (TESTS / "requirements").glob("*.toml")} == set(FILES)
    assert sum(len(_lines(name)) for name in FILES) == 459


@pytest.mark.parametrize("name", FILES)
def test_a_line_has_a_sentence_and_a_trap_has_an_id_and_a_text(name: str) -> None:
    for line in _lines(name):
        assert set(line) <= {"id", "sentence", "trap"}, line["id"]
        assert line["sentence"], line["id"]
        trap = line.get("trap")
        if trap is not None:
            assert isinstance(trap, dict)
            assert set(trap) == {"id", "text"}, line["id"]
            assert re.fullmatch(r"T-[A-Z]\d+[a-z]?", trap["id"]), line["id"]
            assert trap["text"], line["id"]


def test_every_mark_names_a_line_that_exists() -> None:
    """Read from the source rather than from this run's items, so that it also holds when one file is run alone."""
    known = {line["id"] for name in FILES for line in _lines(name)}
    wrong: list[str] = []
    for path in TESTS.rglob("test_*.py"):
        for mark in _MARK.finditer(path.read_text(encoding="utf-8")):
            ids = re.findall(r"[\"']([^\"']*)[\"']", mark[1])
            wrong.extend(f"{path.relative_to(TESTS)}: {identifier}" for identifier in ids if identifier not in known)
    assert wrong == []
