"""Jobs that a transaction changed, written down as it leaves them."""

import orjson

from headrace.store.sqlite.transaction import Transaction
from headrace.store.watching import job_topic


def note_jobs(transaction: Transaction) -> None:
    """One event for each, under the next number of the job: nobody else writes meanwhile, so there are no gaps."""
    jobs = sorted(transaction.changed_jobs)
    parameters = {"jobs": orjson.dumps(jobs).decode(), "now": transaction.now}
    transaction.run("insert_job_events", parameters)
    transaction.run("raise_job_seq", parameters)
    transaction.grown.update(map(job_topic, jobs))
