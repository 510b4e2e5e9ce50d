"""A process full of claimers: `python -m tests.guarantees.claimers URL CLAIMERS SEED`.

Each claims, sometimes gives back, finishes, and now and then repeats a report or sends one for a claim it gave away.
When nothing is left it prints what was accepted, one JSON object, for the test to add up.
"""

import asyncio
import json
import random
import sys
import time

from headrace.core.settlement import Settlement
from headrace.core.states import TaskState
from headrace.core.task import ClaimedTask, Ref, TaskFilter
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance.ledger import completed, released
from tests.guarantees.ledgers import a_worker, claim

_LIVE = tuple(state for state in TaskState if not state.terminal)
_CEILING = 240.0


class Tally:
    def __init__(self) -> None:
        self.claimed: list[Ref] = []
        self.accepted: list[Ref] = []
        self.faults: list[str] = []


async def _finish(store: Store, worker: str, tasks: list[ClaimedTask], tally: Tally, rng: random.Random) -> None:
    keep = [task for task in tasks if rng.random() < 0.9]
    settlements: list[Settlement] = [completed(task, json.dumps(worker)) for task in keep]
    given_back = [released(task) for task in tasks if task not in keep]
    report = await store.finish(worker, [*settlements, *given_back])
    if report.refused or report.repeated:
        tally.faults.append(f"{worker} held its claims and was refused: {report}")
    tally.accepted.extend(found for found in report.accepted if any(s.task == found.id for s in settlements))
    if settlements and rng.random() < 0.2:
        # The answer was «lost»: the same report again. It must not be accepted a second time.
        again = await store.finish(worker, settlements)
        if again.accepted:
            tally.faults.append(f"a repeated report was accepted again: {again.accepted}")
    if given_back and rng.random() < 0.5:
        # What was given back is no longer ours to finish, whoever has it by now.
        late = await store.finish(worker, [completed(task, '"late"') for task in tasks if task not in keep])
        if late.accepted:
            tally.faults.append(f"a claim that was given back was finished: {late.accepted}")


async def _claim_until_done(store: Store, tally: Tally, rng: random.Random, deadline: float) -> None:
    worker = await a_worker(store)
    while time.monotonic() < deadline:
        tasks = await claim(store, worker, rng.choice((1, 3, 10)))
        tally.claimed.extend(Ref(task.id, task.claim_no) for task in tasks)
        if tasks:
            await _finish(store, worker, tasks, tally, rng)
        elif not await store.list(TaskFilter(states=_LIVE, limit=1)):
            return
        else:
            await asyncio.sleep(rng.random() / 50)
    tally.faults.append("not done within the ceiling")


async def main(url: str, claimers: int, seed: int) -> None:
    tally = Tally()
    store = connect(url, StoreOptions(pool_size=4, lease=3600))
    await store.open()
    try:
        deadline = time.monotonic() + _CEILING
        async with asyncio.TaskGroup() as group:
            for number in range(claimers):
                group.create_task(_claim_until_done(store, tally, random.Random(seed * 1000 + number), deadline))
    finally:
        await store.close()
    print(json.dumps({"claimed": tally.claimed, "accepted": tally.accepted, "faults": tally.faults[:10]}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
