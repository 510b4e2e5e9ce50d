"""The player of pages notices what a reader would: a block that raises, a command that fails, output that differs."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.playing import Player, assert_printed, commands, program_of, serves, sessions, watches
from tests.docs.reading import Block


@pytest.fixture
def player(tmp_path: Path, shortcut: Path) -> Iterator[Player]:
    with Player(tmp_path, database=lambda: "postgresql://nobody@127.0.0.1:1/none", shortcut=shortcut) as player:
        yield player


def block(language: str, code: str, directive: str = "") -> Block:
    return Block(line=3, language=language, code=code, directive=directive)


def test_blocks_share_a_namespace_and_may_await(player: Player):
    player.play(block("python", "import asyncio\nx = 1\n"))
    player.play(block("python", "await asyncio.sleep(0)\nprint(x + 1)\n"))
    assert player.printed == "2\n"


def test_a_block_that_raises_is_told_with_its_line(player: Player):
    with pytest.raises(AssertionError, match=r"line 4, in <module>\n(.|\n)*ZeroDivisionError"):
        player.play(block("python", "1 / 0\n"))


def test_a_module_that_is_written_anew_is_read_anew(player: Player):
    for number in (1, 2):
        player.play(block("python", f"# numbers_.py\nN = {number}\n"))
        player.play(block("python", f"import numbers_\nassert numbers_.N == {number}\n"))
    player.play(block("python", "# numbers_.py, at the end\nM = N + 1\n"))
    player.play(block("python", "import numbers_\nassert (numbers_.N, numbers_.M) == (2, 3)\n"))


def test_commands_run_and_their_codes_are_looked_at(player: Player):
    player.play(block("sh", "headrace db upgrade\nheadrace tasks list  # nothing yet\n"))
    assert player.printed == "no tasks match\n"
    player.play(block("sh", "headrace tasks show 7\n", "exits: 3"))
    with pytest.raises(AssertionError, match="ended with 3"):
        player.play(block("sh", "headrace tasks show 7\n"))


def test_a_command_of_the_shortcut_is_that_of_the_shell(player: Player):
    """The same words, through the process that imported before and through one of its own."""
    player.play(block("sh", "headrace db upgrade --json\n"))
    quick = player.printed
    (player.folder / "headrace.db").unlink()
    player.play(block("sh", "python -m headrace.cli db upgrade --json\n"))
    assert player.printed == quick
    assert '"after"' in quick


def test_what_is_printed_is_compared(player: Player):
    player.play(block("console", "$ headrace db upgrade\nschema: none -> …\n"))
    with pytest.raises(AssertionError, match="no line"):
        player.play(block("console", "$ headrace tasks list\nid task\n"))


def test_variables_of_the_page_hold_for_its_commands(player: Player):
    player.play(block("sh", "export HEADRACE_DATABASE_URL=sqlite:///other.db\nheadrace db upgrade\n"))
    assert (player.folder / "other.db").exists()


def test_expected_lines_come_in_order_and_dots_stand_for_anything():
    printed = "a 1\nb   2 x\nc 3\n"
    assert_printed(["a …", "…", "c 3"], printed)
    assert_printed(["b 2 …"], printed)
    with pytest.raises(AssertionError):
        assert_printed(["c …", "a …"], printed)
    with pytest.raises(AssertionError):
        assert_printed(["a"], printed)


def test_how_lines_are_read():
    assert commands("headrace tasks list \\\n    --json  # all\n\n# nothing\n") == [("headrace tasks list --json", [])]
    assert sessions("$ headrace top\none\n$ headrace up\n") == [("headrace top", ["one"]), ("headrace up", [])]
    assert program_of("A=1 B='x y' headrace up") == ["headrace", "up"]
    assert serves(["headrace", "up", "tasks:app"])
    assert not serves(["headrace", "worker", "tasks:app", "--burst"])
    assert watches(["headrace", "logs", "-f"])
