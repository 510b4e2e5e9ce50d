"""Functions that jobs name by dotted path; they know nothing of headrace's App."""

from dataclasses import dataclass
from typing import Any


@dataclass
class StoredObject:
    """What a data library would give back: it names its table and is no JSON."""

    table_id: str
    connection: Any = print  # not JSON


async def load(source: str, input_obj: str, threshold: float, nested: dict[str, Any]) -> StoredObject:
    assert nested == {"table": "tbl_2", "rows": [1, None, "three"]}
    return StoredObject(table_id=f"{source}:{input_obj}:{threshold}")


def plain(n: int) -> dict[str, int]:
    return {"n": n}


def flaky() -> int:
    """Fails at its first attempt."""
    from headrace import current

    if current.attempt == 1:
        raise OSError("away")
    return current.attempt


def nothing() -> None:
    return None


def count_users() -> int:
    """Needs Django to be set up in the process that runs it."""
    from django.contrib.auth.models import Permission
    from django.db import connection

    assert Permission._meta.db_table == "auth_permission"
    with connection.cursor() as cursor:
        cursor.execute("SELECT 40 + 2")
        return cursor.fetchone()[0]
