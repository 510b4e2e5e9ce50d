"""`headrace demo`: the engine at work in under a minute, with a killed worker whose tasks are rescued."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from headrace.cli.apart import ended_like_ctrl_c, own_settings
from headrace.cli.failures import FAILED, CommandError
from headrace.cli.output import console, print_json
from headrace.cli.target import Json
from headrace.core.errors import HeadraceError
from headrace.core.states import TaskState

if TYPE_CHECKING:
    from headrace.cli.demo_screen import Screen
    from headrace.cli.demo_server import DemoServer

_TARGET = "headrace.cli.demo_tasks:app"
_PATIENCE = 60.0


def demo(
    tasks: Annotated[int, typer.Option(min=1, max=1_000_000, help="How many small tasks to run.")] = 2_000,
    json: Json = False,
) -> None:
    """Watch tasks succeed, fail, retry, hit limits, fire by schedule, form a graph, and survive a killed worker."""
    with (
        ended_like_ctrl_c(),
        tempfile.TemporaryDirectory(prefix="headrace-demo-") as folder,
        own_settings(HEADRACE_DATABASE_URL=f"sqlite:///{folder}/demo.db"),
    ):
        try:
            summary = _show(Path(folder), tasks, json=json)
        except (TimeoutError, HeadraceError) as error:
            raise CommandError(f"{error}\n{_last_words(Path(folder) / 'worker.log')}", code=FAILED) from error
    if json:
        print_json(summary)
    if summary["violations"] or summary["lost"]:
        raise typer.Exit(FAILED)


def _show(folder: Path, tasks: int, *, json: bool) -> dict[str, Any]:
    from headrace.cli.demo_screen import Lines, LiveScreen, Silent

    if json:
        return _Demo(folder, Silent()).run(tasks)
    from headrace.cli.demo_server import DemoServer
    from headrace.cli.demo_tasks import app

    app.upgrade()
    with DemoServer(_TARGET, folder / "server.log") as server:
        if not console.is_terminal:
            return _Demo(folder, Lines(console), server.invitation).run(tasks)
        with LiveScreen(console, app.tasks.counts) as screen:
            demo = _Demo(folder, screen, server.invitation)
            summary = demo.run(tasks)
        if not summary["violations"] and not summary["lost"]:
            demo.stay(server)
        return summary


class _Demo:
    def __init__(self, folder: Path, screen: "Screen", invitation: str | None = None) -> None:
        from headrace.cli import demo_tasks

        self.tasks = demo_tasks
        self.app = demo_tasks.app
        self.folder = folder
        self.screen = screen
        self._invitation = invitation
        self._step = 0
        self._replacement: subprocess.Popen[bytes] | None = None
        self._resumed = 0  # steps of a durable task that were not done again
        self._rows: int | None = None  # of a table that was mapped while the worker died

    def run(self, count: int) -> dict[str, Any]:
        began = time.monotonic()
        self.app.upgrade()
        self._say(f"one SQLite file, no database server: {escape(str(self.folder))}/demo.db")
        if self._invitation is not None:
            self._say(f"look on while it works, {self._invitation}")
        handles = self.tasks.work.enqueue_many({"n": n} for n in range(count))
        greeting = self.tasks.greet.enqueue(name="world")
        flaky = self.tasks.flaky.enqueue(seed=1)
        hopeless = self.tasks.hopeless.enqueue()
        endless = self.tasks.endless.using(retry=_once()).enqueue()
        pages = self.tasks.gated.enqueue_many({"page": page} for page in range(8))
        self._say(f"{count + 12} tasks enqueued in {time.monotonic() - began:.2f} s; a worker starts")
        worker = self._start()
        try:
            self.screen.wait_for("the worker's first result")
            self._say(f"a task's result: [green]{escape(greeting.result(timeout=_PATIENCE))}[/]")
            self.screen.wait_for(f"{count} small tasks")
            finished = self._drain(handles)
            self._say(f"{count} small tasks done, {finished:.0f} a second on this machine")
            self.screen.wait_for("a task that fails twice and is tried again")
            self._say(f"a task that fails twice: [green]{flaky.result(timeout=_PATIENCE)}[/]")
            self._say(f"a task that cannot succeed: [yellow]{self._fate(hopeless)}[/]")
            self.screen.wait_for("the hard limit of an endless loop")
            self._say(f"an endless loop, hard limit 1 s: [yellow]{self._fate(endless)}[/]")
            for page in pages:
                page.result(timeout=_PATIENCE)
            self._say("eight tasks through a limit of two at a time: done")
            fired = self._watch_the_schedule()
            self._draw_a_graph()
            rescued = self._kill_in_the_middle(worker)
            self._end_the_schedule()
        finally:
            self._stop(worker)
        violations = self.app.check()
        lost = self._unfinished()
        self._say(f"the ledger is checked: {violations or f'sound, {lost or "nothing"} lost'}")
        self.screen.say(
            f"\nThat took {time.monotonic() - began:.0f} s. Next: the README's ten lines, and `headrace up tasks:app`."
        )
        return {
            "tasks": count + 48,
            "per_second": round(finished),
            "fired": fired,
            "rescued": rescued,
            "resumed": self._resumed,
            "rows": self._rows,
            "lost": lost,
            "violations": [str(violation) for violation in violations],
            "seconds": round(time.monotonic() - began, 1),
        }

    def stay(self, server: "DemoServer") -> None:
        """With a worker, so that what is enqueued on a page runs. Ctrl-C is how it ends, and no failure."""
        worker = self._start()
        try:
            console.print(f"It stays, with a worker: {server.invitation}\nCtrl-C ends it, and removes its folder.")
            server.wait()
        except KeyboardInterrupt:
            pass
        finally:
            self._stop(worker)

    def _say(self, text: str) -> None:
        self._step += 1
        self.screen.say(f"[bold]{self._step:>2}[/] {text}")

    def _watch_the_schedule(self) -> int:
        """It was declared beside the tasks, and has fired since the worker runs."""
        self.screen.wait_for("a schedule to fire twice")
        _wait(lambda: len(self._fires()) >= 2, "a schedule of one second to fire twice")
        fired = len(self._fires())
        self._say(f"a schedule, [green]every second[/]: fired {fired} times since the worker runs")
        return fired

    def _fires(self) -> list[Any]:
        runs = self.app.schedules.runs(self.tasks.tick.name)
        return [run for run in runs if run.status == "completed"]

    def _end_the_schedule(self) -> None:
        name = self.tasks.tick.name
        self.app.schedules.pause(name)
        unfinished = ("pending", "running")
        _wait(lambda: not any(run.status in unfinished for run in self.app.schedules.runs(name)), "its last fire")

    def _draw_a_graph(self) -> None:
        """A composition is one job, written in one transaction; this is what `headrace jobs show` prints of it."""
        from headrace import chain, group
        from headrace.cli.demo_work import picture_of

        pictures = self.tasks.find.si("summer")
        small = group(self.tasks.shrink.si(f"summer-{n}") for n in range(30))
        handle = chain(pictures, small, self.tasks.bind.s()).using(name="album").enqueue()
        self.screen.wait_for("a graph of 32 tasks")
        handle.result(timeout=_PATIENCE)
        handle.wait(timeout=_PATIENCE)
        self._say("a graph, [green]chain(find, group(shrink × 30), bind)[/], as `headrace jobs show` draws it:")
        for line in picture_of(self.app.url, self.app.name, handle.id):
            self.screen.say(f"      {line}")

    def _kill_in_the_middle(self, worker: "subprocess.Popen[bytes]") -> int:
        from headrace.cli.demo_work import DemoTable

        self.screen.wait_for("three tasks, a durable one and a table to be in the middle")
        handles = self.tasks.slow.enqueue_many({"n": n} for n in range(3))
        order = self.tasks.ship_order.enqueue(order=7)
        table = DemoTable(self.app, self.tasks.with_tax)
        _wait(lambda: all(handle.state() == "running" for handle in handles), "three tasks to run")
        _wait(lambda: "pack" in self._steps(), "the third step of a durable task")
        _wait(table.is_in_the_middle, "some chunks of a table")
        also = ", of a durable task" + (" and of a map over a table" if table.chunks else "")
        self._say(f"kill -9 of the whole worker in the middle of three tasks{also} …")
        self.screen.wait_for("the dead worker's lease to run out")
        _kill_group(worker)
        # A child has a group of its own, and ends when it finds its parent gone: before that nobody may go on.
        holding = self.tasks.beside_the_ledger("holding").read_text().split()
        _wait(lambda: not any(map(_is_alive, holding)), "the dead worker's children to end")
        self.tasks.beside_the_ledger("killed").touch()
        self._replacement = self._start()
        for n, handle in enumerate(handles):
            if handle.result(timeout=_PATIENCE) != n:
                raise CommandError(f"task {handle.id} came back with a wrong result", code=FAILED)
        self.screen.say("   … a new worker took them over when the lease ran out; [green]all three completed[/]")
        self._resume(order)
        self._rows = table.finished(self.screen.say)
        return len(handles)

    def _resume(self, order: Any) -> None:
        """The steps that were stored before the kill have the values of the process that is dead."""
        reserved, charged, packed, shipped = order.result(timeout=_PATIENCE)
        ran = self._steps()
        if ran.count("reserve") != 1 or ran.count("charge") != 1:
            raise CommandError(f"a durable task did a step twice: {ran}", code=FAILED)
        if reserved != charged or packed != shipped or charged == packed:
            raise CommandError(f"a durable task was not resumed by another process: {ran}", code=FAILED)
        self._resumed = 2
        self.screen.say(
            "   … the durable task [green]went on behind its second step[/]: reserve and charge were not done again"
        )

    def _steps(self) -> list[str]:
        file = self.tasks.beside_the_ledger("steps")
        return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []

    def _start(self) -> "subprocess.Popen[bytes]":
        log = (self.folder / "worker.log").open("ab")
        return subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "worker", _TARGET, "--children", "5", "--grace", "5"],
            stdout=log,
            stderr=log,
            start_new_session=True,  # so that the whole tree can be killed at once
        )

    def _stop(self, worker: "subprocess.Popen[bytes]") -> None:
        for process in (worker, self._replacement):
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


def _is_alive(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
