"""Plays a page as its reader would: writes its files, runs its Python and its commands, in one empty folder."""

import json
import os
import re
import select
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from tests.docs.reading import Block
from tests.support.waiting import wait_until

PATIENCE = 120.0  # for one command or block, on a machine that has much else to do
# A reader's tasks, where the page has none of its own: the first block of the README.
TASKS = """# tasks.py
from headrace import App, Retry

app = App()


@app.task(retry=Retry(max_attempts=5))
async def welcome(user_id: int) -> str:
    return f"hello {user_id}"
"""
# Nobody has these programs at hand everywhere, or they would change the machine: their lines are looked at, not run.
NOT_OURS = {
    "docker": "a container engine",
    "kubectl": "a cluster",
    "make": "the project's own targets: test_pages looks whether each exists",
    "pip": "would install into the environment of the tests",
    "sudo": "would change the machine",
    "systemctl": "would change the machine",
    "git": "needs a repository",
    "cd": "the page is played in one folder",
    ".": "the environment of the tests is active already",
    "flask": "a web server that serves until it is stopped",
    "uvicorn": "a web server that serves until it is stopped",
}
_DATABASE = re.compile(r"postgresql(?:\+\w+)?://(?:\w+@)?localhost/\w+")
_PORT = re.compile(r"\b(?:9100|8000)\b")


class Player:
    """`database` gives the URL of an empty PostgreSQL database when a page names one; `shortcut` is where commands run
    without importing everything anew.
    """

    def __init__(self, folder: Path, *, database: Callable[[], str], shortcut: Path) -> None:
        self.folder = folder
        self._shortcut = shortcut
        self.printed = ""
        self._database = database
        self._ports: dict[str, int] = {}
        self._interpreter: subprocess.Popen[str] | None = None
        self._replies: Any = None
        self._background: list[tuple[str, subprocess.Popen[bytes], Path]] = []
        self._environment = {key: value for key, value in os.environ.items() if not key.startswith("HEADRACE_")}
        self._environment |= {"PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "160", "NO_COLOR": "1", "TERM": "dumb"}
        self._environment["HEADRACE_PORT"] = "0"  # of what serves beside others at the same time

    def __enter__(self) -> Self:
        python = shlex.quote(sys.executable)
        shortcut = shlex.join(["-S", "-E", str(Path(__file__).with_name("shortcut.py")), "ask", str(self._shortcut)])
        whole = self._programs("whole", {"headrace": f"{python} -m headrace.cli", "python": python, "python3": python})
        short = self._programs("short", {"headrace": f"{python} {shortcut}"})
        self._environment["PATH"] = f"{whole}{os.pathsep}{os.environ['PATH']}"
        self._short_path = f"{short}{os.pathsep}{self._environment['PATH']}"
        (self.folder / "tasks.py").write_text(TASKS)
        return self

    def _programs(self, name: str, programs: dict[str, str]) -> Path:
        folder = self.folder / f".{name}"
        folder.mkdir()
        for program, command in programs.items():
            (folder / program).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (folder / program).chmod(0o755)
        return folder

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._interpreter is not None:
            assert self._interpreter.stdin is not None
            self._interpreter.stdin.close()
            self._end(self._interpreter)
            self._replies.close()
        self._stop_all(check=kind is None)

    def play(self, block: Block) -> None:
        code = self._adapted(block.code)
        if block.file is not None:
            self._write(block.file, code, mode="a" if block.added else "w")
        elif block.language == "python":
            self._python(block, code)
        elif block.language in ("sh", "console"):
            self._shell(block, code)

    def _adapted(self, code: str) -> str:
        """The reader's database and port are others than the page's."""
        if _DATABASE.search(code):
            code = _DATABASE.sub(self._database(), code)
        return _PORT.sub(lambda found: str(self._free_port(found.group())), code)

    def _free_port(self, meant: str) -> int:
        if meant not in self._ports:
            with socket.socket() as asked:
                asked.bind(("127.0.0.1", 0))
                self._ports[meant] = asked.getsockname()[1]
        return self._ports[meant]

    def _write(self, file: str, code: str, *, mode: str) -> None:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open(mode) as written:
            written.write(code)
        if self._interpreter is not None and path.suffix == ".py":
            self._ask({"forget": path.stem})

    # Python.

    def _python(self, block: Block, code: str) -> None:
        if self._interpreter is None:
            self._start_interpreter()
        reply = self._ask({"code": code, "name": "page.md", "line": block.line})
        self.printed = reply["printed"]
        assert reply["error"] is None, f"{reply['error']}\n{self.printed}{self._words()}"

    def _start_interpreter(self) -> None:
        read, write = os.pipe()
        program = str(Path(__file__).with_name("interpreter.py"))
        self._interpreter = subprocess.Popen(
            [sys.executable, program, str(write)],
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.PIPE,
            text=True,
            pass_fds=[write],
        )
        os.close(write)
        self._replies = os.fdopen(read, encoding="utf-8")

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._interpreter is not None
        assert self._interpreter.stdin is not None
        self._interpreter.stdin.write(json.dumps(request) + "\n")
        self._interpreter.stdin.flush()
        ready, _, _ = select.select([self._replies], [], [], PATIENCE)
        assert ready, f"the block has not ended within {PATIENCE:.0f} s: {request}{self._words()}"
        line = self._replies.readline()
        assert line, f"the interpreter died over {request}"
        return json.loads(line)

    # Commands.

    def _shell(self, block: Block, code: str) -> None:
        steps = commands(code) if block.language == "sh" else sessions(code)
        expected_code = int(block.said("exits") or 0)
        for number, (line, expected) in enumerate(steps):
            last = number == len(steps) - 1
            self._command(line, code=expected_code if last else 0)
            if expected:
                assert_printed(expected, self.printed)

    def _command(self, line: str, *, code: int) -> None:
        words = program_of(line)
        if not words:  # only assignments
            name, _, value = line.removeprefix("export ").partition("=")
            self._environment[name] = shlex.split(value)[0] if value else ""
            return
        if words[0] in NOT_OURS:
            self.printed = ""
            return
        if serves(words):
            self._serve(line, words)
            return
        self._interrupting(line) if watches(words) else self._run(line, code=code)

    def _run(self, line: str, *, code: int) -> None:
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=self.folder,
            env={**self._environment, "PATH": self._short_path},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        self.printed = done.stdout + done.stderr
        assert done.returncode == code, f"$ {line}\nended with {done.returncode}:\n{self.printed}{self._words()}"

    def _serve(self, line: str, words: list[str]) -> None:
        """Start what runs until it is told to stop; the one before it ends, as in a reader's terminal."""
        self._stop_all()
        log = self.folder / f".{words[1]}-{time.monotonic_ns()}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec env {line}"], cwd=self.folder, env=self._environment, stdout=output, stderr=output
            )
        self._background.append((words[1], process, log))
        # An API is waited for where the page is about to call it: then it says on which port.
        wanted = [" takes "] if words[1] != "server" else []
        wanted += ["serves its API on"] if words[1] == "server" or "--port" in words else []
        wait_until(
            lambda: all(word in log.read_text() for word in wanted) or process.poll() is not None, timeout=PATIENCE
        )
        assert process.poll() is None, f"$ {line}\nended with {process.returncode}:\n{log.read_text()}"

    def _interrupting(self, line: str) -> None:
        """A command that shows what goes on until Ctrl-C: it is interrupted once it has shown something."""
        log = self.folder / ".watch.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                ["bash", "-c", f"exec env {line}"], cwd=self.folder, env=self._environment, stdout=output, stderr=output
            )
        try:
            wait_until(lambda: log.stat().st_size > 0 or process.poll() is not None, timeout=PATIENCE)
            process.send_signal(signal.SIGINT)
            process.wait(timeout=PATIENCE)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        self.printed = log.read_text()
        assert process.returncode in (0, 130, -signal.SIGINT), f"$ {line}\n{self.printed}"

    def _stop_all(self, *, check: bool = True) -> None:
        while self._background:
            self._stop(*self._background.pop(), check=check)

    def _stop(self, kind: str, process: "subprocess.Popen[bytes]", log: Path, *, check: bool = True) -> None:
        if process.poll() is None:
            process.terminate()
        self._end(process)
        if check:
            assert process.returncode == 0, f"headrace {kind} ended with {process.returncode}:\n{log.read_text()}"

    @staticmethod
    def _end(process: "subprocess.Popen[Any]") -> None:
        try:
            process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _words(self) -> str:
        return "".join(f"\n--- headrace {kind}:\n{log.read_text()}" for kind, _, log in self._background)


def commands(code: str) -> list[tuple[str, list[str]]]:
    """The command lines of an `sh` block; a backslash joins a line to the next."""
    joined = re.sub(r"\s*\\\n\s*", " ", code)
    return [(line, []) for raw in joined.splitlines() if (line := _without_comment(raw))]


def sessions(code: str) -> list[tuple[str, list[str]]]:
    """The commands of a `console` block, each with the lines that stand below it."""
    found: list[tuple[str, list[str]]] = []
    for line in code.splitlines():
        if line.startswith("$ "):
            found.append((_without_comment(line[2:]), []))
        elif line.strip():
            assert found, f"a console block begins with a command: $ …, not {line!r}"
            found[-1][1].append(line)
    return found


def _without_comment(line: str) -> str:
    return re.sub(r"(^|\s)#.*$", "", line).strip()


def program_of(line: str) -> list[str]:
    """The words of a command without the variables that are set in front of it."""
    words = shlex.split(line)
    if words[0] == "export":
        return []
    while words and re.fullmatch(r"[A-Za-z_]\w*=.*", words[0], re.DOTALL):
        words.pop(0)
    return words


def serves(words: list[str]) -> bool:
    stays = words[0] == "headrace" and words[1] in ("up", "worker", "scheduler", "server")
    return stays and not {"--burst", "--help"} & {*words}


def watches(words: list[str]) -> bool:
    return words[0] == "headrace" and (words[1] == "top" or bool({"-f", "--follow"} & {*words})) and words[1] != "db"


def assert_printed(expected: list[str], printed: str) -> None:
    """Every expected line is there, in this order; `…` stands for whatever is in its place."""
    lines = iter(" ".join(line.split()) for line in printed.splitlines())
    for wanted in expected:
        if wanted.strip() == "…":
            continue
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(wanted.split()).split("…")))
        assert any(pattern.fullmatch(line) for line in lines), f"no line {wanted!r} (in this order) in:\n{printed}"
