"""`headrace demo`: the engine at work, and a killed worker whose tasks are rescued."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from headrace.cli.failures import FAILED, CommandError
from headrace.cli.output import console, print_json
from headrace.cli.target import Json
from headrace.core.errors import HeadraceError
from headrace.core.states import TaskState

_TARGET = "headrace.cli.demo_tasks:app"
_PATIENCE = 60.0


def demo(
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many small tasks to run.")] = 2_000,
    json: Json = False,
) -> None:
    """Watch tasks succeed, fail, retry, hit their limits, and survive a killed worker."""
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder:
        os.environ["HEADRACE_DATABASE_URL"] = f"sqlite:///{folder}/demo.db"
        try:
            summary = _Demo(Path(folder), say=(lambda *_: None) if json else console.print).run(tasks)
        except (TimeoutError, HeadraceError) as error:
            raise CommandError(f"{error}\n{_last_words(Path(folder) / 'worker.log')}", code=FAILED) from error
    if json:
        print_json(summary)
    if summary["violations"] or summary["lost"]:
        raise typer.Exit(FAILED)


class _Demo:
    def __init__(self, folder: Path, *, say: Callable[..., Any]) -> None:
        from headrace.cli import demo_tasks

        self.tasks = demo_tasks
        self.app = demo_tasks.app
        self.folder = folder
        self.say = say

    def run(self, count: int) -> dict[str, Any]:
        began = time.monotonic()
        self.app.upgrade()
        self.say(f"[bold]1[/] one SQLite file, no server: {escape(str(self.folder))}/demo.db")
        handles = self.tasks.work.enqueue_many({"n": n} for n in range(count))
        greeting = self.tasks.greet.enqueue(name="world")
        flaky = self.tasks.flaky.enqueue(seed=1)
        hopeless = self.tasks.hopeless.enqueue()
        endless = self.tasks.endless.using(retry=_once()).enqueue()
        pages = self.tasks.gated.enqueue_many({"page": page} for page in range(8))
        self.say(f"[bold]2[/] {count + 12} tasks enqueued in {time.monotonic() - began:.2f} s; a worker starts")
        worker = self._start()
        try:
            self.say(f"[bold]3[/] a task's result: [green]{escape(greeting.result(timeout=_PATIENCE))}[/]")
            finished = self._drain(handles)
            self.say(f"[bold]4[/] {count} small tasks done, {finished:.0f} a second on this machine")
            self.say(f"[bold]5[/] a task that fails twice: [green]{flaky.result(timeout=_PATIENCE)}[/]")
            self.say(f"[bold]6[/] a task that cannot succeed: [yellow]{self._fate(hopeless)}[/]")
            self.say(f"[bold]7[/] an endless loop, hard limit 1 s: [yellow]{self._fate(endless)}[/]")
            for page in pages:
                page.result(timeout=_PATIENCE)
            self.say("[bold]8[/] eight tasks through a limit of two at a time: done")
            rescued = self._kill_in_the_middle(worker)
        finally:
            self._stop(worker)
        violations = self.app.check()
        lost = self._unfinished()
        self.say(f"[bold]10[/] the ledger is checked: {violations or f'sound, {lost or "nothing"} lost'}")
        self.say(
            f"\nThat took {time.monotonic() - began:.0f} s. Next: the README's ten lines, and `headrace up tasks:app`."
        )
        return {
            "tasks": count + 15,
            "per_second": round(finished),
            "rescued": rescued,
            "lost": lost,
            "violations": [str(violation) for violation in violations],
            "seconds": round(time.monotonic() - began, 1),
        }

    def _kill_in_the_middle(self, worker: "subprocess.Popen[bytes]") -> int:
        handles = self.tasks.slow.enqueue_many({"n": n} for n in range(3))
        _wait(lambda: any(handle.state() == "running" for handle in handles), "a slow task to run")
        self.say("[bold]9[/] kill -9 of the whole worker in the middle of three tasks …")
        _kill_group(worker)
        self._replacement = self._start()
        for n, handle in enumerate(handles):
            if handle.result(timeout=_PATIENCE) != n:
                raise CommandError(f"task {handle.id} came back with a wrong result", code=FAILED)
        self.say("   … a new worker took them over when the lease ran out; [green]all three completed[/]")
        return len(handles)

    def _start(self) -> "subprocess.Popen[bytes]":
        log = (self.folder / "worker.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "worker", _TARGET, "--children", "2", "--grace", "5"],
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that the whole tree can be killed at once
        )

    def _stop(self, worker: "subprocess.Popen[bytes]") -> None:
        for process in (worker, getattr(self, "_replacement", None)):
            if process is not None and process.poll() is None:
                process.terminate()
                try:
                    process.wait(timeout=15)
                except subprocess.TimeoutExpired:
                    _kill_group(process)

    def _drain(self, handles: list[Any]) -> float:
        began = time.monotonic()
        for handle in handles:
            handle.result(timeout=_PATIENCE)
        return len(handles) / max(time.monotonic() - began, 0.001)

    def _unfinished(self) -> int:
        """Tasks that have not ended although everything was waited for."""
        return len(self.app.tasks.list(states=[state for state in TaskState if not state.terminal]))

    def _fate(self, handle: Any) -> str:
        handle.wait(timeout=_PATIENCE)
        record = handle.record()
        return escape(f"{record.state}/{record.reason} after {record.attempt} attempt: {record.error_message}")


def _last_words(log: Path) -> str:
    """What the worker said before something went wrong: its log goes with the folder."""
    lines = log.read_text(errors="replace").splitlines()[-20:] if log.exists() else []
    return "\n".join(["the worker's last lines:", *lines] if lines else ["the worker said nothing"])


def _once() -> Any:
    from headrace import Retry

    return Retry(max_attempts=1)


def _wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise CommandError(f"waited {_PATIENCE:.0f} s for {what}", code=FAILED)
        time.sleep(0.05)


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
