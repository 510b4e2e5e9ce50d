"""tools/requirements.py: what counts as proved, which lines a range means, and what the exit status says."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "tools" / "requirements.py"
KNOWN = {f"Z{number}": f"Sentence {number}." for number in range(1, 13)}


@pytest.fixture(scope="module")
def report() -> ModuleType:
    spec = importlib.util.spec_from_file_location("requirements_report", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "tests" / "requirements"
    directory.mkdir(parents=True)
    lines = [f'[[requirement]]\nid = "{identifier}"\nsentence = "{text}"\n' for identifier, text in KNOWN.items()]
    (directory / "lines.toml").write_text("\n".join(lines))
    return tmp_path


def _record(project: Path, **outcomes: tuple[list[str], str]) -> None:
    tests = {f"tests/test_a.py::{name}": {"requirements": ids, "outcome": how} for name, (ids, how) in outcomes.items()}
    (project / ".cache").mkdir()
    (project / ".cache" / "requirements.json").write_text(json.dumps({"tests": tests}))


def _result(ids: list[str], outcome: str) -> dict[str, object]:
    return {"requirements": ids, "outcome": outcome}


def test_a_parametrised_test_proves_its_line_only_when_every_variant_passed(report: ModuleType) -> None:
    proved = report.proofs(
        {
            "a.py::test_both[sqlite]": _result(["Z1"], "passed"),
            "a.py::test_both[postgres]": _result(["Z1"], "passed"),
            "a.py::test_one[sqlite]": _result(["Z2"], "passed"),
            "a.py::test_one[postgres]": _result(["Z2"], "skipped"),
            "a.py::Group::test_plain": _result(["Z3", "Z4"], "passed"),
            "a.py::test_broken": _result(["Z5"], "failed"),
        }
    )
    assert proved == {
        "Z1": ["a.py::test_both"],
        "Z3": ["a.py::Group::test_plain"],
        "Z4": ["a.py::Group::test_plain"],
    }


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["Z1", "Z2"], ["Z1", "Z2"]),
        (["Z5-Z7"], ["Z5", "Z6", "Z7"]),
        (["Z5-7"], ["Z5", "Z6", "Z7"]),
        (["Z5\u2013Z7", "Z1"], ["Z5", "Z6", "Z7", "Z1"]),
        (["Z1, Z2,Z3"], ["Z1", "Z2", "Z3"]),
        (["Z1-Z2", "Z2-Z3"], ["Z1", "Z2", "Z3"]),
        ([], []),
    ],
)
def test_lines_and_ranges(report: ModuleType, words: list[str], expected: list[str]) -> None:
    assert report.expand(words, KNOWN) == expected


@pytest.mark.parametrize("word", ["Z99", "Q1", "Z3-Q5", "Z7-Z5", "Z10-Z13", "nonsense"])
def test_what_is_not_a_line_is_refused(report: ModuleType, word: str) -> None:
    with pytest.raises(report.UnknownLine):
        report.expand([word], KNOWN)
    assert report.main([word]) == 2


def test_asking_for_lines_fails_while_one_is_not_proved(
    report: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _record(project, test_x=(["Z1"], "passed"), test_y=(["Z2"], "failed"))
    assert report.main(["Z1"], project) == 0
    assert report.main(["Z1-Z2"], project) == 1
    printed = capsys.readouterr().out
    assert "Z2  Sentence 2." in printed
    assert "Z1  Sentence 1." not in printed


def test_asking_for_no_line_lists_all_that_is_open_and_succeeds(
    report: ModuleType, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report.main([], project) == 0
    assert "0 of 12 lines" in capsys.readouterr().out
