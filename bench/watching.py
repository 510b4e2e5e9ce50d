"""One drain beside a server that tells an audience what other jobs say.

Server, talking jobs and drain are the same with and without the audience; the clients are in a process of their own.
"""

import socket
import time
from dataclasses import dataclass, replace

from bench.draining import Drain, watch
from bench.processes import cpu_seconds
from bench.stage import Failed, Run, Stage
from bench.subjects import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    drain: Drain
    server: float  # cores that it kept busy
    clients: float
    delivered: float  # messages a second


def drain_beside(stage: Stage, subject: Subject, tasks: int) -> Watched:
    """Subject's option `clients` says how many watch."""
    port, clients = free_port(), int(subject.options["clients"])
    subject = subject.using(subject.configuration, port=port)
    with stage.fresh(subject) as run:
        run.call("fill", tasks)
        with run.crew(role="server") as server, run.crew(role="talk") as talkers:
            run.wait_until(lambda: listens(port), "the server", server, 60.0)
            jobs = run.call("begin")
            run.wait_until(lambda: _talking(run) >= len(jobs), "every job has said something", talkers, 60.0)
            run.settle_store()
            audience = replace(run, subject=replace(subject.using("audience", jobs=jobs), adapter="audience"))
            with audience.beside("watch", wanted=clients > 0) as leave:
                began, cpu = time.monotonic(), cpu_seconds(server.pids)
                with run.crew(role="drain") as crew:
                    drained = watch(run, crew, tasks)
                seconds, cpu = time.monotonic() - began, cpu_seconds(server.pids) - cpu
                seen = leave()
        if seen["lost"]:
            raise Failed(f"{subject.label}: {seen['lost']} of {clients} clients were sent away")
    return Watched(drain=drained, server=cpu / seconds, clients=seen["cpu"], delivered=seen["messages"])


def _talking(run: Run) -> int:
    return run.ask("SELECT count(DISTINCT task) FROM headrace.logs")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
