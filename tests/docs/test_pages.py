"""What the pages say can be typed: every block of Python runs, every command and every target exists.

The blocks of a page run one after the other as one program, in an empty folder. A block whose first line is a comment
with a file's name is that file. What a reader has anyway (a session, a model) stands in SETUP. A block that cannot run
alone has `<!-- not run: why -->` on the line above it.
"""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace.cli.root import application
from tests.support.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.md")])
_BLOCK = re.compile(r"^(?P<above>[^\n]*\n)?```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# (\w+\.py)\n")

# What the reader of a page has already.
SETUP = {
    "README.md": """
from types import SimpleNamespace

import sqlalchemy as sa
from sqlalchemy.orm import DeclarativeBase, sessionmaker

class Base(DeclarativeBase): ...

class User(Base):
    __tablename__ = "users"
    id = sa.Column(sa.Integer, primary_key=True)

def open_for_business() -> bool:
    return True

engine = sa.create_engine("sqlite:///headrace.db")
Base.metadata.create_all(engine)
Session = sessionmaker(engine)
user = User(id=7)
""",
}


def blocks(page: Path, *languages: str) -> list[str]:
    return [
        found["code"]
        for found in _BLOCK.finditer(page.read_text())
        if found["language"] in languages and not (found["above"] or "").startswith("<!-- not run: ")
    ]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=100, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@contextmanager
def headrace_up(folder: Path) -> Iterator[None]:
    """`headrace up tasks:app`, until it takes tasks; it must end well when it is told to."""
    with (folder / "up.log").open("wb") as log:
        up = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", "up", "tasks:app"], cwd=folder, stdout=log, stderr=log
        )
    said = (folder / "up.log").read_text
    try:
        wait_until(lambda: "takes every queue" in said() or up.poll() is not None, timeout=60)
        yield
        up.terminate()
        assert up.wait(timeout=60) == 0, said()
        assert "alembic" not in said()
    finally:
        if up.poll() is None:
            up.kill()
            up.wait()


def test_there_are_pages_with_code():
    assert {name(page) for page in PAGES if blocks(page, "python")} >= {"README.md", "docs/howto/transactions.md"}


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "python")], ids=name)
def test_every_block_of_python_runs(page: Path, tmp_path: Path):
    program = [SETUP.get(name(page), "")]
    for code in blocks(page, "python"):
        if file := _FILE.match(code):
            (tmp_path / file[1]).write_text(code)
        else:
            program.append(code)
    (tmp_path / "page.py").write_text("\n\n".join(program))
    if not (tmp_path / "tasks.py").exists():
        run(tmp_path, "page.py")
        return
    with headrace_up(tmp_path):
        run(tmp_path, "page.py")
        enqueued = run(tmp_path, "-m", "headrace.cli", "enqueue", "tasks:app", "tasks.welcome", "user_id=8", "--wait")
    assert enqueued == "hello 8\n"
    assert run(tmp_path, "-m", "headrace.cli", "db", "check") == "the ledger is sound: every invariant holds\n"


def commands() -> Iterator[tuple[str, str]]:
    """Each command line of a page's shell blocks and inline code, without its comment."""
    for page in PAGES:
        text = page.read_text()
        lines = [line for code in blocks(page, "sh", "") for line in code.splitlines()]
        lines += re.findall(r"`((?:headrace|make) [^`\n]+)`", text)
        for line in lines:
            if line.startswith(("headrace ", "make ")):
                yield name(page), line.partition(" #")[0].strip()


@pytest.mark.parametrize("line", sorted({line for _, line in commands() if line.startswith("headrace ")}))
def test_every_command_of_the_pages_exists(line: str):
    answer = CliRunner().invoke(application, [*shlex.split(line)[1:], "--help"])
    assert answer.exit_code == 0, answer.output
    assert "Usage" in answer.output


def test_every_target_of_the_pages_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {(page, line.split()[1]) for page, line in commands() if line.startswith("make ")}
    assert {target for _, target in named} >= {"demo", "test", "check"}
    assert {(page, target) for page, target in named if target not in targets} == set()


def test_every_link_between_pages_leads_somewhere():
    links = [
        (name(page), target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text())
        if "://" not in target
    ]
    assert len(links) > 10
    assert [(page, target) for page, target in links if not (ROOT / page).parent.joinpath(target).exists()] == []
