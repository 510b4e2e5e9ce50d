"""What every store must do, as cases that run on any of them.

A case is a coroutine function over a `Ledger`: an open store on an empty database, and time that can be let pass.

    class TestMyStore(StoreConformance):
        def make_store(self):
            return MyStore(url_of_an_empty_database)

gives pytest one test for each case; or, without a class:

    @pytest.mark.parametrize("case", all_cases(), ids=str)
    def test_conformance(case):
        asyncio.run(exercise(case, lambda: MyStore(url)))

`exercise` opens the store, runs the case and then proves the ledger's invariants with `Store.check`.
"""

from headrace.testing.store_conformance import (
    accounts,
    admission,
    approvals,
    cancel,
    checkpoints,
    circuits,
    claim,
    concurrency,
    dead_letters,
    deleting,
    edges,
    enqueue,
    events,
    expecting,
    fan_in,
    figures,
    finish,
    graph_fates,
    graphs,
    inspection,
    jobs,
    keys,
    keys_after_the_end,
    lanes_and_priorities,
    live,
    liveness_and_rescue,
    logs,
    outlines,
    owners,
    plain_successes,
    queue_settings,
    queues,
    refused_reports,
    relations,
    reopening,
    retry,
    schedules,
    skimming,
    start,
    subscriptions,
    suspending,
    upkeep,
    waiting_again,
)
from headrace.testing.store_conformance.case import Case, exercise
from headrace.testing.store_conformance.ledger import Ledger
from headrace.testing.store_conformance.suite import StoreConformance

__all__ = ["Case", "Ledger", "StoreConformance", "all_cases", "exercise"]

_CONCERNS = (
    enqueue, keys, keys_after_the_end, claim, lanes_and_priorities, admission, start, finish, plain_successes,
    outlines, waiting_again, live, deleting, expecting, subscriptions,
    refused_reports, dead_letters, cancel, retry, jobs, graphs, graph_fates, edges, approvals, fan_in, reopening,
    suspending, events, liveness_and_rescue, upkeep, queues, inspection, checkpoints, logs, schedules, concurrency,
    owners, accounts, circuits, queue_settings, figures, skimming, relations,
)  # fmt: skip


def all_cases() -> list[Case]:
    return [case for concern in _CONCERNS for case in concern.cases]
