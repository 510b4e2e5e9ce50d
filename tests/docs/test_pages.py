"""What the pages say can be typed: every block runs or is parsed, every command, target and link exists.

`reading` says how a page is read, `playing` how it is played. A page is one test, so that pages run side by side.
"""

import ast
import configparser
import json
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from headrace.cli.root import application
from tests.docs.playing import NOT_OURS, Player, assert_printed, commands, program_of, sessions
from tests.docs.reading import PAGES, ROOT, RUN, Block, anchors, blocks, name, prose, text
from tests.support.chdb import need_chdb

# Why a block is not run, and how many of them there are. Nothing else may be left out.
NOT_RUN = {"code of another library": 4}
# Pages whose commands speak of what only their reader has. They are tried with --help, as those of all pages are.
ONLY_TRIED = {
    "docs/reference/cli.md": "the examples of --help",
    "docs/howto/command-line.md": "tasks of those numbers, a shell to change, a machine to measure",
}
# Pages that need a package of 500 MB: they are played in make test-all.
WITH_CHDB = {"docs/howto/clickhouse.md"}
LANGUAGES = {"python", "sh", "console", "text", "toml", "yaml", "ini", "json", "mermaid", "dockerfile", "sql", "js"}
# Addresses outside: where a reader is sent, looked at by eye.
OUTSIDE = re.compile(
    r"https?://(127\.0\.0\.1|localhost|example\.(com|org)|docs\.python\.org|www\.postgresql\.org|www\.sqlite\.org|"
    r"prometheus\.io|opentelemetry\.io|grafana\.com|docs\.celeryq\.dev|python-rq\.org|dramatiq\.io|"
    r"procrastinate\.readthedocs\.io|github\.com|keepachangelog\.com|semver\.org)\b"
)

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
    "docs/howto/developing.md": """
from pathlib import Path

for folder in ("shop", "shared"):
    Path(folder).mkdir()
Path("shop/__init__.py").touch()
Path("shop/tasks.py").write_text(Path("tasks.py").read_text())
""",
    "docs/howto/moving-to-postgresql.md": """
from tasks import app, welcome

welcome.enqueue_many({"user_id": n} for n in range(100))
app.close()
""",
}


def test_there_are_pages_with_code():
    assert {name(page) for page in RUN if any(block.language == "python" for block in blocks(page))} >= {
        "README.md",
        "docs/howto/transactions.md",
    }


def _played(page: Path) -> object:
    return pytest.param(page, id=name(page), marks=[pytest.mark.slow] if name(page) in WITH_CHDB else [])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("page", [_played(page) for page in RUN if blocks(page)])
def test_every_block_of_the_page_runs(page: Path, tmp_path: Path, shortcut: Path, request: pytest.FixtureRequest):
    if name(page) in WITH_CHDB:
        need_chdb()
    with Player(tmp_path, database=lambda: request.getfixturevalue("postgres_url"), shortcut=shortcut) as player:
        if page_setup := SETUP.get(name(page)):
            player.play(Block(line=0, language="python", code=page_setup))
        for block in blocks(page):
            _check(block)
            if block.directive == "output":
                assert_printed(block.code.splitlines(), player.printed)
            elif block.why_not_run is None and not (name(page) in ONLY_TRIED and block.language == "sh"):
                player.play(block)


def _check(block: Block) -> None:
    assert block.language in LANGUAGES, f"line {block.line}: a block names its language, one of {sorted(LANGUAGES)}"
    match block.language:
        case "python":
            compile(block.code, f"line {block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        case "toml":
            assert tomllib.loads(block.code)
        case "json":
            assert json.loads(block.code) is not None
        case "yaml":
            assert all(document is not None for document in yaml.safe_load_all(block.code))
        case "ini":
            parser = configparser.RawConfigParser(strict=False, interpolation=None, delimiters=("=",))
            parser.read_string(block.code)
            assert parser.sections()
        case "mermaid":
            assert block.code.startswith(("stateDiagram-v2", "flowchart", "sequenceDiagram"))
        case _:
            pass


def test_what_is_not_run_is_listed_and_counted():
    found = Counter(why for page in RUN for block in blocks(page) if (why := block.why_not_run) is not None)
    assert found == NOT_RUN


def test_the_pages_that_are_only_tried_are_few():
    assert len(ONLY_TRIED) == 2
    tried = {line for page, line in lines() if page in ONLY_TRIED}
    assert all(line.startswith("headrace ") for line in tried)


def test_every_directive_is_known():
    known = re.compile(r"not run: .+|exits: \d+|output")
    wrong = [
        (name(page), block.line, block.directive)
        for page in PAGES
        for block in blocks(page)
        if block.directive and not known.fullmatch(block.directive)
    ]
    assert wrong == []


def lines() -> Iterator[tuple[str, str]]:
    """Each command line of a page's shell blocks and inline code, without its comment."""
    for page in PAGES:
        for block in blocks(page):
            if block.language in ("sh", "") or (block.language == "console" and page in RUN):
                found = sessions(block.code) if block.language == "console" else commands(block.code)
                yield from ((name(page), line) for line, _ in found)
        for line in re.findall(r"`((?:headrace|make) [^`\n]+)`", prose(page)):
            yield name(page), line.partition(" #")[0].strip()


@pytest.mark.parametrize("line", sorted({line for _, line in lines() if line.startswith("headrace ")}))
def test_every_command_of_the_pages_exists(line: str):
    words = shlex.split(line.partition(" | ")[0].partition(" && ")[0].partition(" > ")[0])[1:]
    # A word like … or UPPER is a place to be filled; what is asked for is the command and its options.
    answer = CliRunner().invoke(application, [*words, "--help"])
    assert answer.exit_code == 0, answer.output
    assert "Usage" in answer.output


def test_every_program_of_the_pages_is_run_or_known():
    programs = {
        words[0] for page, line in lines() if page.startswith(("docs/", "README")) and (words := program_of(line))
    }
    assert programs - {"headrace", "python", "python3"} <= set(NOT_OURS) | {"curl", "cat", "echo"}


def test_every_target_of_the_pages_exists():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {(page, line.split()[1]) for page, line in lines() if line.startswith("make ")}
    assert {target for _, target in named} >= {"demo", "test", "check"}
    assert {(page, target) for page, target in named if target not in targets} == set()


def test_every_extra_that_a_page_installs_exists():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        (name(page), extra.strip())
        for page in PAGES
        for found in re.findall(r"(?:headrace|\.)\[([a-z, ]+)\]'?", text(page))
        for extra in found.split(",")
    }
    assert {extra for _, extra in named} >= {"postgres", "metrics"}
    assert {(page, extra) for page, extra in named if extra not in extras} == set()


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)", prose(page))


def test_every_link_leads_somewhere():
    """Files and headings, of the repository as a reader of the source sees it."""
    dead: list[tuple[str, str]] = []
    seen = 0
    for page in PAGES:
        for link in links(page):
            if "://" in link:
                continue
            seen += 1
            target, _, anchor = link.partition("#")
            path = (page.parent / target).resolve() if target else page
            if not path.exists() or (anchor and path.suffix == ".md" and anchor not in anchors(path)):
                dead.append((name(page), link))
    assert seen > 10
    assert dead == []


def test_links_to_other_places_are_few_and_known():
    other = {(name(page), link) for page in PAGES for link in links(page) if "://" in link}
    assert {(page, link) for page, link in other if not OUTSIDE.match(link)} == set()
