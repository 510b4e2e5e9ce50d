"""Rows on their way, and how it is known that they arrived: a count and a checksum for each table.

The checksum of some rows is the sum of their digests, so it does not depend on their order and sums of parts are the
sum of the whole. It is taken of canonical values, which both databases can tell.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson

from headrace.store.moving.tables import OF_TASK, Values, layouts

_MODULUS = 2**128


class Check(NamedTuple):
    rows: int = 0
    checksum: int = 0

    def __add__(self, other: object) -> "Check":
        assert isinstance(other, Check)
        return Check(self.rows + other.rows, (self.checksum + other.checksum) % _MODULUS)

    @property
    def text(self) -> str:
        return f"{self.checksum:032x}"


def check(rows: Iterable[Values]) -> Check:
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.blake2b(orjson.dumps(row), digest_size=16).digest())
    return Check(count, total % _MODULUS)


type Checks = dict[str, Check]


def added(some: Mapping[str, Check], more: Mapping[str, Check]) -> Checks:
    return {table: some.get(table, Check()) + more.get(table, Check()) for table in {**some, **more}}


def checks_to_plain(checks: Mapping[str, Check]) -> dict[str, list[Any]]:
    return {table: [found.rows, found.text] for table, found in checks.items()}


def checks_from_plain(plain: Mapping[str, Any]) -> Checks:
    return {table: Check(int(rows), int(text, 16)) for table, (rows, text) in plain.items()}


@dataclass(slots=True)
class Parcel:
    """Rows by table, in the order of the layouts."""

    rows: dict[str, list[Values]] = field(default_factory=dict[str, list[Values]])

    def add(self, table: str, rows: Iterable[Values]) -> None:
        self.rows.setdefault(table, []).extend(rows)

    @property
    def size(self) -> int:
        return sum(map(len, self.rows.values()))

    @property
    def checks(self) -> Checks:
        return {table: check(rows) for table, rows in self.rows.items() if rows}

    def column(self, table: str, column: str) -> list[Any]:
        place = layouts()[table].place(column)
        return [row[place] for row in self.rows.get(table, ())]

    def named(self, table: str) -> list[dict[str, Any]]:
        """The rows of a table with the names of their columns."""
        columns = layouts()[table].columns
        return [dict(zip(columns, row, strict=True)) for row in self.rows.get(table, ())]

    @property
    def task_ids(self) -> list[int]:
        return [*self.column("tasks", "id"), *self.column("history", "id")]

    def without_tasks(self, ids: set[int]) -> "Parcel":
        """The same without these tasks and what is keyed by them."""
        left = Parcel()
        for table, rows in self.rows.items():
            column = "id" if table in ("tasks", "history") else OF_TASK.get(table)
            place = None if column is None else layouts()[table].place(column)
            left.rows[table] = [row for row in rows if place is None or row[place] not in ids]
        return left

    def by_task(self) -> dict[int, list[tuple[str, Values]]]:
        """What belongs to each task, in a fixed order, for comparing."""
        found: dict[int, list[tuple[str, Values]]] = {id: [] for id in self.task_ids}
        for table, rows in self.rows.items():
            column = "id" if table in ("tasks", "history") else OF_TASK.get(table)
            if column is not None:
                layout = layouts()[table]
                place = layout.place(column)
                for row in sorted(rows, key=lambda row, layout=layout: layout.key_of(row)):
                    found.setdefault(row[place], []).append((table, row))
        return {id: sorted(rows, key=lambda pair: pair[0]) for id, rows in found.items()}

    def to_text(self) -> str:
        return orjson.dumps(self.rows).decode()

    @classmethod
    def from_text(cls, text: str) -> "Parcel":
        return cls(orjson.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What the target found of a parcel in its own tables, before it committed."""

    sent: Checks = field(default_factory=dict[str, Check])
    found: Checks = field(default_factory=dict[str, Check])
    merged: dict[str, int] = field(default_factory=dict[str, int])  # rows that the target had by themselves

    def __add__(self, other: "Received") -> "Received":
        merged = {table: self.merged.get(table, 0) + other.merged.get(table, 0) for table in self.merged | other.merged}
        return Received(sent=added(self.sent, other.sent), found=added(self.found, other.found), merged=merged)

    def to_plain(self) -> dict[str, Any]:
        return {"sent": checks_to_plain(self.sent), "found": checks_to_plain(self.found), "merged": self.merged}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> "Received":
        return cls(
            sent=checks_from_plain(plain["sent"]), found=checks_from_plain(plain["found"]), merged=plain["merged"]
        )
