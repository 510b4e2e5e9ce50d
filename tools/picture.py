"""Draws docs/pictures/up.svg: what `headrace up` and `headrace top` really print, in a scratch folder.

.venv/bin/python tools/picture.py
"""

import io
import os
import re
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import pexpect
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).parents[1]
WIDTH, HEIGHT = 130, 40
TASKS = textwrap.dedent(
    """\
    from datetime import timedelta

    from headrace import App, Permanent

    app = App("sqlite:///headrace.db")


    @app.task
    async def welcome(user_id: int) -> str:
        return f"hello {user_id}"


    @app.task
    def charge(card: int) -> None:
        raise Permanent(f"card {card} was refused")


    @app.schedule(timedelta(seconds=5))
    @app.task
    async def tidy() -> None: ...
    """
)
# The screen of a terminal without a font from elsewhere: a picture that loads nothing.
FORMAT = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, monospace; font-size: {char_height}px;
  line-height: {line_height}px; font-variant-east-asian: full-width; }}
{styles}
</style>
<defs><clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def _colors(*names: str) -> list[tuple[int, int, int]]:
    return [tuple(bytes.fromhex(name)) for name in names]  # type: ignore[misc]


THEME = TerminalTheme(
    (18, 20, 26),
    (214, 218, 226),
    _colors("12141a", "eb6060", "6ac47a", "e0ba5c", "6298ec", "be80e2", "56bec6", "d6dae2"),
    _colors("686e7a", "f57e7e", "88d896", "f0d07a", "82b0f6", "d09cee", "78d2d8", "ffffff"),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tasks.py").write_text(TASKS)
        screen = played(folder)
    path = ROOT / "docs" / "pictures" / "up.svg"
    path.parent.mkdir(exist_ok=True)
    path.write_text(screen, encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")


def played(folder: Path) -> str:
    up = spawn(folder, "-m", "headrace.cli", "up", "tasks:app")
    up.expect("takes every queue")
    run(folder, "-c", "import tasks; tasks.welcome.enqueue_many({'user_id': n} for n in range(500))")
    run(folder, "-c", "import tasks; tasks.charge.enqueue(card=7).wait(timeout=30)")
    up.expect("was refused")
    time.sleep(6)
    top = run(folder, "-m", "headrace.cli", "top", "--once")
    up.expect("fired")
    said = up.logfile_read.getvalue()
    up.sendintr()
    up.expect(pexpect.EOF)
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    show(console, "headrace up tasks:app", said)
    show(console, "headrace top --once", top)
    return console.export_svg(title="headrace", theme=THEME, code_format=FORMAT)


def spawn(folder: Path, *words: str) -> "pexpect.spawn[str]":
    environment = {
        "HOME": os.environ.get("HOME", "/"),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT / "src")]),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
    }
    child = pexpect.spawn(
        sys.executable,
        list(words),
        cwd=str(folder),
        env=environment,
        dimensions=(HEIGHT, WIDTH),
        encoding="utf-8",
        timeout=60,
    )
    child.logfile_read = io.StringIO()
    return child


def run(folder: Path, *words: str) -> str:
    child = spawn(folder, *words)
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0, child.logfile_read.getvalue()
    return child.logfile_read.getvalue()


def show(console: Console, command: str, output: str) -> None:
    console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
    for line in output.replace("\r\n", "\n").rstrip().splitlines():
        console.print(
            Text.from_ansi(re.sub(r"sqlite:\S*/headrace\.db", "sqlite:////srv/shop/headrace.db", line)),
            no_wrap=True,
            crop=True,
        )
    console.print()


if __name__ == "__main__":
    main()
