"""How long until the tasks of a killed worker run again, on another worker that was there before."""

import time
from dataclasses import replace

from bench import record
from bench.comparing import Bench
from bench.parts import Measured
from bench.results import Measure, Series
from bench.stage import Failed, Stage
from bench.statistics import median
from bench.subjects import HEADRACE, HEADRACE_SQLITE, Subject


def measure(bench: Bench) -> Measured:
    bench.begin("recovery", 2 * sum(min(bench.pairs, most) for _, most in bench.size.leases))
    claimed = bench.size.claimed
    measures: dict[str, Measure] = {}
    for subject in (HEADRACE, HEADRACE_SQLITE):
        for lease, most in bench.size.leases:
            using = subject.using(f"{subject.store}, lease {lease:g} s", task="hold", lease=lease, concurrency=claimed)
            figures = bench.alone(using, lambda each: recovery(bench.stage, each, claimed), runs=min(bench.pairs, most))
            measures[f"{subject.store}_{lease:g}"] = Measure(
                value=median(figures), series=(Series.of(using.label, "s", figures),) if figures else ()
            )
    return Measured(measures=measures)


def recovery(stage: Stage, subject: Subject, claimed: int) -> float:
    """Seconds from kill -9 of a worker, supervisor and all, to the start of the last of its tasks on another worker.

    Both workers are up before, and the second is idle: it begins after every task is in the hands of the first.
    """
    with stage.fresh(replace(subject, finished=None)) as run:
        run.call("load", claimed)
        with run.crew(hold=True) as first:
            run.wait_until(lambda: run.started() >= claimed, f"{claimed} tasks in the first worker's hands", first)
            table = "headrace.workers" if subject.store == "postgres" else "headrace_workers"
            alive = f"SELECT count(*) FROM {table} WHERE state IN ('active', 'idle')"
            alone = run.ask(alive)
            with run.crew() as second:
                run.wait_until(lambda: run.ask(alive) > alone, "a second worker", second)
                # It has been watching the first one's heartbeat for a while, as in a cluster that runs.
                time.sleep(subject.options["lease"] / 2)
                if run.started() != claimed:
                    raise Failed(f"{subject.label}: tasks ran twice before anything was killed")
                killed = time.time()
                first.kill()
                run.wait_until(lambda: run.started() >= 2 * claimed, "every task again", second)
                run.wait_until(lambda: run.unfinished() == 0, "every task finished", second)
        again = [started for _, started in record.read(run.record) if started >= killed]
        if len(again) < claimed:
            raise Failed(f"{subject.label}: {len(again)} of {claimed} tasks ran again")
        return max(again) - killed
