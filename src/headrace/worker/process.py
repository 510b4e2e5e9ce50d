"""The worker process below a supervisor: `python -m headrace.worker.process <pid of the supervisor>`.

The first line of its standard input says what it is to do. It works when the second says `go` (its row exists then, and
its lease is renewed), and it ends with its supervisor: a worker whose lease nobody renews must not run on.
"""

import asyncio
import contextlib
import json
import logging
import os
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from headrace.executors.context import running
from headrace.executors.slots import SlotRange, SlotTable
from headrace.runtime import collector
from headrace.runtime.parents import die_with_parent
from headrace.runtime.signals import stop_signals
from headrace.telemetry import logs
from headrace.telemetry.console import CONSOLE_EVENTS, console
from headrace.telemetry.events import Bus
from headrace.telemetry.relay import Relay, set_relay_address
from headrace.worker.application import Unstartable, load, warm
from headrace.worker.options import WorkerOptions
from headrace.worker.worker import Worker

_LEFT = 70
BEGIN, RETIRE = "begin", "retire"
_SWITCH_SECONDS = 0.0005
UNSTARTABLE = 78  # the user's module cannot be imported, or its lifespan or its children do not start

logger = logging.getLogger("headrace.worker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessConfig:
    """What a supervisor tells a worker process."""

    target: str
    options: str  # WorkerOptions as JSON
    slots: str  # path of the slot table
    index: int
    first_slot: int
    metrics: str | None = None  # where to send what is counted
    standby: bool = False  # take no task before the word `begin`

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def main(supervisor: str) -> int:
    die_with_parent(int(supervisor))
    line = _read_line()
    if not line:
        return 1
    config = ProcessConfig(**json.loads(line))
    logs.configure(WorkerOptions.from_json(config.options).logs, inherited=True)
    set_relay_address(config.metrics)
    identity = _wait_for_go()
    if identity is None:
        return 1
    orders = Orders()
    _watch_supervisor(orders)
    table = SlotTable.attach(Path(config.slots))
    with asyncio.Runner() as runner:
        try:
            return runner.run(_run(config, identity, table, orders))
        except Unstartable as error:
            logger.error("%s\n%s", error, "".join(traceback.format_exception(error.__cause__)).rstrip())
            return UNSTARTABLE
        except (SystemExit, KeyboardInterrupt) as error:
            # asyncio lets these through from a task or callback that user code started, and ends the loop. The slots
            # still say what was inside: leave at once, before an orderly end would empty them.
            _mark_guilty(error, table, config.index)
            os._exit(_LEFT)


async def _run(config: ProcessConfig, identity: str, table: SlotTable, orders: "Orders") -> int:
    options = WorkerOptions.from_json(config.options)
    table.tick(config.index)
    slots = SlotRange(table, worker=config.index, first=config.first_slot, count=options.slots)
    slots.forget_waiting()
    bus = Bus()
    bus.subscribe(console, *CONSOLE_EVENTS)
    relay = None if config.metrics is None else Relay(config.metrics).attach(bus)
    try:
        app = load(config.target)
    except BaseException as error:
        raise Unstartable(f"importing {config.target} failed") from error
    warm(app)
    collector.relieve()
    # The threads of a store need the interpreter again and again for a moment, while the loop has always more to run:
    # with 5 ms at each hand-over (Python's default) a SQLite transaction takes twice as long as its work.
    sys.setswitchinterval(_SWITCH_SECONDS)
    begin = asyncio.Event() if config.standby else None
    worker = Worker(app, options=options, slots=slots, identity=identity, target=config.target, bus=bus, begin=begin)
    if begin is not None:
        orders.on(BEGIN, begin.set)
    orders.on(RETIRE, worker.retire)
    with stop_signals(worker.stop, worker.stop_now):
        if relay is None:
            await worker.run()
            return 0
        sending = asyncio.create_task(relay.run(), name="headrace.relay")
        try:
            await worker.run()
        finally:
            sending.cancel()
            relay.close()
    return 0


def _mark_guilty(error: BaseException, table: SlotTable, index: int) -> None:
    """The loop ran the guilty step in the context of the attempt that had started it."""
    trace, context = error.__traceback__, None
    while trace is not None:
        runs = trace.tb_frame.f_locals.get("self")
        if isinstance(runs, asyncio.Handle):
            context = getattr(runs, "_context", None)
        trace = trace.tb_next
    attempt = None if context is None else context.get(running)
    for slot in table.occupied(worker=index):
        if attempt is not None and slot.ref == (attempt.task_id, attempt.claim_no):
            memory, place = table.mark(slot.index)
            memory[place] = 1


def _wait_for_go() -> str | None:
    """`go <worker id>` once the row exists; None when the supervisor is gone."""
    line = _read_line()
    word, _, identity = line.partition(" ")
    return identity.strip() if word == "go" else None


def _read_line() -> str:
    received = b""
    while not received.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            return ""
        received += byte
    return received.decode()


class Orders:
    """Words of the supervisor after `go`, brought from the thread that reads them to the loop."""

    def __init__(self) -> None:
        self._acts: dict[str, Callable[[], object]] = {}

    def on(self, word: str, act: Callable[[], None]) -> None:
        """The supervisor says a word only to a process that has told it that it listens."""
        loop = asyncio.get_running_loop()
        self._acts[word] = lambda: loop.call_soon_threadsafe(act)

    def hear(self, word: str) -> None:
        with contextlib.suppress(RuntimeError, KeyError):  # the loop has ended; nobody knows the word
            self._acts[word]()


def _watch_supervisor(orders: Orders) -> None:
    """Hears it, and ends with it where the kernel cannot do that: standard input ends when the supervisor does."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            while line := _read_line():
                orders.hear(line.strip())
        os._exit(1)

    threading.Thread(target=watch, name="headrace-supervisor-watch", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
