"""Write docs/reference/cli.md from the tree of commands. `--check` only compares."""

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from headrace.cli.failures import EXIT_CODES
from headrace.cli.root import application

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "cli.md"

HEADER = """# Commands

Generated from the command line itself by `python tools/cli_reference.py`; a test compares this page with the code.
How to use it in scripts, and completion in your shell: [The command line](../howto/command-line.md).

Every command prints the same with `--help`. `--version` alone prints the version.

"""


def leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that do something, by the words that lead to them."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from leaves(inner, (*path, name))


def cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|").replace("<", "&lt;")


def spelled(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        name = (parameter.metavar or parameter.name).upper()
        return f"`{name}`" if parameter.required else f"`[{name}]`"
    return ", ".join(f"`{option}`" for option in (*parameter.opts, *parameter.secondary_opts))


def default(parameter: Any) -> str:
    shown = getattr(parameter, "show_default", None)
    if isinstance(shown, str):
        return shown
    value = parameter.default
    if parameter.required or value in (None, False, ()) or callable(value):
        return ""
    return f"`{value}`"


def explained(parameter: Any) -> str:
    envvar = parameter.envvar
    return f"{parameter.help or ''}{f' Environment: `{envvar}`.' if envvar else ''}"


def examples(command: Any) -> list[str]:
    lines = (line.strip().removeprefix("Example:").strip() for line in (command.epilog or "").splitlines())
    return [line for line in lines if line.startswith("headrace ")]


def section(path: tuple[str, ...], command: Any) -> str:
    words = " ".join(("headrace", *path))
    parts = [f"## {words}", inspect.cleandoc(command.help or "")]
    if typed := examples(command):
        parts.append("\n".join(["```sh", *typed, "```"]))
    shown = [parameter for parameter in command.params if parameter.name != "help" and not parameter.hidden]
    rows = [f"| {spelled(p)} | {cell(explained(p))} | {cell(default(p))} |" for p in shown]
    parts.append("\n".join(["| | | default |", "|---|---|---|", *rows]))
    return "\n\n".join(parts)


def page() -> str:
    root: Any = typer.main.get_command(application)
    codes = [f"| {code} | {cell(meaning)} |" for code, meaning in EXIT_CODES.items()]
    parts = [section(path, command) for path, command in leaves(root, ())]
    table = "\n".join(["## Exit codes", "", "| code | |", "|---|---|", *codes])
    return HEADER + "\n\n".join([table, *parts]) + "\n"


def main() -> int:
    if "--check" in sys.argv:
        return 0 if PAGE.exists() and PAGE.read_text() == page() else 1
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
