"""Functions over rows, tables and frames, that a worker can import; and the app of the tests of operations."""

import os
import time
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from headrace import App, Permanent, Retry, current
from headrace.data import Object

app = App(os.environ.get("HEADRACE_DATABASE_URL", "sqlite:///operations.db"), retry=Retry(max_attempts=3, base=0.01))


def doubled(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "v": row["v"] * 2}


async def doubled_later(row: dict[str, Any]) -> dict[str, Any]:
    return doubled(row)


def value_of(row: dict[str, Any]) -> int:
    return row["v"]


def doubled_table(table: pa.Table) -> pa.Table:
    return table.set_column(table.column_names.index("v"), "v", pc.multiply(table["v"], 2))


def doubled_pandas(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(v=frame["v"] * 2)


def doubled_polars(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.with_columns(v=frame["v"] * 2)


def first_of_chunk(table: pa.Table) -> pa.Table:
    return table.slice(0, 1)


def sparse(row: dict[str, Any]) -> dict[str, Any]:
    """None in the first chunks, then whole numbers, then fractions."""
    v = row["v"]
    return {"x": None if v < 10 else v if v < 20 else v / 2}


def is_even(row: dict[str, Any]) -> bool:
    return row["v"] % 2 == 0


def even_mask(table: pa.Table) -> Any:
    return pc.equal(pc.bit_wise_and(table["v"], 1), 0)


def even_pandas(frame: pd.DataFrame) -> Any:
    return frame["v"] % 2 == 0


def added(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return {"v": a["v"] + b["v"]}


def joined_text(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """Not commutative: shows the order."""
    return {"t": a["t"] + b["t"]}


def summed(table: pa.Table) -> pa.Table:
    return table.group_by("k").aggregate([("v", "sum")]).rename_columns(["k", "v"])


def no_fifteen(row: dict[str, Any]) -> dict[str, Any]:
    if row["v"] == 15:
        raise Permanent("15 is not wanted")
    return row


def slow_marks(table: pa.Table) -> pa.Table:
    """Says that it runs. One that finds three others, and one that finds eight, stay until they are killed."""
    marks = Path(os.environ["MARKS"])
    (marks / f"{current.task_id}-{os.getpid()}").touch()
    for others in (3, 8):
        if len(list(marks.iterdir())) > others and _is_first(marks.with_suffix(f".{others}")):
            time.sleep(600)
    return doubled_table(table)


def _is_first(path: Path) -> bool:
    try:
        with path.open("x") as file:
            file.write(str(os.getpid()))
    except FileExistsError:
        return False
    return True


def takes_a_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch


NOT_A_FUNCTION = 3


@app.task
async def map_in_my_job(rows: Object) -> str:
    """A running task that makes tasks of a table: the parts belong to its job."""
    future = await rows.map(doubled_table, chunk_size=10)
    return future.id


@app.task
def count_rows(rows: Object) -> int:
    return rows.known().rows
