"""Directories that outlived their owner are removed by the next; those of the living stay."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from headrace.worker.directories import PREFIX, private_directory

_HOLD = """
import sys
from headrace.worker.directories import private_directory
with private_directory() as path:
    print(path, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def _holder() -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen([sys.executable, "-c", _HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_what_a_killed_owner_left_is_removed_and_what_a_living_one_has_stays(place: Path) -> None:
    killed, forgotten = _holder()
    living, held = _holder()
    foreign = place / f"{PREFIX}of-someone-else"
    foreign.mkdir()
    with killed, living:
        (forgotten / "slots").write_text("x")
        killed.kill()
        killed.wait()
        with private_directory() as own:
            assert not forgotten.exists()
            assert held.exists()
            assert foreign.exists()
        assert not own.exists()
        living.communicate("")
    assert [path.name for path in place.iterdir()] == [foreign.name]
