"""`--reload` as a developer meets it: real processes, a real editor's saves, and signals in the middle."""

import asyncio
import importlib.util
import json
import os
import py_compile
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from headrace.core.errors import SettingsError
from headrace.core.states import TaskState
from headrace.core.task import NewTask
from headrace.runtime.watchfiles import need_watchfiles
from headrace.store.base import Store
from headrace.store.connect import connect
from headrace.worker.reloading import forget_bytecode, is_source, source_directories
from tests.support.processes import runs
from tests.support.sizes import sized
from tests.support.waiting import eventually

PATIENCE = 60.0

# Versions have one digit each: two saves within a second then leave a file of the same size and time.
CODE = """
import asyncio
import os
import time
from pathlib import Path

from headrace import App

VERSION = {version}
app = App(os.environ["HEADRACE_DATABASE_URL"])
{import_time}

def say(word, n):
    descriptor = os.open(os.environ["HEADRACE_TEST_SIDE"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{{word}} {{n}} {{VERSION}}\\n".encode())
    os.close(descriptor)


@app.task
async def loop(n: int) -> int:
    say("loop", n)
    return VERSION


@app.task
def child(n: int) -> int:
    say("child", n)
    return VERSION


@app.task
async def slow_loop(path: str) -> int:
    say("slow_loop", 0)
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return VERSION


@app.task
def slow_child(path: str) -> int:
    say("slow_child", 0)
    while not Path(path).exists():
        time.sleep(0.02)
    return VERSION
"""


@dataclass(slots=True)
class Session:
    """A developer with an editor and a terminal."""

    url: str
    folder: Path
    process: "subprocess.Popen[bytes]" = field(init=False)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = connect(self.url)

    @property
    def log(self) -> str:
        return (self.folder / "terminal.log").read_text()

    def save(self, version: int, *, import_time: str = "") -> None:
        self.write(CODE.format(version=version, import_time=import_time))

    def write(self, text: str) -> None:
        """As editors do it: whole, beside, and then in its place."""
        path = self.folder / "code" / "tasks.py"
        path.parent.mkdir(exist_ok=True)
        path.with_suffix(".part").write_text(text)
        path.with_suffix(".part").replace(path)

    def said(self, word: str) -> list[tuple[str, int]]:
        """(number, version) of the executions that announced themselves with this word."""
        path = self.folder / "said"
        lines = path.read_text().splitlines() if path.exists() else []
        return [(number, int(version)) for one, number, version in map(str.split, lines) if one == word]

    def ran(self, version: int) -> bool:
        return all(version in {found for _, found in self.said(word)} for word in ("loop", "child"))

    def everyone(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            reloader = psutil.Process(self.process.pid)
            return [reloader, *reloader.children(recursive=True)]
        return []

    def supervisors(self) -> list[int]:
        with suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(self.process.pid).children()]
        return []

    async def enqueue(self, name: str, **arguments: object) -> int:
        pool = "child" if "child" in name else "coroutine"
        new = NewTask(name=f"tasks.{name}", arguments=json.dumps(arguments), pool=pool, max_attempts=4)
        (answer,) = await self.store.enqueue([new])
        return answer.id

    async def all_completed(self, tasks: Iterable[int]) -> bool:
        records = (await self.store.get(list(tasks))).values()
        return {record.state for record in records} == {TaskState.COMPLETED}


@asynccontextmanager
async def opened(made: Session) -> AsyncIterator[Session]:
    await made.store.open()
    try:
        yield made
    finally:
        await made.store.close()


@contextmanager
def reserved_port() -> Iterator[int]:
    """One that nobody takes who does not mean to share it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@contextmanager
def session(url: str, folder: Path, *words: str) -> Iterator[Session]:
    """`headrace <words> --reload` in a folder with version 1; whatever happens, nothing of it is left running."""
    made = Session(url, folder)
    made.save(1)
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_TEST_SIDE": str(folder / "said")}
    environment["HEADRACE_PORT"] = "0"
    with (folder / "terminal.log").open("wb") as log:
        made.process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", *words, "--reload"],
            cwd=folder / "code", env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield made
    finally:
        for one in made.everyone():
            with suppress(psutil.NoSuchProcess):
                one.kill()
        made.process.wait(30)
        print(made.log[-6000:])


class Load:
    """Enqueues without a pause, and notes what each task must find: no version before the last that was seen."""

    def __init__(self, made: Session) -> None:
        self._made = made
        self.least: dict[int, int] = {}  # by its number
        self.tasks: list[int] = []
        self.over = False

    async def run(self) -> None:
        while not self.over:
            for word in ("loop", "child"):
                number = len(self.tasks)
                seen = [version for word in ("loop", "child") for _, version in self._made.said(word)]
                self.least[number] = max(seen, default=1)
                self.tasks.append(await self._made.enqueue(word, n=number))
            await asyncio.sleep(0.03)


@pytest.mark.chaos
@pytest.mark.timeout(400)
async def test_each_save_is_taken_over_under_load_and_each_task_runs_once(store_url: str, tmp_path: Path) -> None:
    """Worker processes with children, saves one after the other, a broken one among them. What was running at the
    first save ends on the code it began with; what is enqueued after a version was seen finds that or a later one.
    """
    last, processes = (sized(small=4, full=6), "2") if store_url.startswith("sqlite") else (3, "1")
    words = ("worker", "tasks:app", "--processes", processes, "--children", "1", "--grace", "100")
    with session(store_url, tmp_path, *words) as developer:
        async with opened(developer):
            load, end = Load(developer), tmp_path / "end"
            slow = [await developer.enqueue(name, path=str(end)) for name in ("slow_loop", "slow_child")]
            await eventually(lambda: developer.said("slow_loop") and developer.said("slow_child"), PATIENCE)
            loading = asyncio.create_task(load.run())
            for version in range(2, last + 1):
                if version == 3:
                    developer.write("def broken(:")
                    await eventually(lambda: "the new code does not start" in developer.log, PATIENCE)
                    count = len(load.tasks)
                    await eventually(lambda count=count: len(developer.said("loop")) * 2 > count + 4, PATIENCE)
                    assert developer.said("loop")[-1][1] == 2, "what ran before goes on"
                developer.save(version)
                await eventually(lambda version=version: developer.ran(version), PATIENCE)
                if version == 2:
                    assert not await developer.all_completed(slow)
                    end.touch()
            load.over = True
            await loading
            await eventually(lambda: developer.all_completed([*slow, *load.tasks]), PATIENCE)
            developer.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(developer.process.wait, PATIENCE) == 0
            records = await developer.store.get([*slow, *load.tasks])
            assert {record.attempt for record in records.values()} == {1}
            assert [records[task].result for task in slow] == ["1", "1"]
            ran = [*developer.said("loop"), *developer.said("child")]
            runs = Counter(int(number) for number, _ in ran)
            assert sorted(runs) == list(range(len(load.tasks)))
            # Once, but for what a loop that stood still for a second was relieved of just when it began it.
            again = {number for number, count in runs.items() if count > 1}
            assert [number for number in again if records[load.tasks[number]].claim_no == 1] == []
            assert len(again) <= developer.log.count("has not turned for")
            assert [(n, version) for n, version in ran if version < load.least[int(n)]] == []
            assert developer.log.count("SyntaxError:") == 1
            assert "    def broken(:\n" in developer.log, "the line is shown"
            assert developer.log.count("reloaded in") == last - 1
            assert {worker.state for worker in await developer.store.workers()} == {"stopped"}
            assert await developer.store.check() == []


@pytest.mark.timeout(300)
async def test_a_stop_in_the_middle_of_a_reload_ends_both_and_loses_nothing(sqlite_url: str, tmp_path: Path) -> None:
    with session(sqlite_url, tmp_path, "up", "tasks:app", "--children", "1", "--grace", "100") as developer:
        async with opened(developer):
            end = tmp_path / "end"
            slow = await developer.enqueue("slow_loop", path=str(end))
            await eventually(lambda: developer.said("slow_loop"), PATIENCE)
            hang = 'Path(os.environ["HEADRACE_TEST_SIDE"] + ".importing").touch()\ntime.sleep(300)'
            developer.save(2, import_time=hang)
            await eventually((tmp_path / "said.importing").exists, PATIENCE)
            assert len(developer.supervisors()) == 2
            developer.process.send_signal(signal.SIGTERM)
            await eventually(lambda: len(developer.supervisors()) == 1, PATIENCE)
            assert developer.process.poll() is None, "it waits for what runs"
            end.touch()
            assert await asyncio.to_thread(developer.process.wait, PATIENCE) == 0
            record = (await developer.store.get([slow]))[slow]
            assert (record.state, record.attempt, record.result) == (TaskState.COMPLETED, 1, "1")


@pytest.mark.timeout(300)
async def test_a_killed_reloader_leaves_nobody_behind_and_the_next_save_replaces_one_that_hangs(
    sqlite_url: str, tmp_path: Path
) -> None:
    """The page of metrics goes over to the new code, too: both have the same port for a while."""
    with (
        reserved_port() as port,
        session(sqlite_url, tmp_path, "worker", "tasks:app", "--children", "1", f"--metrics-port={port}") as developer,
    ):
        async with opened(developer):
            await developer.enqueue("child", n=1)
            await eventually(lambda: developer.said("child"), PATIENCE)
            first = set(developer.supervisors())
            developer.save(2, import_time="time.sleep(300)")
            await eventually(lambda: len(developer.supervisors()) == 2, PATIENCE)
            (hangs,) = set(developer.supervisors()) - first
            developer.save(3)
            await eventually(lambda: hangs not in developer.supervisors(), PATIENCE)
            await eventually(lambda: "reloaded in" in developer.log, PATIENCE)
            await developer.enqueue("child", n=2)
            await eventually(lambda: developer.said("child")[-1] == ("2", 3), PATIENCE)
            everyone = developer.everyone()
            assert len(everyone) >= 5, "the reloader, a supervisor, a worker process, its forkserver and a child"
            developer.process.kill()
            await eventually(lambda: not any(runs(one) for one in everyone), PATIENCE)


SCHEDULE = "from headrace import Schedule\nloop.schedule(Schedule(3600, name={name!r}), n=0)"
FAILING = """
@app.lifespan
async def lifespan():
    raise RuntimeError("no connection")
    yield
"""


@pytest.mark.timeout(300)
async def test_schedules_are_those_of_the_code_that_runs(sqlite_url: str, tmp_path: Path) -> None:
    """Code that does not start takes none out and writes none; the next that does start does both."""
    with session(sqlite_url, tmp_path, "worker", "tasks:app", "--children", "1") as developer:
        async with opened(developer):

            async def are(*names: str) -> bool:
                return [record.name for record in await developer.store.schedules()] == list(names)

            def code(version: int, *more: str) -> str:
                return "\n".join([CODE.format(version=version, import_time=""), *more])

            await developer.enqueue("loop", n=1)
            await eventually(lambda: developer.said("loop"), PATIENCE)
            developer.write(code(2, SCHEDULE.format(name="kept")))
            await eventually(lambda: are("kept"), PATIENCE)
            developer.write(code(3, SCHEDULE.format(name="other"), FAILING))
            await eventually(lambda: "the new code does not start" in developer.log, PATIENCE)
            assert await are("kept")
            developer.write(code(4, SCHEDULE.format(name="other")))
            await eventually(lambda: are("other"), PATIENCE)
            developer.process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(developer.process.wait, PATIENCE) == 0


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("raise RuntimeError('no key')", "RuntimeError: no key"),
        ("import there_is_no_such_thing", "No module named 'there_is_no_such_thing'"),
    ],
)
def test_a_first_start_that_fails_says_why_and_ends(sqlite_url: str, tmp_path: Path, code: str, words: str) -> None:
    (tmp_path / "tasks.py").write_text(code)
    done = headrace(tmp_path, "worker", "tasks:app", "--reload")
    assert done.returncode == 2
    assert words in done.stderr
    assert done.stderr.count("importing 'tasks' failed") == 1


def headrace(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "headrace.cli", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=100, check=False)


def test_a_burst_has_nothing_to_reload(tmp_path: Path) -> None:
    done = headrace(tmp_path, "worker", "tasks:app", "--reload", "--burst")
    assert done.returncode == 2
    assert "--reload and --burst contradict each other" in done.stderr


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    need_watchfiles()
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(SettingsError, match=r"pip install 'headrace\[reload\]'"):
        need_watchfiles()


def test_only_what_somebody_writes_is_watched() -> None:
    root = Path("/home/me/.venv/shop")  # what lies above the folder says nothing
    assert is_source(root / "tasks.py", [root])
    assert is_source(root / "mail" / "send.py", [root])
    for name in ("tasks.pyc", "notes.txt", ".git/hooks/a.py", "a/__pycache__/b.py", "node_modules/c.py", ".venv/d.py"):
        assert not is_source(root / name, [root])
    assert is_source(root / ".venv" / "mine" / "a.py", [root, root / ".venv" / "mine"]), "it was asked for by name"


def test_the_folder_of_the_module_or_of_its_top_package_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "single_module.py").write_text("raise SystemExit('nobody may import this')")
    (tmp_path / "top_package" / "below").mkdir(parents=True)
    (tmp_path / "top_package" / "__init__.py").write_text("raise SystemExit('nor this')")
    assert source_directories("single_module:app") == [tmp_path]
    assert source_directories("top_package.below.tasks:app") == [tmp_path / "top_package"]
    assert source_directories("there_is_none:app") == [tmp_path]


def test_bytecode_of_a_changed_file_is_forgotten(tmp_path: Path) -> None:
    """Compiled within the second of the change, it would pass for that of the new file."""
    source = tmp_path / "tasks.py"
    source.write_text("VERSION = 1")
    compiled = Path(py_compile.compile(str(source)) or "")
    assert compiled == Path(importlib.util.cache_from_source(str(source)))
    forget_bytecode({source, tmp_path / "gone.py"})
    assert not compiled.exists()
    assert source.exists()
