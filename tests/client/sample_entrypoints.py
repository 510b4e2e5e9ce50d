"""Functions that jobs name by their dotted path."""

from dataclasses import dataclass
from datetime import datetime

from headrace.orchestration import add_task_to_current_job, get_current_job_id

PATH = __name__


def double(number: int) -> int:
    return number * 2


async def double_later(number: int) -> int:
    return number * 2


async def fan_out(count: int) -> list[int]:
    return [await add_task_to_current_job(f"{PATH}.double", {"number": number}) for number in range(count)]


def job_id() -> int:
    return get_current_job_id()


def breaks() -> None:
    raise ValueError("broken")


def when(at: datetime) -> int:
    return at.year


@dataclass
class Table:
    table_id: str


def table() -> Table:
    return Table("t_1")


not_a_function = 7
