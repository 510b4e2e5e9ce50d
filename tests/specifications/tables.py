"""What a user of aaiclick's `map` writes, with only the import changed."""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.data import Object
from headrace.orchestration import (
    add_task_to_current_job,
    create_result_collector,
    filter,
    get_current_job_id,
    map,
)


async def pipeline(table_id: str) -> int:
    collector = await map("tests.specifications.tables.chunk_total", await Object.open(table_id), chunk_size=10)
    return collector.num_chunks


async def failing_pipeline(table_id: str) -> None:
    await map("tests.specifications.tables.fail_at_ten", await Object.open(table_id), chunk_size=10, max_retries=0)


async def chunk_total(table_id: str, offset: int, limit: int) -> int:
    table = await (await Object.open(table_id)).view(offset, limit).to_arrow()
    return pc.sum(table["v"]).as_py()


async def fail_at_ten(table_id: str, offset: int, limit: int) -> int:
    if offset == 10:
        raise ValueError("the chunk of 10 is broken")
    return limit


async def by_hand(table_id: str) -> int:
    """The loop of the specification itself."""
    obj = await Object.open(table_id)
    job_id = get_current_job_id()
    total_rows = await obj.count()
    chunk_size = 10
    for offset in range(0, total_rows, chunk_size):
        await add_task_to_current_job(
            job_id=job_id,
            entrypoint="tests.specifications.tables.double_chunk",
            kwargs={"table_id": obj.table_id, "offset": offset, "limit": chunk_size},
        )
    num_chunks = (total_rows + chunk_size - 1) // chunk_size
    return (await create_result_collector(job_id, num_chunks)).num_chunks


async def double_chunk(table_id: str, offset: int, limit: int) -> Object:
    table = await (await Object.open(table_id)).view(offset, limit).to_arrow()
    return await Object.create(pa.table({"v": pc.multiply(table["v"], 2)}))


def is_even(row: dict[str, Any]) -> bool:
    return row["v"] % 2 == 0


async def keep_even(table_id: str) -> str:
    return (await filter(is_even, await Object.open(table_id), chunk_size=10)).id
