"""Directories that outlived their owner are removed by the next; those of the living stay."""

import errno
import fcntl
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


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOLCK])
def test_a_file_system_without_locks_is_used_and_nothing_on_it_taken_for_garbage(
    place: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """What the kernel answers there; a directory whose owner cannot be told from a dead one is left alone."""

    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(number, "not here")

    living, held = _holder()
    with living:
        monkeypatch.setattr(fcntl, "flock", flock)
        with private_directory() as own, private_directory() as other:
            assert {path.name for path in place.iterdir()} == {own.name, other.name, held.name}
        assert [path.name for path in place.iterdir()] == [held.name]
        living.communicate("")


def test_another_failure_of_a_lock_is_said(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EIO, "broken disk")

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(OSError, match="broken disk"), private_directory():
        pass
    assert list(place.iterdir()) == []
