"""`headrace breakers` and `headrace queues limit|rate`: words, JSON, exit codes, and what is no limit."""

import json

import pytest

from headrace.cli.failures import NOT_FOUND, OK, USAGE
from tests.cli.shell import Shell


@pytest.mark.requirement("F74")
def test_breakers_are_listed_opened_and_reset(either_shell: Shell) -> None:
    """F74: by hand from a command line; what it prints is what the ledger says after it."""
    shell = either_shell
    assert shell("breakers", "list")[:2] == (OK, "no breaker has opened yet\n")
    code, out, _ = shell("breakers", "open", "mail", "--json")
    made = json.loads(out)
    assert (code, made["service"], made["status"], made["forced"], made["until"]) == (OK, "mail", "open", True, None)
    assert "until it is reset" not in shell("breakers", "list")[1]
    assert "it is reset" in shell("breakers", "list")[1]
    assert "mail open by hand" in shell("health")[1]
    assert shell("breakers", "reset", "mail")[:2] == (OK, "the breaker of mail is closed\n")
    [listed] = json.loads(shell("breakers", "list", "--json")[1])
    assert (listed["status"], listed["changed_by"]) == ("closed", "headrace breakers")
    code, out, _ = shell("breakers", "open", "mail", "--timeout", "600")
    assert code == OK
    assert out.startswith("mail is not called until 2")
    assert json.loads(shell("breakers", "reset", "mail", "--json")[1])["status"] == "closed"
    code, out, err = shell("breakers", "reset", "mial")
    assert (code, out) == (NOT_FOUND, "")
    assert "'mial' has ever opened" in err
    assert [each["service"] for each in json.loads(shell("breakers", "list", "--json")[1])] == ["mail"]
    assert shell("breakers", "open", " ")[0] == USAGE


def test_queues_are_limited_and_rated(either_shell: Shell) -> None:
    shell = either_shell
    assert shell("queues", "limit", "mail", "5")[:2] == (OK, "at most 5 tasks of queue mail run at once\n")
    assert shell("queues", "rate", "mail", "100/1m")[:2] == (OK, "at most 100 tasks of queue mail start each 60 s\n")
    [queue] = json.loads(shell("queues", "list", "--json")[1])
    assert (queue["limit"], queue["rate"]["n"], queue["rate"]["per"]) == (5, 100, 60.0)
    assert "100/60s" in shell("queues", "list")[1]
    assert json.loads(shell("queues", "rate", "mail", "10/2", "--burst", "3", "--json")[1]) == {
        "queue": "mail",
        "rate": {"n": 10, "per": 2.0, "burst": 3},
    }
    assert json.loads(shell("queues", "limit", "mail", "none", "--json")[1]) == {"queue": "mail", "limit": None}
    assert shell("queues", "rate", "mail", "none")[0] == OK
    [queue] = json.loads(shell("queues", "list", "--json")[1])
    assert (queue["limit"], queue["rate"]) == (None, None)


@pytest.mark.parametrize(
    "words",
    [
        ("limit", "mail", "0"),
        ("limit", "mail", "many"),
        ("limit", "mail", "1.5"),
        ("rate", "mail", "x/1"),
        ("rate", "mail", "5/0"),
        ("rate", "mail", "5/never"),
    ],
)
def test_what_is_no_limit_says_how_to_write_one(shell: Shell, words: tuple[str, ...]) -> None:
    code, _, said = shell("queues", *words)
    assert code == USAGE
    assert "write" in said
    assert json.loads(shell("queues", "list", "--json")[1]) == []
