"""Tables as files: what is read for a count and for a slice, what a crash leaves, and what a broken manifest says."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.core.errors import DataError, NotFound, ObjectExists
from headrace.data import Data, Draft
from headrace.data.formats.arrow import ArrowBackend
from headrace.data.formats.files import LocalFiles

DRAFT = Draft(id="obj_a", created_at=datetime(2030, 1, 1, tzinfo=UTC))


class CountingFiles(LocalFiles):
    """Counts the bytes that readers take out of data files."""

    opened = 0
    read = 0

    def open(self, folder: str, name: str) -> AbstractContextManager[Any]:
        self.opened += 1
        return _Counted(self, self.root / folder / name)


class _Counted:
    """A file object that says how much was read."""

    def __init__(self, files: CountingFiles, path: Path) -> None:
        self._files = files
        self._file = path.open("rb")

    def read(self, size: int = -1) -> bytes:
        found = self._file.read(size)
        self._files.read += len(found)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> "_Counted":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def numbers(rows: int) -> pa.Table:
    text = pa.array([f"row number {n}" for n in range(rows)], pa.string())
    return pa.table({"n": pa.array(range(rows), pa.int64()), "text": text})


def test_a_count_reads_no_data(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    made = data.create(numbers(30_000))
    for file in tmp_path.glob("*/part-*"):
        file.unlink()
    found = Data(str(tmp_path)).open(made.id)
    assert found.known().rows == 30_000
    assert found.known().schema == numbers(0).schema
    assert [meta.rows for meta in data.list()] == [30_000]
    with pytest.raises(NotFound, match="dropped or replaced while it was read"):
        found.table()


def test_a_slice_reads_only_what_it_needs(tmp_path: Path) -> None:
    """Of 700,000 rows in two files of 64 row groups: one file is opened, and about one group of its 64 is read."""
    files = CountingFiles(tmp_path)
    backend = ArrowBackend(files)
    table = numbers(700_000)
    meta = backend.write(DRAFT, table.schema, table.to_batches())
    assert len(list(tmp_path.glob("*/part-*"))) == 2
    found = pa.Table.from_batches(backend.read("obj_a", offset=650_000, limit=10_000), table.schema)
    assert found.equals(table.slice(650_000, 10_000))
    assert files.opened == 1
    assert 0 < files.read < meta.bytes / 10
    files.opened = files.read = 0
    batches = list(backend.read("obj_a", offset=10_000, limit=20_000, columns=["n"]))
    assert files.opened == 1
    assert files.read < meta.bytes / 20
    assert sum(batch.num_rows for batch in batches) == 20_000


def test_wide_rows_make_small_groups(tmp_path: Path) -> None:
    backend = ArrowBackend(LocalFiles(tmp_path))
    table = pa.table({"blob": [os.urandom(1000) * 100 for _ in range(500)]})  # 50 MB
    backend.write(DRAFT, table.schema, table.to_batches())
    manifest = json.loads((tmp_path / "obj_a" / "object.json").read_bytes())
    groups = [rows for file in manifest["files"] for rows in file["groups"]]
    assert sum(groups) == 500
    assert max(groups) * 100_000 <= 17_000_000


def test_parts_are_linked_not_copied(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    first, second = data.create(numbers(100)), data.create(numbers(200))
    both = data.concat([first, second, first])
    kept = sorted(file.stat().st_ino for file in (tmp_path / both.id).glob("part-*"))
    source = [next((tmp_path / each.id).glob("part-*")).stat().st_ino for each in (first, second, first)]
    assert kept == sorted(source)


@pytest.mark.parametrize("point", ["group_written:kill9", "group_written:kill9:4", "before_publish:kill9"])
def test_a_writer_that_is_killed_at_any_point(tmp_path: Path, point: str) -> None:
    """kill -9 after a row group, after some, and when every row is written but the manifest."""
    program = (
        "import sys, pyarrow as pa\n"
        "from headrace.data import Data\n"
        "Data(sys.argv[1]).create(pa.table({'n': range(60_000)}), id='obj_a', replace=True)\n"
    )
    data = Data(str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)],
        env={**os.environ, "HEADRACE_FAULT": f"data.{point}"},
        timeout=100,
    )
    assert done.returncode == -signal.SIGKILL
    assert list(tmp_path.glob("obj_a/part-*")) != []
    assert data.list() == []
    with pytest.raises(NotFound):
        data.open("obj_a")
    again = data.create(numbers(5), id="obj_a")
    assert again.table() == numbers(5)
    assert data.backend.prune(datetime.now(UTC) - timedelta(hours=1)) == 0
    assert data.backend.prune(datetime.now(UTC) + timedelta(hours=1)) == 1
    assert len(list(tmp_path.glob("obj_a/*"))) == 2
    assert again.table() == numbers(5)


def test_of_two_writers_of_one_id_one_wins(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    barrier, answers = threading.Barrier(4), list[str]()

    def slowly(number: int) -> Any:
        yield from pa.table({"n": [number] * 3}).to_batches()
        barrier.wait(30)

    def write(number: int) -> None:
        try:
            data.create(slowly(number), id="obj_a")
            answers.append(f"wrote {number}")
        except ObjectExists:
            answers.append("refused")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    (winner,) = [answer for answer in answers if answer != "refused"]
    assert len(answers) == 4
    assert data.open("obj_a").table().column("n").to_pylist() == [int(winner.removeprefix("wrote "))] * 3
    assert len(list(tmp_path.glob("obj_a/*"))) == 2


def test_a_drop_leaves_the_next_writer_of_the_id_alone(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    data.create(numbers(3), id="obj_a")

    def batches() -> Any:
        yield from numbers(20_000).to_batches(max_chunksize=10_000)
        assert data.drop("obj_a") is True

    made = data.create(batches(), id="obj_a", replace=True)
    assert made.table() == numbers(20_000)


def test_a_reader_of_a_replaced_one_finishes(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    reader = data.create(numbers(30_000), id="obj_a").iter_batches()
    first = next(reader)
    data.create(numbers(3), id="obj_a", replace=True)
    assert first.num_rows + sum(batch.num_rows for batch in reader) == 30_000
    assert data.open("obj_a").table() == numbers(3)


def test_a_manifest_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    manifest = tmp_path / data.create(numbers(3), id="obj_a").id / "object.json"
    found = json.loads(manifest.read_bytes())
    for content in (b"", b"{}", b"[]", json.dumps({**found, "format": 99}).encode(), b"\xff"):
        manifest.write_bytes(content)
        with pytest.raises(DataError, match=r"object obj_a: its object.json"):
            data.open("obj_a")
    manifest.write_text(json.dumps({**found, "something": "newer"}))
    assert data.open("obj_a").table() == numbers(3)


def test_what_others_left_in_the_folder_is_not_touched(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    (tmp_path / "file.txt").write_text("x")
    made = data.create(numbers(3))
    assert data.backend.prune(datetime.now(UTC) + timedelta(hours=1)) == 0
    assert [meta.id for meta in data.list()] == [made.id]
    assert (tmp_path / "notes" / "mine.txt").exists()


def test_what_parquet_cannot_store_is_refused(tmp_path: Path) -> None:
    data = Data(str(tmp_path))
    kind = pa.month_day_nano_interval()
    with pytest.raises(DataError, match="columns span: month_day_nano_interval"):
        data.create(pa.table({"span": pa.array([(1, 2, 3)], kind)}))
    assert list(tmp_path.glob("*")) == []
