"""The history checker: reads a ledger in one snapshot and proves its invariants (`store.invariants`).

Behind `headrace db check`, and at the end of every suite.
"""

import sqlite3
from collections.abc import Mapping, Sequence

from headrace.core.states import AttemptState, TaskState
from headrace.store.base import Violation
from headrace.store.graph_invariants import GRAPH_RULES
from headrace.store.invariants import LEDGER_RULES, Row, Rows

__all__ = ["RULES", "WARNINGS", "check_rows", "check_sqlite", "statements"]

RULES = LEDGER_RULES | GRAPH_RULES
# True for a moment in a healthy ledger: worth a look when they stay.
WARNINGS = frozenset({"rescue-pending", "token-user"})

_TASK = (
    "id", "state", "reason", "claim_no", "attempt", "run_no", "max_attempts", "worker", "job", "critical", "gates",
    "order_key", "keyed", "created_at", "enqueued_at", "claimed_at", "started_at",
)  # fmt: skip
# Only what rules look at: arguments and results may be large.
_COLUMNS: dict[str, Sequence[str]] = {
    "tasks": (*_TASK, "ready_at", "waiting_on"),
    "history": (*_TASK, "finished_at"),
    "attempts": (
        "task", "claim_no", "run_no", "attempt", "state", "charged", "claimed_at", "started_at", "finished_at",
        "late_state", "late_at",
    ),
    "keys": ("scope", "key", "task", "expires_at"),
    "slots": ("key", "slot", "task", "claim_no"),
    "jobs": (
        "id", "state", "reason", "run_no", "created_at", "started_at", "completed_at", "on_success", "on_failure",
        "hooked_run",
    ),
    "job_counts": ("job", "total", "completed", "failed", "cancelled", "seq"),
    "job_events": ("job", "seq", "state", "total", "completed", "failed", "cancelled"),
    "job_additions": ("job", "n"),
    "workers": ("id", "state"),
    "schedule_runs": ("schedule", "tick", "task", "open"),
    "dependencies": ("task", "place", "upstream", "kind"),
    "barriers": ("task", "remaining"),
    "releases": ("upstream", "state", "after"),
    "waits": ("task", "step", "event", "key", "taken", "over"),
    "checkpoints": ("task", "name"),
    "users": ("name",),
    "tokens": ("id", "user"),
    "meta": ("key",),
}  # fmt: skip


def statements(dialect: str, name: str) -> dict[str, str]:
    """The query of each table; run all of them in one snapshot and give the rows to `check_rows`."""
    separator = "_" if dialect == "sqlite" else "."
    # In quotes: PostgreSQL has a word `user` of its own.
    return {
        table: f"SELECT {', '.join(f'"{column}"' for column in columns)} FROM {name}{separator}{table}"
        for table, columns in _COLUMNS.items()
    }


def check_rows(tables: Mapping[str, Sequence[Sequence[object]]]) -> list[Violation]:
    """`tables` has the rows of every statement, by table."""
    rows: dict[str, list[Row]] = {
        table: [dict(zip(columns, row, strict=True)) for row in tables[table]] for table, columns in _COLUMNS.items()
    }
    rows["attempts"] = _with_plain_successes(rows["attempts"], rows["history"])
    every = Rows(**rows)
    return [
        Violation(rule=name, subject=subject, detail=detail)
        for name, check in RULES.items()
        for subject, detail in check(every)
    ]


def _with_plain_successes(attempts: Sequence[Row], history: Sequence[Row]) -> list[Row]:
    """A completed history row whose claim has no attempt, or only the refused report of another, is that attempt."""
    found = {(row["task"], row["claim_no"]): row for row in attempts}
    for done in history:
        place = done["id"], done["claim_no"]
        note = found.get(place)
        if done["state"] == TaskState.COMPLETED and (note is None or note["state"] == AttemptState.REFUSED):
            found[place] = {
                "task": done["id"],
                "claim_no": done["claim_no"],
                "run_no": done["run_no"],
                "attempt": done["attempt"],
                "state": AttemptState.SUCCEEDED.value,
                "charged": True,
                "claimed_at": done["claimed_at"],
                "started_at": done["started_at"],
                "finished_at": done["finished_at"],
                "late_state": note and note["late_state"],
                "late_at": note and note["late_at"],
            }
    return list(found.values())


def check_sqlite(connection: sqlite3.Connection, name: str) -> list[Violation]:
    """On a connection whose transaction is the snapshot, or that begins one here."""
    begun = not connection.in_transaction
    if begun:
        connection.execute("BEGIN")
    try:
        return check_rows(
            {table: connection.execute(sql).fetchall() for table, sql in statements("sqlite", name).items()}
        )
    finally:
        if begun:
            connection.execute("ROLLBACK")
