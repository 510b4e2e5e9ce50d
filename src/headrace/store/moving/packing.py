"""Taking rows out of the SQLite ledger: one transaction puts them into `meta` as the parts of a numbered parcel.

From then on no verb of this ledger sees them, so nothing of them can change until the target has them. Nothing is
packed before the flip, after which nobody claims: what is not held now will not be.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import batched
from typing import Any

import orjson

from headrace.core.states import TaskState
from headrace.store.invariants import PRUNED_JOB
from headrace.store.moving.bundles import Bundle, bundle, is_held, linked_tasks
from headrace.store.moving.parcels import Parcel
from headrace.store.moving.tables import OF_JOB, OF_TASK, Layout, Values, alone, layouts

OUTGOING = "outgoing "
_BYTES = 4_000_000  # of one part, about
_TASKS = 500
_JOBS = 200
_JOB_TASKS = 2000  # of the jobs in one parcel, unless a single one has more

# Nobody holds them, and they belong to no job of this ledger. (One may belong to a job that has gone: a user's
# transaction was open while it went.)
_FREE_TASKS = "FROM {tasks} AS t WHERE t.worker IS NULL AND NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.id = t.job)"
# Nobody holds a task of theirs.
_FREE_JOBS = (
    "FROM {jobs} AS j WHERE NOT EXISTS (SELECT 1 FROM {tasks} AS t WHERE t.job = j.id AND t.worker IS NOT NULL)"
)


class Packer:
    """Works inside one transaction of the source."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self._name = name
        self._parts: list[Parcel] = []

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """`{tasks}` is the table of that name."""
        return self._connection.execute(self._named(sql), parameters).fetchall()

    def ids(self, sql: str, parameters: Sequence[Any] = ()) -> list[int]:
        return [row[0] for row in self.rows(sql, parameters)]

    def _named(self, sql: str) -> str:
        for table in (*layouts(), "ids"):
            sql = sql.replace(f"{{{table}}}", f"{self._name}_{table}")
        return sql

    def select(self, layout: Layout, where: str, parameters: Sequence[Any] = ()) -> list[Values]:
        columns = ", ".join(f'"{column}"' for column in layout.columns)
        found = self.rows(f"SELECT {columns} FROM {{{layout.table}}} WHERE {where}", parameters)
        return [layout.from_sqlite(row) for row in found]

    # What may go.

    def outgoing(self) -> list[str]:
        """The keys of the parts that are on their way."""
        return [key for (key,) in self.rows("SELECT key FROM {meta} WHERE key >= 'outgoing ' AND key < 'outgoing!'")]

    def free_tasks(self) -> list[int]:
        """Tasks that may go now, the oldest first. Those that must wait for others do not hide those behind them."""
        after = 0
        while ids := self.ids(f"SELECT t.id {_FREE_TASKS} AND t.id > ? ORDER BY t.id LIMIT ?", (after, _TASKS)):
            if going := self.together(ids):
                return going
            after = ids[-1]
        return []

    def still_free_tasks(self, ids: Sequence[int]) -> list[int]:
        """Of these, under the lock of the transaction that takes them."""
        free = f"SELECT t.id {_FREE_TASKS} AND t.id IN (SELECT value FROM json_each(?)) ORDER BY t.id"
        return self.together(self.fitting("tasks", self.ids(free, (_json(ids),))))

    def free_jobs(self) -> list[int]:
        """The same of jobs."""
        after = 0
        while jobs := self.ids(f"SELECT j.id {_FREE_JOBS} AND j.id > ? ORDER BY j.id LIMIT ?", (after, _JOBS)):
            if going := self.jobs_in_turn(jobs):
                return going
            after = jobs[-1]
        return []

    def still_free_jobs(self, jobs: Sequence[int]) -> list[int]:
        free = f"SELECT j.id {_FREE_JOBS} AND j.id IN (SELECT value FROM json_each(?)) ORDER BY j.id"
        return self.jobs_in_turn(self.fitting_jobs(self.ids(free, (_json(jobs),))))

    def all_free_jobs(self) -> list[int]:
        return self.ids(f"SELECT j.id {_FREE_JOBS} ORDER BY j.id")

    def together(self, ids: Sequence[int]) -> list[int]:
        """With those that can only go with them; without those of which one must stay, be it held, of a job that is
        here, or in its order key behind one that stays: it would overtake that one there."""
        linked = linked_tasks(self.rows, ids)
        bundles = [{id} for id in ids if id not in linked]
        done: set[int] = set()
        for id in linked:
            if id not in done:
                found = bundle(self.rows, task=id)
                done |= found.tasks
                if not found.jobs and not is_held(self.rows, found):
                    bundles.append(found.tasks)
        while late := self._late(sorted(set[int]().union(*bundles))):
            bundles = [each for each in bundles if not each & late]
        return sorted(set[int]().union(*bundles))

    def with_bundles(self, ids: Sequence[int]) -> list[int]:
        """With those that can only go with them, while nobody holds anything."""
        wanted = set(ids).union(*(bundle(self.rows, task=id).tasks for id in linked_tasks(self.rows, ids)))
        return sorted(wanted)

    def _late(self, ids: Sequence[int]) -> set[int]:
        keys: dict[str, list[int]] = {}
        sql = "SELECT order_key, id FROM {tasks} WHERE id IN (SELECT value FROM json_each(?)) AND order_key IS NOT NULL"
        for key, id in self.rows(sql, (_json(ids),)):
            keys.setdefault(key, []).append(id)
        late: set[int] = set()
        for key, mine in keys.items():
            going = set(mine)
            line = "SELECT id FROM {tasks} WHERE order_key = ? ORDER BY created_at, id LIMIT ?"
            for id in self.ids(line, (key, len(mine))):
                if id not in going:
                    break
                going.discard(id)
            else:
                continue
            late |= going
        return late

    def jobs_in_turn(self, jobs: Sequence[int]) -> list[int]:
        """As `together`: a job goes whole, so it waits when one of its tasks must, or one that can only go with it."""
        sql = "SELECT id, job FROM {tasks} WHERE job IN (SELECT value FROM json_each(?)) AND order_key IS NOT NULL"
        left = list(jobs)
        while ordered := dict(self.rows(sql, (_json(left),))):
            late = {ordered[id] for id in self._late(list(ordered))}
            if not late:
                break
            left = [job for job in left if job not in late]
        return [job for job in left if self._can_go(bundle(self.rows, job=job))]

    def _can_go(self, found: Bundle) -> bool:
        return not is_held(self.rows, found) and not (found.tasks and self._late(sorted(found.tasks)))

    def fitting_jobs(self, jobs: Sequence[int]) -> list[int]:
        """The first ones, up to the tasks that one parcel takes."""
        sql = "SELECT (SELECT count(*) FROM {tasks} WHERE job = ?1) + (SELECT count(*) FROM {history} WHERE job = ?1)"
        total, chosen = 0, list[int]()
        for job in jobs:
            total += self.ids(sql, (job,))[0]
            if chosen and total > _JOB_TASKS:
                break
            chosen.append(job)
        return chosen

    def fitting(self, table: str, ids: Sequence[int]) -> list[int]:
        """The first of these tasks, up to the bytes that one part takes."""
        result = "+ coalesce(length(result), 0)" if table == "history" else ""
        sizes: dict[int, int] = {}
        for sql in (
            f"SELECT id, length(arguments) + length(options) {result} FROM {{{table}}} WHERE id IN",
            "SELECT task, sum(length(line)) + 40 * count(*) FROM {logs} WHERE task IN",
            "SELECT task, sum(coalesce(length(traceback), 0)) FROM {attempts} WHERE task IN",
            "SELECT task, sum(length(value)) FROM {checkpoints} WHERE task IN",
        ):
            group = "" if sql.startswith("SELECT id") else " GROUP BY task"
            for id, size in self.rows(f"{sql} (SELECT value FROM json_each(?)){group}", (_json(ids),)):
                sizes[id] = sizes.get(id, 0) + size
        total, chosen = 0, list[int]()
        for id in ids:
            total += sizes.get(id, 0)
            if chosen and total > _BYTES:
                break
            chosen.append(id)
        return chosen

    # Packing.

    def with_tasks(self, table: str, ids: Sequence[int]) -> Parcel:
        """These tasks with all that is keyed by them."""
        parcel, wanted = Parcel(), (_json(ids),)
        rows = self.select(layouts()[table], "id IN (SELECT value FROM json_each(?))", wanted)
        parcel.add(table, [_unparked(row) for row in rows] if table == "tasks" else rows)
        for of_task, task in OF_TASK.items():
            parcel.add(of_task, self.select(layouts()[of_task], f"{task} IN (SELECT value FROM json_each(?))", wanted))
        return parcel

    def take_tasks(self, table: str, ids: Sequence[int]) -> None:
        for some in batched(ids, _TASKS):
            left: Sequence[int] = some
            while left:
                chosen = self.fitting(table, left)
                self._parts.append(self.with_tasks(table, chosen))
                left = left[len(chosen) :]
        self.remove_tasks(table, ids)

    def remove_tasks(self, table: str, ids: Sequence[int]) -> None:
        """With all that is keyed by them, but for the names by which they are still known here: whoever enqueues with
        such a key is answered, or sent on."""
        wanted = (_json(ids),)
        for of_task, task in OF_TASK.items():
            names = " AND scope NOT IN ('unique', 'idem')" if of_task == "keys" else ""
            self.rows(f"DELETE FROM {{{of_task}}} WHERE {task} IN (SELECT value FROM json_each(?)){names}", wanted)
        self.rows(f"DELETE FROM {{{table}}} WHERE id IN (SELECT value FROM json_each(?))", wanted)

    def take_additions_of_gone_jobs(self) -> None:
        gone = "NOT EXISTS (SELECT 1 FROM {jobs} AS j WHERE j.id = job)"
        self._parts.append(Parcel({"job_additions": self.select(layouts()["job_additions"], gone)}))
        self.rows(f"DELETE FROM {{job_additions}} WHERE {gone}")

    def take_job(self, job: int) -> None:
        """With what can only go with it; nothing, where it has gone as such."""
        found = bundle(self.rows, job=job)
        for each in sorted(found.jobs):
            self._take_job(each)
        if found.tasks:
            self.take_tasks("tasks", sorted(found.tasks))

    def _take_job(self, job: int) -> None:
        first, note = Parcel(), f"{PRUNED_JOB}{job}"
        first.add("jobs", self.select(layouts()["jobs"], "id = ?", (job,)))
        if not first.size:
            return
        for of_job in OF_JOB:
            first.add(of_job, self.select(layouts()[of_job], "job = ?", (job,)))
        first.add("meta", self.select(layouts()["meta"], "key = ?", (note,)))
        self._parts.append(first)
        for table in ("history", "tasks"):
            self.take_tasks(table, self.ids(f"SELECT id FROM {{{table}}} WHERE job = ? ORDER BY id", (job,)))
        for of_job in OF_JOB:
            self.rows(f"DELETE FROM {{{of_job}}} WHERE job = ?", (job,))
        self.rows("DELETE FROM {jobs} WHERE id = ?", (job,))
        self.rows("DELETE FROM {meta} WHERE key = ?", (note,))

    def take_alone(self, *, limit: int = _TASKS) -> None:
        """Rows of the tables that belong to no task: settings, counts, schedules, workers that have stopped."""
        parcel = Parcel()
        for layout in alone():
            rows = self.select(layout, f"{_GOING.get(layout.table, 'true')} LIMIT ?", (limit,))
            if rows:
                parcel.add(layout.table, rows)
                key = " AND ".join(f'"{column}" = ?' for column in layout.key)
                for row in rows:
                    self.rows(f"DELETE FROM {{{layout.table}}} WHERE {key}", layout.key_of(row))
        self._parts.append(parcel)

    def parts(self) -> Iterator[Parcel]:
        """What was taken, small ones together."""
        joined = Parcel()
        size = 0
        for part in self._parts:
            if not part.size:
                continue
            joined_size = len(part.to_text())
            if joined.size and size + joined_size > _BYTES:
                yield joined
                joined, size = Parcel(), 0
            for table, rows in part.rows.items():
                joined.add(table, rows)
            size += joined_size
        if joined.size:
            yield joined


# Which rows may go, and in what order.
_GOING = {
    "workers": "state = 'stopped' AND NOT EXISTS (SELECT 1 FROM {tasks} AS t WHERE t.worker = {workers}.id)",
    # What must not overlap waits for what runs here: there nobody would know of it.
    "schedules": "overlap = 'allow' OR NOT EXISTS (SELECT 1 FROM {schedule_runs} AS r JOIN {tasks} AS t"
    " ON t.id = r.task WHERE r.schedule = {schedules}.id AND r.open)",
    # After their schedule; first what a fire there looks at.
    "schedule_runs": "NOT EXISTS (SELECT 1 FROM {schedules} AS s WHERE s.id = {schedule_runs}.schedule)"
    " ORDER BY open DESC",
}


def _unparked(row: Values) -> Values:
    """Who waits for a gate here looks again there: it is due at its time, and becomes ready by that. An approval or an
    event is waited for as it was."""
    layout = layouts()["tasks"]
    waiting_on = layout.place("waiting_on")
    if row[waiting_on] is None or row[layout.place("state")] != TaskState.PENDING:
        return row
    return [None if place == waiting_on else v for place, v in enumerate(row)]


def _json(values: Iterable[Any]) -> str:
    return orjson.dumps(list(values)).decode()
