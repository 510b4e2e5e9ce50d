"""The page about testing: its files are a project, and pytest runs it."""

import re
from pathlib import Path

import pytest

from tests.testing.test_plugin import ROOT, run
from tests.testing.test_plugin import project as project

pytestmark = pytest.mark.timeout(300)

PAGE = ROOT / "docs" / "howto" / "testing.md"
_FILE = re.compile(r"^```python\n# (\w+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_example_passes_as_a_reader_would_run_it(project: Path) -> None:
    files = dict(_FILE.findall(PAGE.read_text()))
    assert {"orders.py", "conftest.py"} < files.keys()
    suites = [name for name in files if name.startswith("test_")]
    assert len(suites) == 8
    for name, code in files.items():
        (project / name).write_text(code)
    # The cases of the whole conformance suite run elsewhere; here a few show that the page's class works.
    some = "not test_my_store or queues or checkpoints"
    out = run(project, "-k", some, "-p", "no:randomly")
    assert re.search(r"\n\d{2,} passed", out), out
    for name in suites:
        assert "def test_" in files[name] or "Conformance" in files[name]


def test_each_fixture_and_each_name_of_the_kit_is_on_the_page() -> None:
    from headrace import testing
    from headrace.testing import pytest_plugin

    text = PAGE.read_text()
    fixtures = {name for name in vars(pytest_plugin) if name.startswith("headrace_")}
    assert len(fixtures) == 6
    missing = [name for name in (*sorted(fixtures), *testing.__all__) if not re.search(rf"\b{name}\b", text)]
    # Types that a reader meets as what the others give.
    assert missing == [
        "Drained", "EnqueuedTask", "InlineMode", "MovableClock", "Override", "SkippingClock", "TemporaryDatabase",
        "TooManyRuns",
    ]  # fmt: skip
