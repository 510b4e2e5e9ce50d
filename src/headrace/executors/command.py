"""Commands: an argv without a shell, in a session and process group of its own.

Arguments (canonical JSON): {"argv": [...], "env": {...}, "cwd": "...", "stdin": "..."}; only argv is needed, and env
is added to the worker's. The soft limit and `stop` send TERM to the group, the hard limit and the end of the grace send
KILL. Whatever the command left running in its group ends with it, and all of that with the worker process, however it
dies: see `launcher`. The group's number stands in the slot while it runs, for the supervisor's watch over limits.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from headrace.core import payload
from headrace.core.errors import ArgumentError
from headrace.core.outcome import Cancelled, Completed, Failed, Outcome, Released
from headrace.core.retry import ErrorSignature
from headrace.core.task import ErrorInfo, Ref
from headrace.executors.base import Capabilities, Launch, Ran
from headrace.executors.context import Context
from headrace.executors.invocation import Host, failure, permanent, timed_out, visible
from headrace.executors.launching import Launched, Launching
from headrace.executors.output import Output
from headrace.executors.slots import GROUP, SlotRange
from headrace.telemetry.tracing import Tracing

_STDERR_SHOWN = 500
_AFTER_EXIT = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    stdin: str | None = None

    @classmethod
    def parse(cls, text: str) -> "Command":
        """Raises ArgumentError that says which part is wrong."""
        data = payload.loads(text)
        if not isinstance(data, dict):
            raise ArgumentError(f"a command is an object with argv, not {type(data).__name__}")
        found = cast("dict[str, Any]", data)
        unknown = sorted(found.keys() - {"argv", "env", "cwd", "stdin"})
        if unknown:
            raise ArgumentError(f"a command has argv, env, cwd and stdin, not {', '.join(unknown)}")
        argv: Any = found.get("argv")
        env: Any = found.get("env", {})
        if not isinstance(argv, list) or not argv or not all(_is_text(part) for part in cast("list[Any]", argv)):
            raise ArgumentError(f"argv must be a list of texts without NUL, the program first, not {argv!r}")
        if not isinstance(env, dict):
            raise ArgumentError(f"env must be an object of texts, not {env!r}")
        for name, value in cast("dict[str, Any]", env).items():
            if not name or "=" in name or not _is_text(name) or not _is_text(value):
                raise ArgumentError(f"env: {name!r} = {value!r} cannot be set; names have no '=', both are texts")
        for key in ("cwd", "stdin"):
            if found.get(key) is not None and not isinstance(found[key], str):
                raise ArgumentError(f"{key} must be a text, not {found[key]!r}")
        return cls(
            argv=tuple(cast("list[str]", argv)),
            env=cast("dict[str, str]", env),
            cwd=found.get("cwd"),
            stdin=found.get("stdin"),
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and "\0" not in value


class Running:
    """One command."""

    def __init__(self, launch: Launch, launched: Launched, output: Output, loop: asyncio.AbstractEventLoop) -> None:
        self.launch = launch
        self.launched = launched
        self.output = output
        self.loop = loop
        self.stop_reason: str | None = None
        self.soft_passed = False
        self.timed_out = False
        self.timers: list[asyncio.TimerHandle] = []

    def signal_group(self, number: int) -> None:
        self.launched.signal_group(number)

    def soft(self) -> None:
        if not self.launched.exited.done():
            self.soft_passed = True
            self.signal_group(signal.SIGTERM)

    def hard(self) -> None:
        """Not one that ended in time and only has not been looked at, or whose output somebody else keeps open."""
        if not self.launched.exited.done():
            self.timed_out = True
            self.kill()

    def kill(self) -> None:
        self.signal_group(signal.SIGKILL)

    def stop(self, reason: str, grace: float) -> None:
        if self.stop_reason is None:
            self.stop_reason = reason
            self.signal_group(signal.SIGTERM)
            self.timers.append(self.loop.call_later(grace, self.kill))

    async def wait(self) -> int:
        try:
            code = await self.launched.exited
            await self.output.closed(_AFTER_EXIT)
            return code
        finally:
            for timer in self.timers:
                timer.cancel()

    def outcome(self, code: int) -> Outcome:
        if self.timed_out:
            return timed_out(self.launch.limits.hard)
        if code == 0:
            return Completed(
                result=payload.dumps(
                    {
                        "exit_code": 0,
                        "stdout": self.output.stdout.tail.text,
                        "stderr": self.output.stderr.tail.text,
                        "stdout_bytes": self.output.stdout.tail.total,
                        "stderr_bytes": self.output.stderr.tail.total,
                    }
                )
            )
        if self.stop_reason is not None:
            return Cancelled(reason=self.stop_reason)
        return self._failed(code)

    def _failed(self, code: int) -> Failed:
        if code > 0:
            how = f"exited with code {code}"
        else:
            how = f"was ended by {_signal_name(-code)}"
        if self.soft_passed:
            how += f" after its soft limit of {self.launch.limits.soft:g} s"
        said = self.output.stderr.tail.text[-_STDERR_SHOWN:].strip()
        kind = "soft_timeout" if self.soft_passed else "killed" if code == -signal.SIGKILL else "error"
        return Failed(
            error=ErrorInfo(
                error_class="headrace.CommandFailed",
                message=f"{self.launch.claim.name} {how}" + (f": {said}" if said else ""),
                exit_code=code,
            ),
            signature=failure(kind=kind),
        )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class CommandExecutor:
    """Up to `concurrency` commands at once."""

    name = "command"
    capabilities = Capabilities(kill=True)

    def __init__(self, *, concurrency: int, slots: SlotRange, host: Host) -> None:
        self._concurrency = concurrency
        self._slots = slots
        self._host = host
        self._running: dict[Ref, Running | None] = {}  # None while it is being started
        self._stopped_early: dict[Ref, str] = {}
        self._ended = asyncio.Event()
        self._launching = Launching()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        for ref in list(self._running):
            await self.stop(ref, grace=0.0, reason="stopped")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2 * _AFTER_EXIT):
                while self._running:
                    self._ended.clear()
                    await self._ended.wait()
        await self._launching.close()

    def free(self) -> int:
        return min(self._concurrency - len(self._running), self._slots.free())

    async def run(self, launch: Launch) -> Ran:
        try:
            command = Command.parse(launch.claim.arguments)
        except Exception as error:
            return Ran(outcome=permanent(error, launch.policy))
        index = self._slots.take()
        if index is None:
            return Ran(outcome=Released())
        ref = launch.ref
        self._running[ref] = None
        try:
            if self._host.tracing is None:
                return await self._run(launch, command, index, {})
            return await self._run_traced(self._host.tracing, launch, command, index)
        finally:
            self._slots.table.leave(index)
            self._slots.give(index)
            del self._running[ref]
            self._ended.set()
            self._stopped_early.pop(ref, None)

    async def _run_traced(self, tracing: Tracing, launch: Launch, command: Command, index: int) -> Ran:
        """The program continues the trace, if it knows how: its environment says where."""
        context = Context(launch.claim, channel=self._host.channel, options=launch.options, worker=self._host.worker)
        with tracing.running(context) as run:
            ran = await self._run(launch, command, index, run.environment)
            if isinstance(ran.outcome, Failed):
                run.failed(ran.outcome.error.error_class, ran.outcome.error.message)
            return ran

    async def _run(self, launch: Launch, command: Command, index: int, trace: Mapping[str, str]) -> Ran:
        entered = self._occupy(launch, index, pid=None)
        loop = asyncio.get_running_loop()
        output = Output()
        try:
            launched = await self._launching.launch(
                command.argv,
                env={**os.environ, **trace, **command.env},
                cwd=command.cwd,
                descriptors=output.open(stdin=command.stdin is not None),
            )
        except (OSError, ValueError) as error:
            output.close()
            return Ran(outcome=_not_started(command, error), ran_for=time.monotonic() - entered)
        except asyncio.CancelledError:
            output.close()
            raise
        entered = self._occupy(launch, index, pid=launched.pid)
        running = Running(launch, launched, output, loop)
        self._running[launch.ref] = running
        self._arm(running)
        if launch.ref in self._stopped_early:
            running.stop(self._stopped_early[launch.ref], 0.0)
        try:
            await output.connect(command.stdin)
            code = await running.wait()
        except BaseException:
            running.kill()
            raise
        finally:
            output.close()
        return Ran(outcome=running.outcome(code), ran_for=time.monotonic() - entered)

    def _occupy(self, launch: Launch, index: int, *, pid: int | None) -> float:
        """Until its number is known the slot is the worker's own and has no limit."""
        return self._slots.table.enter(
            index,
            worker=self._slots.worker,
            ref=launch.ref,
            soft=None,
            hard=launch.limits.hard if pid is not None else None,
            pid=pid,
            kind=GROUP if pid is not None else 0,
        )

    @staticmethod
    def _arm(running: Running) -> None:
        limits = running.launch.limits
        if limits.soft is not None:
            running.timers.append(running.loop.call_later(limits.soft, running.soft))
        if limits.hard is not None:
            running.timers.append(running.loop.call_later(limits.hard, running.hard))

    async def stop(self, ref: Ref, *, grace: float, reason: str = "user") -> None:
        if ref not in self._running:
            return
        running = self._running[ref]
        if running is None:
            self._stopped_early.setdefault(ref, reason)
        else:
            running.stop(reason, grace)


def _not_started(command: Command, error: OSError | ValueError) -> Failed:
    """A program that is not there will not be there at the next attempt; a machine out of processes may recover."""
    program = command.argv[0]
    match error:
        case FileNotFoundError() | NotADirectoryError() if command.cwd is not None and not os.path.isdir(command.cwd):
            message, verdict = f"the working directory {command.cwd!r} does not exist on this worker", "permanent"
        case FileNotFoundError():
            message, verdict = f"the program {program!r} is not on this worker (looked along PATH)", "permanent"
        case PermissionError():
            message, verdict = f"the program {program!r} may not be executed by this worker: {error}", "permanent"
        case _:
            message, verdict = f"the program {program!r} could not be started: {error}", None
    return Failed(
        error=ErrorInfo(error_class="headrace.CommandNotStarted", message=visible(message)),
        signature=ErrorSignature(kind="error", verdict=verdict),
    )
