"""What the shell completes, by the protocol that its scripts speak; in a real shell in test_terminal.py."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.cli.root import application
from headrace.testing.store_conformance.ledger import Ledger, failed_for_good
from tests.cli.shell import Shell

type Complete = Callable[[str], list[str]]


@pytest.fixture
def complete(shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Complete:
    """Asks as the script asks that `headrace --show-completion` prints."""

    def ask(line: str) -> list[str]:
        with monkeypatch.context() as patch:
            patch.setenv("_HEADRACE_COMPLETE", "complete_bash")
            patch.setenv("COMP_WORDS", line)
            patch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            with pytest.raises(SystemExit) as end:
                application([], prog_name="headrace")
        assert not end.value.code
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out.split()

    return ask


async def some(ledger: Ledger) -> int:
    await ledger.enqueue_one("shop.pay", queue="mail")
    await ledger.enqueue_one("shop.send", queue="web")
    await ledger.enqueue_one("shop.die", queue="dead", dead_letter=True)
    claim = await ledger.claim_one(queue="dead")
    await ledger.finish("a", failed_for_good(claim))
    return claim.id


def test_names_and_ids_of_the_store(shell: Shell, complete: Complete):
    dead = shell.ledger(some)
    assert complete("headrace doc") == ["doctor"]
    assert complete("headrace queues pause m") == ["mail"]
    assert complete("headrace tasks list --queue ") == ["mail", "web"]
    assert complete("headrace tasks list --task shop.s") == ["shop.send"]
    assert complete("headrace tasks list --state can") == ["cancelling", "cancelled"]
    assert complete("headrace dlq show ") == [str(dead)]
    assert len(complete("headrace explain ")) == 3


def test_names_of_the_app(shell: Shell, complete: Complete):
    names = complete(f"headrace enqueue {shell.target} {shell.module}.d")
    assert names == [f"{shell.module}.double", f"{shell.module}.dying"]
    assert complete("headrace enqueue no_such_module:app x") == []


@pytest.mark.parametrize("url", ["sqlite:///absent.db", "postgresql://127.0.0.1:1/none", "nonsense", "no_module:app"])
def test_without_a_store_there_is_nothing_and_no_noise(
    shell: Shell, complete: Complete, url: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HEADRACE_DATABASE_URL", url)
    assert complete("headrace queues pause ") == []
    assert not list(Path(shell.folder).glob("absent.db*"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_it_can_be_installed(tmp_path: Path):
    """For the shell that it is called from."""
    program = "import sys; sys.argv = ['headrace', '--install-completion']; from headrace.cli import main; main()"
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -c \"$0\"; exit $?", program],
        cwd=tmp_path, env={**os.environ, "HOME": str(tmp_path)}, capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bash completion installed" in done.stdout
    assert [path for path in tmp_path.rglob("*") if path.is_file() and "_HEADRACE_COMPLETE" in path.read_text()]
