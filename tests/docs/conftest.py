"""What the tests of the pages share."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shortcut() -> Iterator[Path]:
    """Where commands of the pages are run (shortcut.py); its environment has no settings of the caller's."""
    folder = tempfile.TemporaryDirectory(prefix="pages-")  # short: a socket's path has 107 bytes
    path = Path(folder.name) / "socket"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HEADRACE_")}
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("shortcut.py")), "serve", str(path)],
        env={**environment, "COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb", "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        assert server.stdout.readline() == "ready\n"
        yield path
    finally:
        server.stdin.close()
        server.wait(timeout=60)
        server.stdout.close()
        folder.cleanup()
