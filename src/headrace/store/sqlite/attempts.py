"""The rows of attempts that end: a whole batch by few statements."""

from collections.abc import Sequence
from typing import NamedTuple

from headrace.store.sqlite.connection import Transaction


class Attempt(NamedTuple):
    """In the order of `close_attempts`."""

    task: int
    claim_no: int
    run_no: int
    number: int | None  # None: not charged
    state: str
    charged: bool
    worker: str
    executor: str | None
    claimed_at: int | None
    started_at: int | None
    finished_at: int
    error_class: str | None
    error_message: str | None
    traceback: str | None
    exit_code: int | None
    recorded_by: str


def close_attempts(transaction: Transaction, attempts: Sequence[Attempt]) -> None:
    transaction.insert_all("close_attempts", attempts)


def ends_at(now: int, claimed_at: int | None, started_at: int | None) -> int:
    """The instants of an attempt never run backwards, whatever the clock does."""
    begun = claimed_at if started_at is None else started_at
    return now if begun is None else max(now, begun)
