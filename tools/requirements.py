"""Which lines of tests/requirements/*.toml are proved by a test that passed in the last run.

    python tools/requirements.py                     every line that no passing test names
    python tools/requirements.py A1 A2 K5-K9         only these; exit status 1 when one of them is not proved

A test proves a line when it carries `@pytest.mark.requirement("A1")` and passed; a parametrised test only when every
variant did. The record of the last run is .cache/requirements.json (tests/support/requirements.py writes it).
Standard library only: it runs with any Python >= 3.12, without the project's environment.
"""

import json
import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# A5, or a range: A5-A9, A5-9, A5–A9 (en dash).
_RANGE = re.compile(r"([A-Z])(\d+)(?:[-\u2013]([A-Z]?)(\d+))?")


class UnknownLine(Exception):
    """What was asked for is not a requirement line."""


def load_requirements(directory: Path) -> dict[str, str]:
    """Every line of every file: its id and its sentence, in the order of the files."""
    lines: dict[str, str] = {}
    for path in sorted(directory.glob("*.toml")):
        for requirement in tomllib.loads(path.read_text(encoding="utf-8"))["requirement"]:
            if requirement["id"] in lines:
                raise ValueError(f"{path.name}: {requirement['id']} is defined twice")
            lines[requirement["id"]] = requirement["sentence"]
    return lines


def proofs(record: dict[str, dict[str, object]]) -> dict[str, list[str]]:
    """For each line, the tests that prove it: `record` maps a node id to its marks and its outcome."""
    outcomes: dict[str, set[object]] = defaultdict(set)
    named: dict[str, set[str]] = defaultdict(set)
    for nodeid, result in record.items():
        test = whole_test(nodeid)
        outcomes[test].add(result["outcome"])
        ids = result["requirements"]
        assert isinstance(ids, list)
        named[test].update(ids)
    proved: dict[str, list[str]] = defaultdict(list)
    for test in sorted(named):
        if outcomes[test] == {"passed"}:
            for identifier in named[test]:
                proved[identifier].append(test)
    return dict(proved)


def whole_test(nodeid: str) -> str:
    """The test without its variant: `a.py::test_x[sqlite]` gives `a.py::test_x`."""
    path, separator, name = nodeid.rpartition("::")
    return path + separator + name.partition("[")[0]


def expand(words: list[str], known: dict[str, str]) -> list[str]:
    """The ids meant by words such as `A1`, `A5-A9` or `A1–A27`; commas and spaces separate."""
    ids: list[str] = []
    for word in re.split(r"[,\s]+", " ".join(words).strip()):
        if not word:
            continue
        match = _RANGE.fullmatch(word)
        if match is None or match[3] not in (None, "", match[1]):
            raise UnknownLine(f"{word!r} is neither a line (A1) nor a range (A1-A27)")
        numbers = range(int(match[2]), int(match[4] or match[2]) + 1)
        wanted = [f"{match[1]}{number}" for number in numbers]
        unknown = [identifier for identifier in wanted if identifier not in known]
        if unknown or not wanted:
            raise UnknownLine(f"{word}: no such line: {', '.join(unknown) or 'the range is empty'}")
        ids.extend(identifier for identifier in wanted if identifier not in ids)
    return ids


def main(arguments: list[str], root: Path = ROOT) -> int:
    lines = load_requirements(root / "tests" / "requirements")
    try:
        chosen = expand(arguments, lines)
    except UnknownLine as unknown:
        print(f"requirements: {unknown}", file=sys.stderr)
        return 2
    record = root / ".cache" / "requirements.json"
    if not record.exists():
        print("requirements: no test run is recorded yet; run `make test` first", file=sys.stderr)
    proved = proofs(json.loads(record.read_text())["tests"]) if record.exists() else {}

    asked = chosen or list(lines)
    unproved = [identifier for identifier in asked if identifier not in proved]
    for identifier in unproved:
        print(f"{identifier:>5}  {lines[identifier]}")
    print(f"{len(asked) - len(unproved)} of {len(asked)} lines are proved by a passing test, {len(unproved)} are not.")
    return 1 if chosen and unproved else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
