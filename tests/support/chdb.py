"""chDB, and a ClickHouse server made of it. Both are large, and neither belongs into the process of the tests: closed,
the engine still keeps 30 threads, 400 MB and handlers of signals."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.parts import missing

ROOT = Path(__file__).parents[2]
USER, PASSWORD = "ann", "s3/cr@t:x"


def need_chdb() -> None:
    for package in ("chdb", "clickhouse_connect"):
        if find_spec(package) is None:
            missing("chdb", f"the package {package} is not installed")


def python(*arguments: str) -> subprocess.Popen[str]:
    """A Python of its own in the project's folder, with pipes for its input and its output, errors among it."""
    # Whatever the run around it leaves out, in there everything is to be run.
    apart = ("PYTEST_", "HEADRACE_TEST_ONLY_SIZED")
    environment = {key: value for key, value in os.environ.items() if not key.startswith(apart)}
    return subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.fixture(scope="session")
def clickhouse_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Of a server that knows USER with PASSWORD."""
    need_chdb()
    folder = tmp_path_factory.mktemp("clickhouse")
    with python("-m", "tests.support.clickhouse_bridge", str(folder), USER, PASSWORD) as bridge:
        assert bridge.stdin is not None
        assert bridge.stdout is not None
        port = bridge.stdout.readline()
        assert port.strip().isdecimal(), port + bridge.stdout.read()
        yield int(port)
        bridge.stdin.close()
        bridge.wait(timeout=60)
