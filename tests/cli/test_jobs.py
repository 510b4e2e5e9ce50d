"""`headrace jobs`: tasks that belong together."""

import json

from headrace.cli.failures import FAILED, OK
from headrace.core.task import NewJob
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task
from tests.cli.shell import Shell


async def half_done(ledger: Ledger) -> int:
    job, _ = await ledger.store.create_job(NewJob(name="nightly", tasks=(task("shop.one"), task("shop.two"))))
    one, two = await ledger.claim()
    await ledger.finish("a", completed(one))
    await ledger.finish("a", failed_for_good(two))
    return job


def test_a_job_is_listed_shown_and_run_again(either_shell: Shell):
    job = either_shell.ledger(half_done)
    code, out, _ = either_shell("jobs", "list")
    assert code == OK
    assert "nightly" in out
    (listed,) = json.loads(either_shell("jobs", "list", "--state", "failed", "--json")[1])
    assert (listed["id"], listed["completed"], listed["failed"]) == (str(job), 1, 1)
    assert json.loads(either_shell("jobs", "list", "--state", "running", "--json")[1]) == []
    code, out, _ = either_shell("jobs", "show", str(job))
    assert code == OK
    assert "2 tasks: 1 completed, 1 failed, 0 cancelled" in out
    assert "shop.two" in out
    assert len(json.loads(either_shell("jobs", "show", str(job), "--json")[1])["tasks"]) == 2
    code, out, _ = either_shell("jobs", "retry", str(job))
    assert (code, out) == (OK, f"job {job}: 1 tasks back in the queue\n")
    code, out, err = either_shell("jobs", "retry", str(job))
    assert (code, out) == (FAILED, "")
    assert "only a failed or cancelled job" in err
    code, out, _ = either_shell("jobs", "cancel", str(job), "--json")
    assert (code, json.loads(out)["state"]) == (OK, "cancelled")
    assert either_shell("jobs", "cancel", str(job))[0] == FAILED
