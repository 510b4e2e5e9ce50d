"""Records which requirement lines were proved: `@pytest.mark.requirement("A37")` and a passing test.

The record is .cache/requirements.json: {"tests": {node id: {"requirements": [...], "outcome": ...}}}, read by
tools/requirements.py. A run of the whole suite writes it anew; any other run changes only the tests it ran.

In a parallel run (`pytest -n 2`) the process that was started records: the reports of its workers come to it, and
what they left out is told when they end.
"""

import json
from pathlib import Path

import pytest

from tests.support.sizes import ONLY_SIZED

_PROPERTY = "requirement"
_LEFT_OUT = "requirements-left-out"
RECORD = Path(".cache", "requirements.json")


class Recorder:
    def __init__(self, path: Path, *, afresh: bool) -> None:
        self._path = path
        self._tests: dict[str, dict[str, object]] = {}
        if not afresh and path.exists():
            self._tests = json.loads(path.read_text())["tests"]

    def record(self, nodeid: str, ids: list[str], outcome: str) -> None:
        self._tests[nodeid] = {"requirements": ids, "outcome": outcome}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        ids = [str(value) for name, value in report.user_properties if name == _PROPERTY]
        if report.when == "???":
            # The worker died in this test (xdist): nothing is known of it but its name, so no variant may prove it.
            self.record(report.nodeid, [], "failed")
            return
        if not ids:
            return
        # Set-up, call and tear-down report in this order: a failed tear-down takes back what the call has proved.
        if report.when == "call" or report.outcome != "passed":
            self.record(report.nodeid, ids, "xfailed" if hasattr(report, "wasxfail") else report.outcome)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        # A variant that did not run has proved nothing, so the test as a whole has not either.
        self._leave_out({item.nodeid: ids for item in items if (ids := _ids(item))})

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object) -> None:
        # A worker that died has no output.
        self._leave_out(getattr(node, "workeroutput", {}).get(_LEFT_OUT, {}))

    def _leave_out(self, tests: dict[str, list[str]]) -> None:
        for nodeid, ids in tests.items():
            if nodeid not in self._tests:
                self.record(nodeid, ids, "deselected")

    def pytest_sessionfinish(self) -> None:
        self._path.parent.mkdir(exist_ok=True)
        # Written beside and renamed: runs at the same time may lose each other's lines, never the file.
        beside = self._path.with_name(f"{self._path.name}.new")
        beside.write_text(json.dumps({"tests": self._tests}, indent=1, sort_keys=True))
        beside.replace(self._path)


class Teller:
    """A worker's part: it selects the tests, so it alone knows what was left out."""

    def __init__(self, output: dict[str, object]) -> None:
        self._left_out: dict[str, list[str]] = {}
        output[_LEFT_OUT] = self._left_out

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        self._left_out.update({item.nodeid: ids for item in items if (ids := _ids(item))})


def _ids(item: pytest.Item) -> list[str]:
    return [requirement for mark in item.iter_markers("requirement") for requirement in mark.args]


def pytest_configure(config: pytest.Config) -> None:
    if config.option.collectonly:
        return
    if hasattr(config, "workeroutput"):
        config.pluginmanager.register(Teller(config.workeroutput), "requirement-teller")
        return
    whole = config.args_source is not pytest.Config.ArgsSource.ARGS or [Path(a).name for a in config.args] == ["tests"]
    afresh = whole and not config.option.keyword and not config.option.markexpr and not ONLY_SIZED
    config.pluginmanager.register(Recorder(config.rootpath / RECORD, afresh=afresh), "requirement-recorder")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        item.user_properties.extend((_PROPERTY, requirement) for requirement in _ids(item))
