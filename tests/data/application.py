"""Tasks that pass tables on, for workers that are processes of their own. HEADRACE_DATABASE_URL says where."""

from typing import Any

import pyarrow as pa

from headrace import App
from headrace.data import Object, View

app = App()


@app.task
async def numbers(rows: int) -> Object:
    return await Object.create(pa.table({"n": range(rows)}), name="numbers")


@app.task
async def doubled(of: Object, label: str = "") -> Object:
    assert isinstance(of, Object)
    table = await of.to_arrow()
    return await Object.create([{"n": 2 * n, "label": label} for n in table.column("n").to_pylist()], keep=3600)


@app.task
def total(part: View) -> dict[str, Any]:
    """Not async, so it runs in a child process, and asks in the blocking way."""
    assert isinstance(part, View)
    return {"rows": part.table().num_rows, "sum": sum(part.table(["n"]).column("n").to_pylist())}


@app.task
def mixed(things, more=None):  # type: ignore[no-untyped-def]
    """Without annotations: references come as JSON, and go as JSON."""
    assert things["of"] == {"table_id": things["of"]["table_id"]}
    return {"of": Object.load(things["of"]), "views": [View(more["table_id"], 0, 2)], "plain": things["plain"]}


@app.task
async def makes_and_fails() -> None:
    await Object.create([{"a": 1}], name="temporary")
    await Object.create([{"a": 1}], name="kept", keep=3600)
    raise ValueError("after it made them")


async def load_rows(rows: int) -> Object:
    """By its dotted path."""
    return await Object.create(pa.table({"n": range(rows)}))


async def count_rows(table: dict[str, Any], factor: int) -> int:
    return factor * await Object.load(table).count()
