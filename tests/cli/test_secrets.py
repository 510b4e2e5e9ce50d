"""What commands show of tasks is shown without their secrets, by whatever command."""

import pytest

from headrace.cli.failures import OK
from headrace.cli.output import plain
from headrace.core.task import ErrorInfo
from headrace.testing.store_conformance.ledger import Ledger, failed_for_good, ref
from tests.cli.shell import Shell

PLANTED = "hunter2-planted"
KEY = f"-----BEGIN PRIVATE KEY-----\n{PLANTED}\n-----END PRIVATE KEY-----"
ERROR = ErrorInfo(
    error_class="shop.Refused",
    message=f"refused: password={PLANTED}",
    traceback=f"Traceback: password={PLANTED}\n{KEY}\nat the end",
)


async def plant(ledger: Ledger) -> int:
    arguments = f'{{"user":"ann","password":"{PLANTED}","nested":{{"api_key":"{PLANTED}"}}}}'
    id = await ledger.enqueue_one("shop.login", arguments=arguments, dead_letter=True)
    claim = await ledger.claim_one()
    await ledger.store.append_logs([(ref(claim), 0, "info", f"logging in with password={PLANTED}")])
    await ledger.finish("a", failed_for_good(claim, ERROR))
    return id


@pytest.mark.parametrize("json", [False, True], ids=["table", "json"])
def test_no_command_shows_a_secret(shell: Shell, json: bool):
    id = str(shell.ledger(plant))
    for words in (
        ["tasks", "list"], ["tasks", "show", id], ["dlq", "list"], ["dlq", "show", id], ["logs", id], ["logs"],
        ["top", "--once"], ["explain", id],
    ):  # fmt: skip
        code, out, err = shell(*words, *(["--json"] if json else []))
        assert code == OK
        assert "shop" in out or "logging in" in out, words
        assert PLANTED not in out + err, words


async def plant_names(ledger: Ledger) -> int:
    id = await ledger.enqueue_one("auth:emails", queue="auth", dead_letter=True)
    error = ErrorInfo(error_class="shop.auth.Token", message="refused, all of it", traceback="")
    await ledger.finish("a", failed_for_good(await ledger.claim_one(queue="auth"), error))
    return id


@pytest.mark.parametrize("json", [False, True], ids=["table", "json"])
def test_what_things_are_called_is_shown(shell: Shell, json: bool):
    id = str(shell.ledger(plant_names))
    for words in (["tasks", "list"], ["tasks", "show", id], ["dlq", "list"], ["dlq", "show", id], ["top", "--once"]):
        code, out, _ = shell(*words, *(["--json"] if json else []))
        assert code == OK
        assert "auth:emails" in out, words
        assert "[redacted]" not in out, words


def test_mappings_by_what_things_are_called():
    """Of queues and tables; what a task gave under the same name is hidden."""
    numbers = {"auth": {"rows": 5}, "keys": 7, "tokens": [1]}
    assert plain({"tables": numbers, "queues": ["auth:a"], "worker": "auth-1:7"}) == {
        "tables": numbers, "queues": ["auth:a"], "worker": "auth-1:7"
    }  # fmt: skip
    given = {"result": {"auth": {"code": PLANTED}}, "password": PLANTED, "metadata": f'{{"auth": "{PLANTED}"}}'}
    assert plain(given) == {
        "result": {"auth": "[redacted]"}, "password": "[redacted]", "metadata": '{"auth":"[redacted]"}'
    }  # fmt: skip
