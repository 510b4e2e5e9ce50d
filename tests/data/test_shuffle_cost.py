"""What a sort or join reads, and hands through the ledger, for each of its parts: the same however many there are."""

import contextlib
import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from headrace.data import Object
from headrace.data.formats.files import LocalFiles
from headrace.testing import adrain, override
from tests.data.callbacks import app

FEW, MANY, ROWS = 5, 20, 60  # parts, and the rows of each


@dataclass
class Reads:
    """Of the runs alone: how often each kind of read was made, and how many bytes came."""

    times: Counter[str] = field(default_factory=Counter[str])
    bytes: Counter[str] = field(default_factory=Counter[str])
    written: int = 0


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """The reads and writes of the files of runs are counted on their way to the disk."""
    counted = Reads()
    load, ranges, opened, write = LocalFiles.load, LocalFiles.ranges, LocalFiles.open, LocalFiles.write

    def is_run(folder: str) -> bool:
        return re.search(r"_r\d+$", folder) is not None

    def counting_load(self: LocalFiles, folder: str, name: str) -> bytes:
        content = load(self, folder, name)
        if is_run(folder):
            counted.times["manifest"] += 1
            counted.bytes["manifest"] += len(content)
        return content

    @contextlib.contextmanager
    def counting_ranges(self: LocalFiles, folder: str, name: str) -> Generator[Callable[[int, int], bytes]]:
        def read(start: int, end: int) -> bytes:
            counted.bytes["ranges"] += end - start
            return inner(start, end)

        counted.times["ranges"] += 1
        with ranges(self, folder, name) as inner:
            yield read

    def counting_open(self: LocalFiles, folder: str, name: str) -> Any:
        counted.times["whole"] += is_run(folder)
        return opened(self, folder, name)

    @contextlib.contextmanager
    def counting_write(self: LocalFiles, folder: str, name: str) -> Generator[Any]:
        with write(self, folder, name) as sink:
            yield sink
            counted.written += sink.tell() * is_run(folder)

    for name, counting in (
        ("load", counting_load),
        ("ranges", counting_ranges),
        ("open", counting_open),
        ("write", counting_write),
    ):
        monkeypatch.setattr(LocalFiles, name, counting)
    return counted


@pytest.fixture(autouse=True)
def apart(tmp_path: Path) -> Iterator[None]:
    with override(app, url=f"sqlite:///{tmp_path / 'costs.db'}"):
        yield


async def shuffle(operation: str, parts: int) -> tuple[float, int]:
    """Each run has rows of nearly every part. The bytes of results in the ledger for each part, and of the arguments of
    the task that has most: but for the last one, which puts all together."""
    count = parts * ROWS
    keys = random.Random(parts).sample(range(count), count)
    rows = await Object.create(pa.table({"k": keys, "v": range(count)}), data=app.data)
    future = await (rows.sort("k", ROWS) if operation == "sort" else rows.join(rows, "k", chunk_size=ROWS))
    await adrain(app)
    assert await (await future.aresult(30)).count() == count
    with contextlib.closing(sqlite3.connect(app.url.removeprefix("sqlite:///"))) as ledger:
        held = (
            "SELECT count(*), sum(length(coalesce(result, ''))), "
            "max(length(arguments)) FILTER (WHERE name NOT LIKE '%finish_shuffle') FROM headrace_history WHERE job = ?"
        )
        ((tasks, results, arguments),) = ledger.execute(held, (future.job_id,))
    assert tasks > 2 * parts
    return results / parts, arguments


@pytest.mark.parametrize(("operation", "sides"), [("sort", 1), ("join", 2)])
async def test_what_a_part_costs_does_not_grow_with_their_number(operation: str, sides: int, reads: Reads):
    """For each part and run the file is opened once, and its manifest as well; and each row is read once, with the two
    numbers that say where the part is. Nothing that everyone reads, in the files or in the ledger, has a number or a
    name for each part."""
    few_results, few_arguments = await shuffle(operation, FEW)
    manifest = reads.bytes["manifest"] / reads.times["manifest"]
    reads.times.clear()
    reads.bytes.clear()
    reads.written = 0
    results, arguments = await shuffle(operation, MANY)
    pairs = sides * MANY * MANY
    assert reads.times["whole"] == 0
    assert 0 < reads.times["ranges"] <= pairs
    assert reads.bytes["ranges"] <= 16 * pairs + reads.written
    # One more for each part to know the columns, and for each run when it is dropped.
    assert reads.times["manifest"] <= pairs + 3 * sides * MANY
    assert reads.bytes["manifest"] / reads.times["manifest"] < manifest + 20
    assert results < 1.1 * few_results
    assert arguments < few_arguments + 20
