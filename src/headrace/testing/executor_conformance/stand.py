"""What a case stands on: an executor, a slot table with its watchdog, and a channel that remembers."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.core import payload
from headrace.core.retry import Retry
from headrace.core.task import ClaimedTask, Ref
from headrace.executors.base import Executor, Launch, Limits, Ran
from headrace.executors.context import LogLine, Progress
from headrace.executors.invocation import Host
from headrace.executors.slots import SlotRange, SlotTable
from headrace.executors.watchdog import WatchdogThread
from headrace.testing.executor_conformance.tasks import source

CEILING = 30.0

type MakeExecutor = Callable[[SlotRange, Host], Executor]


class RecordingChannel:
    def __init__(self) -> None:
        self.lines: dict[Ref, list[LogLine]] = {}
        self.values: dict[Ref, Progress] = {}
        self.streams: dict[Ref, list[str]] = {}
        self.heartbeats: list[Ref] = []

    def log(self, ref: Ref, line: LogLine, /) -> None:
        self.lines.setdefault(ref, []).append(line)

    def progress(self, ref: Ref, progress: Progress, /) -> None:
        self.values[ref] = progress

    def stream(self, ref: Ref, value: str, /) -> None:
        self.streams.setdefault(ref, []).append(value)

    def heartbeat(self, ref: Ref, /) -> None:
        self.heartbeats.append(ref)

    def said(self, ref: Ref) -> list[str]:
        return [line.message for line in self.lines.get(ref, [])]


def claimed(number: int, name: str, arguments: str = "{}", **changes: Any) -> ClaimedTask:
    """A claimed task as a store would give it."""
    return ClaimedTask(
        id=number,
        claim_no=1,
        name=name,
        kind="function",
        queue="default",
        pool="child",
        lane=0,
        priority=0,
        arguments=arguments,
        codec="json/1",
        version=1,
        options="{}",
        attempt=0,
        losses=0,
        max_attempts=4,
        run_no=1,
        job=None,
        gated=False,
        expired=False,
        state="claimed",
        order_at=0,
        waited=0.0,
    )._replace(**changes)


@dataclass
class Stand:
    executor: Executor
    channel: RecordingChannel
    table: SlotTable
    suffix: str = ""  # "_async" where the executor runs coroutines
    command: Callable[[str], list[str]] | None = None  # the argv of a behaviour, for executors of commands
    entries: bool = True  # whether launches carry their entry
    results: list[Ran] = field(default_factory=list[Ran])
    _number: int = 0

    @classmethod
    @asynccontextmanager
    async def open(cls, make: MakeExecutor, directory: Path, **traits: Any) -> AsyncGenerator["Stand"]:
        table = SlotTable.create(directory / "slots", 16)
        channel = RecordingChannel()
        host = Host(channel=channel, worker="stand", resources={"opened_in": 0})
        watchdog = WatchdogThread(table, interval=0.02)
        executor = make(SlotRange(table), host)
        await executor.open()
        watchdog.start()
        try:
            yield cls(executor, channel, table, **traits)
        finally:
            await executor.close()
            watchdog.stop()
            table.close()

    def launch(
        self,
        name: str,
        *,
        soft: float | None = None,
        hard: float | None = None,
        text: str | None = None,
        options: dict[str, Any] | None = None,
        claim: dict[str, Any] | None = None,
        **arguments: Any,
    ) -> Launch:
        self._number += 1
        if self.command is not None:
            claim = {"kind": "command", "pool": "command", **(claim or {})}
            text = payload.dumps({"argv": self.command(name)})
        elif "." not in name and hasattr(source, "resolve"):
            name = self._flavoured(name)
        task = claimed(self._number, name, text if text is not None else payload.dumps(arguments), **(claim or {}))
        return Launch(
            claim=task,
            entry=source.resolve(name, {}) if self.entries and self.command is None else None,
            options=options or {},
            limits=Limits(soft=soft, hard=hard),
            policy=Retry(),
        )

    def _flavoured(self, name: str) -> str:
        from headrace.testing.executor_conformance import tasks

        return f"{name}{self.suffix}" if hasattr(tasks, f"task_{name}{self.suffix}") else name

    async def run(self, name: str, **how: Any) -> Ran:
        return await asyncio.wait_for(self.executor.run(self.launch(name, **how)), CEILING)

    async def start(self, name: str, **how: Any) -> tuple[Launch, "asyncio.Task[Ran]"]:
        """Returns once user code has been entered."""
        launch = self.launch(name, **how)
        task = asyncio.ensure_future(self.executor.run(launch))
        await self.until(lambda: self._entered(launch.ref) or task.done())
        return launch, task

    def _entered(self, ref: Ref) -> bool:
        if self.command is not None:
            return any(slot.ref == ref and slot.kind for slot in self.table.occupied())
        return "entered" in self.channel.said(ref)

    async def until(self, condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + CEILING
        while not condition():
            assert time.monotonic() < deadline, "the condition did not come true"
            await asyncio.sleep(0.005)

    @property
    def occupied(self) -> set[Ref]:
        return {slot.ref for slot in self.table.occupied()}
