"""What commands show of tasks is shown without their secrets, by whatever command."""

import pytest

from headrace.cli.failures import OK
from headrace.core.task import ErrorInfo
from headrace.testing.store_conformance.ledger import Ledger, failed_for_good, ref
from tests.cli.shell import Shell

PLANTED = "hunter2-planted"
ERROR = ErrorInfo(
    error_class="shop.Refused", message=f"refused: password={PLANTED}", traceback=f"Traceback: password={PLANTED}"
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
