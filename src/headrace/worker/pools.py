"""Which executor serves which pool of a worker process."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.core.task import Pool
from headrace.executors.base import Executor
from headrace.executors.command import CommandExecutor
from headrace.executors.coroutine import CoroutineExecutor
from headrace.executors.invocation import Host
from headrace.executors.process import ProcessExecutor
from headrace.executors.thread import ThreadExecutor
from headrace.worker.application import tracing_of
from headrace.worker.keeping import result_limit

if TYPE_CHECKING:
    from headrace.worker.worker import Worker


def build_executors(worker: "Worker", resources: Mapping[str, Any]) -> Mapping[Pool, Executor]:
    """The executors that the options ask for. Killable children import the app themselves, so they need its target."""
    options, slots = worker.options, worker.slots
    assert slots is not None
    assert worker.words is not None
    host = Host(
        channel=worker.words,
        resources=resources,
        worker=worker.id,
        source=worker.app,
        result_limit=result_limit(worker.app),
        tracing=tracing_of(worker.app),
    )
    executors: dict[Pool, Executor] = {}
    if options.concurrency:
        executors["coroutine"] = CoroutineExecutor(concurrency=options.concurrency, slots=slots, host=host)
    if options.children and worker.target is not None:
        executors["child"] = ProcessExecutor(
            target=worker.target,
            children=options.children,
            slots=slots,
            host=host,
            max_tasks=options.max_tasks,
            memory_limit=options.max_memory,
            kill_memory=options.kill_memory,
        )
    if options.threads:
        executors["thread"] = ThreadExecutor(
            threads=options.threads, slots=slots, host=host, supervised=worker.supervised
        )
    if options.commands:
        executors["command"] = CommandExecutor(concurrency=options.commands, slots=slots, host=host)
    return executors
