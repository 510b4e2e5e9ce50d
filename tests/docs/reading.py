"""The pages and their code blocks, as the tests read them.

What a page includes (`--8<-- "deploy/…"`) belongs to its text, unless it is of another page. A comment on the line
above a fence says what is special about the block:

- `<!-- not run: why -->`   it is only parsed; `why` must be one of test_pages.NOT_RUN
- `<!-- exits: 1 -->`       its last command ends with this code instead of 0
- `<!-- output -->`         what the block before it printed: lines in this order, `…` for what may differ
"""

import re
import textwrap
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs"
# What is run. CONTRIBUTING and the examples' page speak to people with a checkout: their commands must exist.
RUN = sorted([ROOT / "README.md", *SITE.rglob("*.md")])
PAGES = sorted({*RUN, *ROOT.glob("*.md"), *(ROOT / "examples").glob("*.md")})

_FENCE = re.compile(
    r"(?:^[ ]*<!-- (?P<directive>[^\n]*?) -->\n)?"
    r"^(?P<indent>[ ]*)```(?P<language>\w*)(?P<attributes>[^\n]*)\n(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.MULTILINE | re.DOTALL,
)
_INCLUDE = re.compile(r'^(?P<indent>[ ]*)--8<-- "(?P<path>[^":]+)(?::(?P<section>\w+))?"$', re.MULTILINE)
_FILE = re.compile(r"# (?P<name>[\w./-]+\.\w+)(?P<added>, at the end)?\n")
_HEADING = re.compile(r"^#{1,6} +(.+?)(?: +\{(?P<attributes>[^}]*)\})? *$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    line: int  # of the fence, in the page with what it includes
    language: str
    code: str
    directive: str = ""

    @property
    def file(self) -> str | None:
        """The file that the block is, when its first line says so."""
        found = _FILE.match(self.code)
        return found["name"] if found and self.language not in ("sh", "console", "text") else None

    @property
    def added(self) -> bool:
        """Whether it stands at the end of that file, below what is there: `# tasks.py, at the end`."""
        found = _FILE.match(self.code)
        return bool(found and found["added"])

    def said(self, word: str) -> str | None:
        """What the directive says after `word: `; None when it says something else."""
        name, _, value = self.directive.partition(":")
        return value.strip() if name.strip() == word else None

    @property
    def why_not_run(self) -> str | None:
        return self.said("not run")


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


@cache
def text(page: Path) -> str:
    return _INCLUDE.sub(_included, page.read_text(encoding="utf-8"))


def _included(include: re.Match[str]) -> str:
    if include["path"].endswith(".md"):
        return ""  # a page of its own, which is played there
    found = (ROOT / include["path"]).read_text(encoding="utf-8").rstrip("\n")
    if section := include["section"]:
        marks = rf"^[^\n]*--8<-- \[start:{section}\][^\n]*\n(.*?)^[^\n]*--8<-- \[end:{section}\]"
        part = re.search(marks, found, re.MULTILINE | re.DOTALL)
        assert part, f"{include['path']} has no section {section}"
        found = textwrap.dedent(part[1]).rstrip("\n")
    return textwrap.indent(found, include["indent"])


@cache
def blocks(page: Path) -> tuple[Block, ...]:
    source = text(page)
    return tuple(
        Block(
            line=source.count("\n", 0, found.start("indent")) + 1,
            language=found["language"],
            code=textwrap.dedent(found["code"]),
            directive=found["directive"] or "",
        )
        for found in _FENCE.finditer(source)
    )


def prose(page: Path) -> str:
    """The page without its blocks and comments."""
    return re.sub(r"<!--.*?-->", "", _FENCE.sub("", text(page)), flags=re.DOTALL)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Where a link into the page may lead: its headings as python-markdown and the forges name them, and its ids."""
    found: list[str] = re.findall(r'id="([^"]+)"', text(page))
    for heading in _HEADING.finditer(prose(page)):
        if attributes := heading["attributes"]:
            found += re.findall(r"#([\w.-]+)", attributes)
        words = re.sub(r"`|\*|\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        plain = unicodedata.normalize("NFKD", words).encode("ascii", "ignore").decode()
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain).strip().lower())
        found.append(slug if slug not in found else f"{slug}_{found.count(slug)}")
    return frozenset(found)
