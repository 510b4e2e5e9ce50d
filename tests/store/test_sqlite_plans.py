"""The hot queries read indexes: cost does not grow with what waits or with history."""

import re

import pytest

from headrace.store.base import StoreOptions
from headrace.store.sqlite import SQLiteStore
from headrace.store.sqlite.connection import Transaction

# Reads of tables that stay small.
WHOLE = {
    "breakers", "queue_rows", "workers", "schedules", "schedules_declared", "subscriptions_declared",
    "all_subscriptions", "any_user", "all_users", "another_admin", "tokens", "prune_tokens",
}  # fmt: skip
# Counts all of it, for a person who asks.
COUNTED = {"prunable"}
# A page in the order of the primary key, which stops at its limit.
PAGES = {"list_live", "list_job_ids", "skim_jobs", "live_names", "prune_audit"}
# Looks over an index, which stop at their cap or at the next queue.
CAPPED = {
    "queue_names", "ready_count", "scheduled_counts", "waiting_counts", "held_counts", "dead_letter_depth",
    "waiting_retries",
}  # fmt: skip


async def plans() -> dict[str, list[str]]:
    store = SQLiteStore(":memory:", StoreOptions())
    await store.open()

    def explain(transaction: Transaction) -> dict[str, list[str]]:
        return {name: explained(transaction, sql) for name, sql in transaction.queries.items()}

    try:
        return await store.database.read(explain)
    finally:
        await store.close()


def explained(transaction: Transaction, sql: str) -> list[str]:
    names = set(re.findall(r"(?<!:):([a-z_]+)", sql))
    parameters = dict.fromkeys(names) if names else ("[]",) * sql.count("?")
    return [row[3] for row in transaction.connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]


async def test_no_query_scans_a_table_that_grows() -> None:
    found = await plans()
    scans = {
        name: steps
        for name, plan in found.items()
        if name not in WHOLE | COUNTED | PAGES | CAPPED
        and (steps := [step for step in plan if re.match(r"SCAN (headrace_|[a-z] |[a-z]$)", step)])
    }
    assert scans == {}
    for name in CAPPED:
        assert any(re.search(r"(USING|COVERING) INDEX headrace_(tasks|history)_", step) for step in found[name]), name
    assert len(found) > 80


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("claim", "headrace_tasks_ready (queue=? AND pool=? AND lane=?)"),
        ("outlook", "headrace_tasks_ready (queue=? AND pool=? AND lane=?)"),
        ("outlook", "headrace_tasks_due"),
        ("due_tasks", "headrace_tasks_due (eligible_at<?)"),
        ("promote_due", "headrace_tasks USING INTEGER PRIMARY KEY"),
        ("requeue", "headrace_tasks USING INTEGER PRIMARY KEY"),
        ("next_due", "headrace_tasks_due"),
        ("expired_tasks", "headrace_tasks_expires (expires_at"),
        ("waiting", "headrace_tasks_waiting (waiting_on=?)"),
        ("older_in_order", "headrace_tasks_order (order_key=? AND"),
        ("cancelling_of_worker", "headrace_tasks_worker (worker=?)"),
        ("ready_depth", "headrace_tasks_ready (queue=? AND pool=? AND lane=?)"),
        ("old_history", "headrace_history_state (state=? AND finished_at<?)"),
        ("list_done_by_state", "headrace_history_state (state=? AND finished_at>? AND finished_at<?)"),
        ("list_done_by_name", "headrace_history_queue_name (queue=? AND name=? AND state=? AND finished_at>? AND"),
        ("list_done_of_owner", "headrace_history_owner (owner=? AND finished_at>? AND finished_at<?)"),
        ("list_live_of_owner", "headrace_tasks_owner (owner=?)"),
        ("list_job_ids_of_owner", "headrace_jobs_owner (owner=?"),
        ("audit_of_subject", "headrace_audit_subject (subject=? AND"),
        ("done_queues", "headrace_history_queue_name (queue>?)"),
        ("done_names", "headrace_history_queue_name (queue=? AND name>?)"),
        ("list_dead_letters", "headrace_history_dead"),
        ("due_schedules", "headrace_schedules_due (next_at>? AND next_at<?)"),
        ("next_schedule", "headrace_schedules_due (next_at>?)"),
        ("open_runs", "headrace_schedule_runs_open (schedule=?)"),
        ("close_runs", "headrace_schedule_runs_open (schedule=?)"),
        ("prune_schedule_runs", "headrace_schedule_runs_fired (fired_at<?)"),
        ("note_ended", "COVERING INDEX headrace_dependencies_upstream (upstream=?)"),
        ("remarkable_ended", "COVERING INDEX headrace_dependencies_upstream (upstream=?)"),
        ("note_released", "COVERING INDEX headrace_dependencies_upstream (upstream=? AND task>? AND task<?)"),
        ("part_of_release", "COVERING INDEX headrace_dependencies_upstream (upstream=? AND task>?)"),
        ("lower_barriers", "headrace_barriers USING INTEGER PRIMARY KEY"),
        ("free_lowered", "headrace_tasks USING INTEGER PRIMARY KEY"),
        ("waiting_for_event", "headrace_waits_event (event=? AND key=?)"),
        ("waiting_too_long", "headrace_waits_expires (expires_at>? AND expires_at<?)"),
        ("event_for_wait", "headrace_events_name (name=? AND key=? AND created_at>?)"),
        ("expired_results", "headrace_history_results (result_expires_at>? AND result_expires_at<?)"),
        ("events_of_key", "headrace_events_name (name=? AND key=? AND created_at<?)"),
        ("skim_events", "headrace_events_created (created_at<?)"),
        ("prune_events", "headrace_events_created (created_at<?)"),
    ],
)
async def test_a_query_reads_its_index_in_order(query: str, index: str) -> None:
    plan = (await plans())[query]
    assert any(index in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan
