"""A type checker refuses wrong arguments: without its marks, `expected.py` must have exactly the errors they name."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
EXPECTED = HERE / "expected.py"


_MARK = re.compile(r"# pyright: ignore\[([\w, ]+)\]")


def marked() -> set[tuple[int, str]]:
    lines = EXPECTED.read_text().splitlines()
    return {
        (number, rule)
        for number, line in enumerate(lines, 1)
        if (found := _MARK.search(line))
        for rule in found[1].split(", ")
    }


def test_the_checker_finds_exactly_the_marked_errors(tmp_path: Path):
    pytest.importorskip("basedpyright")
    copy = tmp_path / "expected.py"
    copy.write_text(_MARK.sub("", EXPECTED.read_text()))
    configuration = tmp_path / "pyrightconfig.json"
    configuration.write_text(
        json.dumps({"typeCheckingMode": "strict", "pythonVersion": "3.12", "include": [str(copy)]})
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "basedpyright",
            "-p",
            str(configuration),
            "--pythonpath",
            sys.executable,
            "--outputjson",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    report = json.loads(done.stdout)
    errors = {
        (entry["range"]["start"]["line"] + 1, entry.get("rule", ""))
        for entry in report["generalDiagnostics"]
        if entry["severity"] == "error"
    }
    assert errors == marked()
    assert len(errors) > 12
