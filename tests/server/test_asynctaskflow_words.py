"""The words of AsyncTaskFlow for what the ledger says, and its ids."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.lanes import Lane
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.server.faces.asynctaskflow_records import Word, body_of, retry_count, states_of, word_of, words_of
from headrace.server.faces.ids import id_of, uuid_of

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)


def record(**changes: Any) -> TaskRecord:
    values: dict[str, Any] = {
        "id": 17, "name": "summarize", "kind": "function", "queue": "default", "pool": "coroutine",
        "lane": Lane.PRIMARY, "priority": 0, "state": TaskState.PENDING, "reason": None, "dead_letter": False,
        "arguments": "{}", "codec": "json/1", "version": 1, "options": "{}", "attempt": 0, "max_attempts": 4,
        "losses": 0, "claim_no": 0, "run_no": 1, "worker": None, "job": None, "critical": True, "waiting_on": None,
        "created_at": NOW, "enqueued_at": NOW, "eligible_at": NOW, "expires_at": None, "claimed_at": None,
        "started_at": None, "finished_at": None, "cancelling_at": None, "progress": None, "result": None,
        "result_ref": None, "result_expires_at": None, "error_class": None, "error_message": None,
    }  # fmt: skip
    return TaskRecord(**{**values, **changes})


RETRY: dict[str, Any] = {"lane": Lane.RETRY, "attempt": 1}
# The rows of the mapping table, and what it leaves open.
TABLE: list[tuple[dict[str, Any], Word]] = [
    ({"state": TaskState.PENDING_APPROVAL}, Word.PENDING),
    ({"state": TaskState.BLOCKED}, Word.PENDING),
    ({"state": TaskState.PENDING}, Word.PENDING),
    ({"state": TaskState.PENDING, "eligible_at": LATER}, Word.PENDING),  # a new task with a time: nothing failed
    ({"state": TaskState.PENDING, **RETRY}, Word.PENDING),
    ({"state": TaskState.PENDING, **RETRY, "eligible_at": LATER}, Word.FAILED),
    ({"state": TaskState.PENDING, "lane": Lane.RETRY, "eligible_at": LATER}, Word.PENDING),  # put back by a breaker
    ({"state": TaskState.CLAIMED}, Word.ACTIVE),
    ({"state": TaskState.RUNNING}, Word.ACTIVE),
    ({"state": TaskState.RUNNING, **RETRY, "eligible_at": LATER}, Word.ACTIVE),
    ({"state": TaskState.PAUSED}, Word.ACTIVE),
    ({"state": TaskState.CANCELLING}, Word.ACTIVE),
    ({"state": TaskState.COMPLETED}, Word.COMPLETED),
    ({"state": TaskState.FAILED, "reason": "error"}, Word.FAILED),
    ({"state": TaskState.FAILED, "reason": "oom"}, Word.FAILED),
    ({"state": TaskState.FAILED, "reason": "expired", "dead_letter": True}, Word.DLQ),
    ({"state": TaskState.FAILED, "reason": "error", "dead_letter": True}, Word.DLQ),
    ({"state": TaskState.CANCELLED, "reason": "user"}, Word.FAILED),
    ({"state": TaskState.REJECTED}, Word.FAILED),
    ({"state": TaskState.LOST}, Word.PENDING),
]


@pytest.mark.requirement("F3")
@pytest.mark.parametrize(("changes", "word"), TABLE)
def test_every_state_has_one_of_five_words(changes: dict[str, Any], word: Word):
    """F3: the words are these five, and each state of the ledger is shown by one of them; a list by that word looks
    for that state."""
    found = record(**changes)
    assert set(Word) == {"PENDING", "ACTIVE", "COMPLETED", "FAILED", "DLQ"}
    assert word_of(found, NOW) is word
    assert found.state in states_of(word)


@pytest.mark.requirement("F3")
def test_no_state_is_forgotten():
    """F3: a state that is added to the ledger needs a word here."""
    assert {changes["state"] for changes, _ in TABLE} == set(TaskState)


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"state": TaskState.RUNNING}, 0),
        ({**RETRY, "eligible_at": LATER}, 1),
        ({**RETRY, "state": TaskState.RUNNING, "attempt": 3}, 3),
        ({"state": TaskState.COMPLETED, "attempt": 1}, 0),
        ({"state": TaskState.COMPLETED, "attempt": 3}, 2),
        ({"state": TaskState.FAILED, "dead_letter": True, "attempt": 4}, 3),
        ({"state": TaskState.FAILED, "reason": "expired", "attempt": 0}, 0),
        ({"state": TaskState.FAILED, "reason": "expired", "attempt": 2}, 2),
    ],
)
def test_retries_are_counted_without_the_first_execution(changes: dict[str, Any], count: int):
    assert retry_count(record(**changes)) == count


def attempt(**changes: Any) -> AttemptRecord:
    values: dict[str, Any] = {
        "task": 17, "claim_no": 1, "run_no": 1, "attempt": 1, "state": AttemptState.FAILED, "charged": True,
        "worker": "w", "executor": "coroutine", "handle": None, "claimed_at": NOW, "started_at": NOW,
        "finished_at": LATER, "error_class": "package.RateLimitError", "error_message": "slow down",
        "traceback": None, "exit_code": None, "recorded_by": "worker", "late_state": None, "late_at": None,
    }  # fmt: skip
    return AttemptRecord(**{**values, **changes})


@pytest.mark.requirement("F7", "F33")
def test_a_record_of_what_failed():
    """F7: one entry for each failed attempt, with its time, error, type and retry count; none for one that was put
    back. F33: `retry_after` is the time of the retry that waits."""
    waiting = record(**{**RETRY, "attempt": 2}, eligible_at=LATER, claim_no=3)
    attempts = [
        attempt(),
        attempt(claim_no=2, attempt=None, charged=False, state=AttemptState.RELEASED),
        attempt(claim_no=3, attempt=2, error_class="TimeoutError", error_message="too slow"),
    ]
    body = body_of(waiting, attempts, now=NOW, content="text", result=None)
    assert [(entry.time, entry.error, entry.type, entry.retry_count) for entry in body.error_history] == [
        (LATER, "slow down", "RateLimitError", 0),
        (LATER, "too slow", "TimeoutError", 1),
    ]
    assert (body.last_error, body.error_type) == ("too slow", "TimeoutError")
    assert (body.state, body.retry_after, body.retry_count, body.max_retries) == (Word.FAILED, LATER, 2, 3)
    assert body.updated_at == LATER


@pytest.mark.requirement("F24")
def test_a_retry_that_a_breaker_put_back_is_pending():
    """F24: it failed once, and is due again; the breaker is open, so it goes back uncharged: PENDING, and it is no
    retry of its own that waits."""
    back = attempt(claim_no=2, attempt=None, charged=False, state=AttemptState.RELEASED, error_class=None)
    waiting = record(**RETRY, eligible_at=LATER, claim_no=2)
    assert words_of(waiting, NOW) == {Word.FAILED, Word.PENDING}
    body = body_of(waiting, [attempt(), back], now=NOW, content="text", result=None)
    assert (body.state, body.retry_after, body.retry_count) == (Word.PENDING, None, 1)
    assert [entry.type for entry in body.error_history] == ["RateLimitError"]
    # A gate puts back without an execution: the last claim has no attempt at all.
    assert word_of(waiting, NOW, [attempt()]) is Word.PENDING
    again = body_of(waiting, [back, attempt(claim_no=2)], now=NOW, content="text", result=None)
    assert (again.state, again.retry_after) == (Word.FAILED, LATER)
    assert words_of(record(**RETRY, eligible_at=LATER, claim_no=1), NOW) == {Word.FAILED}


@given(id=st.integers(1, 2**62 - 1))
def test_an_id_and_its_uuid_are_one(id: int):
    uuid = uuid_of(id)
    assert id_of(uuid) == id
    assert (uuid.version, uuid.variant) == (8, "specified in RFC 4122")
    assert id_of(UUID(str(uuid).upper())) == id


def test_the_uuid_of_another_is_none_of_ours():
    assert str(uuid_of(17)) == "68656164-7261-8ce0-8000-000000000011"
    assert id_of(uuid4()) is None
    assert id_of(UUID(int=0)) is None
    assert id_of(UUID(int=uuid_of(1).int - 1)) is None
    for wrong in (0, -1, 2**62):
        with pytest.raises(ValueError):
            uuid_of(wrong)
