"""The server: tasks submitted over HTTP, new work in a storm of retries, and tasks beside an audience."""

import dataclasses
import time
from dataclasses import dataclass, replace

from bench import record
from bench.adapters.api_secret import SECRET
from bench.comparing import Bench, ratio
from bench.parts import Measured
from bench.results import Measure, Series
from bench.stage import Failed, Run, Stage
from bench.statistics import percentile
from bench.subjects import CELERY, DRAMATIQ, HEADRACE, HEADRACE_SQLITE, Subject
from bench.watching import drain_beside, free_port, listens

_REQUESTS = 12_000
_STORM = 10_000
_ARRIVALS = 400
_WATCHED = 120_000
_CLIENTS = 2000
_WARM = 20
_UNDRAINED = "SELECT count(*) FROM headrace.tasks WHERE queue = 'default'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    rate: float
    p50: float  # milliseconds
    p99: float


def measure(bench: Bench) -> Measured:
    ours = replace(HEADRACE.using("its whole API, a token"), adapter="api_headrace", finished=None)
    peers = {
        "celery": tuple(_peer(CELERY, "celery", route) for route in ("def", "async")),
        "dramatiq": tuple(_peer(DRAMATIQ, "dramatiq", route) for route in ("def", "async")),
    }
    bench.begin("server", bench.pairs * (4 + 1 + 4 + 2) + bench.size.pilots * 4)
    measures: dict[str, Measure] = {}
    beside: list[Series] = []
    requests = bench.size.tasks(_REQUESTS)

    def run(subject: Subject) -> Answered:
        return submits(bench.stage, subject, requests)

    for name, candidates in peers.items():
        peer = bench.best(candidates, run, lambda answered: answered.rate)
        pairs = bench.pair(ours, peer, run)
        rates = [(one.rate, other.rate) for one, other in pairs]
        tails = [(one.p99, other.p99) for one, other in pairs]
        measures[f"submits_{name}"] = ratio(ours, peer, rates, unit="submits/s", wanted=bench.pairs)
        measures[f"tail_{name}"] = ratio(ours, peer, tails, unit="ms p99", wanted=bench.pairs)
    file = replace(HEADRACE_SQLITE.using("SQLite FULL, its whole API, a token"), adapter="api_headrace", finished=None)
    if figures := bench.alone(file, run):
        beside.append(Series.of("headrace on SQLite FULL", "submits/s", [each.rate for each in figures]))
    for subject in (HEADRACE, HEADRACE_SQLITE):
        measures[f"storm_{subject.store}"] = _storm(bench, subject)
    measures["live_throughput"] = _live(bench, beside)
    return Measured(measures=measures, beside=beside)


def _peer(subject: Subject, name: str, route: str) -> Subject:
    made = subject.using(f"FastAPI, `{route} def`" if route == "async" else "FastAPI, `def`", peer=name, route=route)
    # No worker runs, so a message stands in its queue; Dramatiq keeps the same one under its id as well.
    verb, key = next(part for part in subject.unfinished if part[0] == "llen")
    return replace(made, adapter="api_peers", finished=None, unfinished=((verb, key),))


# Submitting.


def submits(stage: Stage, subject: Subject, requests: int) -> Answered:
    """A server of its own, a crowd of clients, and a look into the store: every answered submit is there."""
    port = free_port()
    subject = subject.using(subject.configuration, port=port, token=SECRET)
    with stage.fresh(subject) as run, run.crew() as crew:
        run.wait_until(lambda: listens(port), "the server", crew, 60.0)
        crowd = dataclasses.replace(run, subject=replace(subject, adapter="submitter"))
        found = crowd.call("submit", requests)
        waiting = run.unfinished()
        if waiting != found["sent"]:
            raise Failed(
                f"{subject.label}: {found['sent']} submits were answered, and {waiting} tasks are in the store"
            )
    return Answered(rate=found["rate"], p50=found["p50"], p99=found["p99"])


# The storm.


def _storm(bench: Bench, subject: Subject) -> Measure:
    tasks, arrivals = bench.size.tasks(_STORM), bench.size.tasks(_ARRIVALS) if bench.size.share < 1 else _ARRIVALS
    own = replace(subject, adapter="storm", finished=None)
    stormy, calm = own.using(f"{tasks:,} failing tasks", storm=tasks), own.using("no storm", storm=0)
    pairs = bench.pair(stormy, calm, lambda each: picked_up(bench.stage, each, each.options["storm"], arrivals))
    return ratio(stormy, calm, pairs, unit="ms p50 until new work starts", wanted=bench.pairs)


def picked_up(stage: Stage, subject: Subject, storm: int, arrivals: int) -> float:
    """The median wait of new work, in milliseconds, while those that fail come back again and again."""
    with stage.fresh(subject) as run:
        if storm:
            run.call("storm", storm)
        with run.crew() as crew:
            run.call("arrive", _WARM)
            run.wait_until(lambda: run.started() >= _WARM, "the first new work", crew)
            if storm:
                _wait_for_retries(run, storm)
            run.call("arrive", arrivals)
            run.wait_until(lambda: run.started() >= _WARM + arrivals, f"{arrivals} pickups", crew)
            waits = [(started - sent) * 1000 for sent, started in record.read(run.record, after=_WARM)]
    return percentile(waits, 0.5)


def _wait_for_retries(run: Run, storm: int) -> None:
    """Until every one of them has failed once: then they are retries."""
    table = "headrace.tasks" if run.subject.store == "postgres" else "headrace_tasks"
    deadline = time.monotonic() + 120.0
    while run.ask(f"SELECT count(*) FROM {table} WHERE lane = 1") < storm:
        if time.monotonic() > deadline:
            raise Failed(f"{run.subject.label}: not all of {storm} tasks have failed once")
        time.sleep(0.05)


# The audience.


def _live(bench: Bench, beside: list[Series]) -> Measure:
    """The same drain, server and messages with clients and without any."""
    tasks, clients = bench.size.tasks(_WATCHED), bench.size.tasks(_CLIENTS) if bench.size.share < 1 else _CLIENTS
    own = replace(HEADRACE, adapter="live", finished=None, unfinished=_UNDRAINED)
    full = own.using(f"{clients:,} WebSocket clients", clients=clients)
    empty = own.using("nobody watches", clients=0)
    pairs = bench.pair(full, empty, lambda each: drain_beside(bench.stage, each, tasks))
    if pairs:
        watched, alone = [one for one, _ in pairs], [other for _, other in pairs]
        cpu = "µs of CPU per task"
        beside += [
            Series.of("a drain beside WebSocket clients: messages", "messages/s", [one.delivered for one in watched]),
            Series.of("… their server", "cores", [one.server for one in watched]),
            Series.of("… the clients themselves", "cores", [one.clients for one in watched]),
            Series.of("… worker and database", cpu, [one.drain.cpu * 1e6 for one in watched]),
            Series.of("… the same without clients", cpu, [one.drain.cpu * 1e6 for one in alone]),
        ]
    rates = [(one.drain.rate, other.drain.rate) for one, other in pairs]
    return ratio(full, empty, rates, unit="tasks/s", wanted=bench.pairs)
