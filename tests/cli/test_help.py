"""Every command explains itself with examples that can be typed, and every one that answers can answer as JSON."""

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from headrace._version import __version__
from headrace.cli.failures import EXIT_CODES, OK
from headrace.cli.helping import examples
from headrace.cli.root import application
from tests.cli.shell import Shell

ROOT: Any = typer.main.get_command(application)
# They run until they are told to stop, and print logs.
SERVING = {"up", "worker", "scheduler", "server"}


def leaves(command: Any = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that do something, by the words that lead to them."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, inner in command.commands.items():
        yield from leaves(inner, (*path, name))


def examples_of(command: Any) -> list[str]:
    lines = (line.strip().removeprefix("Example:").strip() for line in (command.epilog or "").splitlines())
    return [line for line in lines if line.startswith("headrace ")]


LEAVES = {" ".join(path): command for path, command in leaves()}
GROUPS = {name: command for name, command in ROOT.commands.items() if hasattr(command, "commands")}
EXAMPLES = sorted({line for command in [ROOT, *LEAVES.values()] for line in examples_of(command)})


def test_the_tree_has_the_commands_of_the_design():
    assert set(LEAVES) >= {
        "up", "worker", "enqueue", "top", "logs", "explain", "health", "doctor", "bench", "demo",
        "tasks list", "tasks show", "tasks cancel", "tasks retry", "dlq list", "dlq show", "dlq retry", "dlq purge",
        "jobs list", "jobs show", "jobs watch", "jobs cancel", "jobs retry", "jobs retry-failed", "jobs clear",
        "tasks approve", "tasks reject",
        "queues list", "queues pause", "queues resume", "workers list",
        "db upgrade", "db downgrade", "db check", "db prune",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_each_command_has_a_text_and_an_example_of_itself(name: str):
    command = LEAVES[name]
    assert len((command.help or "").split()) > 2
    typed = examples_of(command)
    assert typed, f"headrace {name} has no example: epilog=examples(…)"
    assert all(line.startswith(f"headrace {name}") for line in typed)


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_each_option_and_argument_says_what_it_is(name: str):
    for parameter in LEAVES[name].params:
        assert parameter.hidden or getattr(parameter, "help", None), f"headrace {name}: {parameter.name}"


@pytest.mark.parametrize("name", sorted(set(LEAVES) - SERVING))
def test_each_command_can_print_json(name: str):
    assert any("--json" in parameter.opts for parameter in LEAVES[name].params)


@pytest.mark.parametrize("name", sorted(GROUPS))
def test_each_group_says_what_it_is_for(name: str):
    assert len((GROUPS[name].help or "").split()) > 2


@pytest.mark.parametrize("line", EXAMPLES)
def test_each_example_can_be_parsed(line: str):
    words = shlex.split(line.partition("&&")[0].partition("|")[0])[1:]
    command: Any = ROOT
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    # Reads every word by the rules of the command, and refuses what does not fit; nothing is run.
    context = command.make_context(line, words)
    assert context.params


def test_an_example_that_does_not_fit_is_found():
    with pytest.raises(Exception, match="No such option"):
        LEAVES["tasks list"].make_context("x", ["--no-such-option"])
    assert examples("headrace a") == "Example:\n  headrace a"


def test_help_is_printed_with_examples_and_exit_codes(shell: Shell):
    code, out, _ = shell("--help")
    assert code == OK
    assert "Usage" in out
    assert "headrace doctor tasks:app" in out
    for number, meaning in EXIT_CODES.items():
        assert f"{number} " in out
        assert meaning.split()[0] in out
    for words in (["up"], ["tasks", "list"], ["dlq", "retry"], ["doctor"]):
        code, out, _ = shell(*words, "--help")
        assert code == OK
        assert "Usage" in out
        assert "Example" in out


def test_the_version(shell: Shell):
    assert shell("--version")[:2] == (OK, f"{__version__}\n")
