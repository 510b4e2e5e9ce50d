"""Processes that end with their parent, and those that no longer do."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.processes import runs
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.timeout(60),
    pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does it"),
]

PARENT = """
import os, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", sys.argv[1], str(os.getpid()), sys.argv[2]])
signal.pause()
"""
CHILD = """
import os, signal, sys
from headrace.runtime.parents import die_with_parent, outlive_parent
die_with_parent(int(sys.argv[1]))
{then}
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(sys.argv[2] + ".part", "w").write(str(os.getpid()))
os.rename(sys.argv[2] + ".part", sys.argv[2])
while True:
    signal.pause()
"""


@pytest.mark.parametrize(("then", "outlives"), [("", False), ("outlive_parent()", True)])
def test_a_process_ends_with_its_parent_unless_it_was_undone(tmp_path: Path, then: str, outlives: bool) -> None:
    said = tmp_path / "pid"
    parent = subprocess.Popen([sys.executable, "-c", PARENT, CHILD.format(then=then), str(said)])
    try:
        wait_until(said.exists)
        child = int(said.read_text())
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        if outlives:
            # Reparented: the kernel has dealt with the parent's death, and with whoever was to die of it.
            wait_until(lambda: psutil.Process(child).ppid() != parent.pid)
            assert runs(child)
            os.kill(child, signal.SIGKILL)
        wait_until(lambda: not runs(child))
    finally:
        parent.kill()
        parent.wait(10)


def test_a_process_whose_parent_is_gone_already_ends_at_once() -> None:
    code = "from headrace.runtime.parents import die_with_parent; die_with_parent(1 << 22); print('on')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (1, b"")


def test_it_is_written_in_one_place() -> None:
    source = Path(__file__).parents[2] / "src" / "headrace"
    places = [path.name for path in source.rglob("*.py") if "PDEATHSIG" in path.read_text()]
    assert places == ["parents.py"]
