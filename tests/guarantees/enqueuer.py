"""A program that goes on with the old URL: `python -m tests.guarantees.enqueuer URL FOLDER`.

It enqueues one by one, in bulk and in jobs, and asks after what it enqueued before, until FOLDER has a file `enough`.
Each answered enqueue is a line `made ID` in FOLDER/enqueued, each job `job ID`; a task that cannot be found is
`missing ID`.
"""

import os
import random
import sys
import time
from pathlib import Path

from headrace.core.errors import NotFound, StoreUnavailable
from tests.guarantees.workload import Workload, make

_PACE = 0.02  # seconds between two calls: the load is to last, not to fill the machine


def main(url: str, folder: Path) -> None:
    load, rng = make(url), random.Random(5)
    ids: list[int] = []
    file = os.open(folder / "enqueued", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)

    def tell(word: str, *some: int) -> None:
        os.write(file, "".join(f"{word} {id}\n" for id in some).encode())

    turn = 0
    while not (folder / "enough").exists():
        turn += 1
        time.sleep(_PACE)
        if turn % 10 == 0:
            job = load.app.jobs.create(f"job {turn}").id
            tell("job", job)
            made = _added(load, job)
        elif turn % 5 == 0:
            made = [handle.id for handle in load.touch.enqueue_many([{"n": n} for n in range(10)])]
        else:
            made = [load.touch.enqueue(n=turn).id]
        ids += made
        tell("made", *made)
        asked = rng.choice(ids)
        try:
            load.app.tasks.handle(asked).state()
        except NotFound:
            tell("missing", asked)
    load.app.close()


def _added(load: Workload, job: int) -> list[int]:
    """While the mover is dead a job may be on its way, and then takes no tasks: nothing was written."""
    while True:
        try:
            return [answer.id for answer in load.app.jobs.add(job, *(load.touch.prepare(n=n) for n in range(3)))]
        except StoreUnavailable:
            continue


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
