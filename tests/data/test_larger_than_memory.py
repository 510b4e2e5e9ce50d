"""Tables that are larger than what a worker's child may hold: `--kill-memory` would end whoever holds too much."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.data import Object
from headrace.testing import override
from tests.data import callbacks
from tests.data.callbacks import app

ROOT = Path(__file__).parents[2]
ROWS, WIDTH, BATCH = 1_200_000, 500, 50_000
LIMIT = "450MB"


def batches() -> Iterator[pa.RecordBatch]:
    """Keys in no order, each once, and text that fills memory: 600 MB of it, which Parquet keeps small."""
    for first in range(0, ROWS, BATCH):
        numbers = [(number * 7_919) % ROWS for number in range(first, first + BATCH)]
        text = ["x" * WIDTH] * BATCH
        yield pa.record_batch({"k": pa.array(numbers, pa.int64()), "v": pa.array(numbers, pa.int64()), "t": text})


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_sort_join_and_map_hold_a_few_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """No child is killed for its memory, and what comes out is all of it."""
    with override(app, url=f"sqlite:///{tmp_path / 'large.db'}"):
        monkeypatch.setenv("HEADRACE_DATABASE_URL", app.url)
        schema = next(batches()).schema
        rows = app.data.create(pa.RecordBatchReader.from_batches(schema, batches()))
        small = app.data.create(pa.table({"k": pa.array(range(0, ROWS, 1000), pa.int64()), "w": range(ROWS // 1000)}))
        futures = asyncio.run(_begun(rows, small))
        command = [sys.executable, "-m", "headrace.cli", "worker", "tests.data.callbacks:app", "--children", "2"]
        worker = subprocess.Popen(
            [*command, "--kill-memory", LIMIT, "--log-format", "json"],
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        try:
            mapped, ordered, both = [future.result(timeout=600) for future in futures]
        finally:
            worker.terminate()
            worker.wait(timeout=60)
        failed = [a for future in futures for t in app.tasks.list(job=future.job_id) for a in app.tasks.attempts(t.id)]
        assert not [attempt.error_message for attempt in failed if attempt.error_class]
        assert mapped.known().rows == ordered.known().rows == ROWS
        assert both.known().rows == ROWS // 1000
        expected = 0
        for batch in ordered.iter_batches(["k"]):
            keys = batch.column(0)
            assert keys.equals(pa.array(range(expected, expected + len(keys)), pa.int64()))
            expected += len(keys)
        total = sum(pc.sum(batch.column(0)).as_py() for batch in mapped.iter_batches(["v"]))
        assert total == 2 * sum(range(ROWS))


async def _begun(rows: Object, small: Object) -> list[object]:
    return [
        await rows.map(callbacks.doubled_table, chunk_size=25_000),
        await rows.sort("k", chunk_size=25_000),
        await rows.join(small, "k", chunk_size=25_000),
    ]
