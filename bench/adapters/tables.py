"""headrace over a table, and the same function over the same file in a plain pool of processes."""

import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.adapters import OPTIONS, URL
from headrace import App

app = App(URL or None)

CHUNK = 100_000
_NAME = "bench"


def distances(table: "pyarrow.Table") -> "pyarrow.Table":  # noqa: F821  read by its annotation
    """A column more: √(x² + y²), by Arrow's own kernels."""
    import pyarrow.compute as pc

    x, y = table["x"], table["y"]
    return table.append_column("distance", pc.sqrt(pc.add(pc.multiply(x, x), pc.multiply(y, y))))


def _folder() -> Path:
    return Path(URL.removeprefix("sqlite:///")).parent


def _file() -> Path:
    return _folder() / "rows.parquet"


async def setup() -> None:
    await app.aupgrade()


async def make(rows: int) -> dict[str, Any]:
    """A Parquet file of three columns, and an object of it."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    schema = pa.schema([("id", pa.int64()), ("x", pa.float64()), ("y", pa.float64())])
    with pq.ParquetWriter(_file(), schema) as writer:
        for first in range(0, rows, CHUNK):
            n = min(CHUNK, rows - first)
            columns = [pa.array(range(first, first + n)), pc.random(n), pc.random(n)]
            writer.write_table(pa.table(columns, schema=schema))
    made = await app.data.acreate(str(_file()), name=_NAME)
    (_folder() / "object").write_text(made.id)
    await app.aclose()
    return {"rows": rows}


async def mapped() -> dict[str, float]:
    """Seconds from the call of `map` to the object that came of it; the workers are up."""
    given = await app.data.aopen((_folder() / "object").read_text())
    # Every child has imported what it needs, as every process of the pool has.
    await (await given.view(0, 4_000).map(distances, chunk_size=100))
    began = time.perf_counter()
    made = await (await given.map(distances, chunk_size=CHUNK))
    seconds = time.perf_counter() - began
    answer = {"seconds": seconds, "rows": await made.count(), "sum": _sum(await made.to_arrow())}
    await app.aclose()
    return answer


def pooled(size: int) -> dict[str, float]:
    """The same: a pool that is up, chunks of the same size read from the file, and written as Parquet again."""
    import pyarrow.parquet as pq

    groups = pq.ParquetFile(_file()).metadata.num_row_groups
    with multiprocessing.get_context("forkserver").Pool(size) as pool:
        pool.map(_warm, range(size))
        began = time.perf_counter()
        parts = pool.map(_chunk, range(groups), chunksize=1)
        seconds = time.perf_counter() - began
    tables = [pq.read_table(part) for part in parts]
    return {"seconds": seconds, "rows": sum(map(len, tables)), "sum": sum(map(_sum, tables))}


def _warm(_: int) -> None:
    import pyarrow.compute
    import pyarrow.parquet  # noqa: F401  as the workers have it loaded

    time.sleep(0.2)  # so that every process gets one


def _chunk(number: int) -> str:
    import pyarrow.parquet as pq

    table = distances(pq.ParquetFile(_file()).read_row_group(number))
    path = _folder() / f"part-{number:05}.parquet"
    pq.write_table(table, path)
    return str(path)


def _sum(table: Any) -> float:
    import pyarrow.compute as pc

    return pc.sum(table["distance"]).as_py() or 0.0


def worker() -> None:
    flags = [f"--children={OPTIONS['children']}"] if "children" in OPTIONS else []
    target = "bench.adapters.tables:app"
    os.execv(sys.executable, [sys.executable, "-m", "headrace.cli", "worker", target, *flags])
