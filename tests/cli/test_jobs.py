"""`headrace jobs`: tasks that belong together."""

import json
import re
import signal
import subprocess
import sys
from typing import Any

import pytest

from headrace.cli.failures import FAILED, INTERRUPTED, NOT_FOUND, OK
from headrace.core.task import After, EdgeKind, ErrorInfo, NewJob, NewTask
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, task
from tests.cli.shell import Shell, environment
from tests.support.waiting import wait_until

PATIENCE = 60


def after(*places: int, kind: EdgeKind = EdgeKind.ON_SUCCESS) -> tuple[After, ...]:
    return tuple(After(task=place, kind=kind, local=True) for place in places)


async def half_done(ledger: Ledger) -> int:
    job, _ = await ledger.store.create_job(NewJob(name="nightly", tasks=(task("shop.one"), task("shop.two"))))
    one, two = await ledger.claim()
    await ledger.finish("a", completed(one))
    await ledger.finish("a", failed_for_good(two))
    return job


async def made(ledger: Ledger, *tasks: NewTask, **fields: Any) -> tuple[int, list[int]]:
    job, answers = await ledger.store.create_job(NewJob(name="nightly", tasks=tasks, **fields))
    return job, [answer.id for answer in answers]


async def work(ledger: Ledger, **failing: bool) -> None:
    """Everything that is ready, until nothing is."""
    while claims := await ledger.claim():
        await ledger.finish(
            "a", *[(failed_for_good if failing.get(claim.name) else completed)(claim) for claim in claims]
        )


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
    assert re.search(r"✘ shop.two \d+  failed/error .*ValueError: no", out)
    assert len(json.loads(either_shell("jobs", "show", str(job), "--json")[1])["nodes"]) == 2
    code, out, _ = either_shell("jobs", "retry-failed", str(job))
    assert (code, out) == (OK, f"job {job}: 1 tasks back in the queue\n")
    code, out, err = either_shell("jobs", "retry", str(job))
    assert (code, out) == (FAILED, "")
    assert "only a failed or cancelled job" in err
    code, out, _ = either_shell("jobs", "cancel", str(job), "--json")
    assert (code, json.loads(out)["state"]) == (OK, "cancelled")
    assert either_shell("jobs", "cancel", str(job))[0] == FAILED


async def diamond(ledger: Ledger) -> tuple[int, list[int]]:
    hook = task("shop.announce", queue="hooks")
    return await made(
        ledger,
        task("fetch"),
        task("left", after=after(0)),
        task("right", after=after(0), critical=False),
        task("join", after=after(1, 2)),
        on_success=hook,
    )


def test_a_graph_is_drawn_with_states_and_reasons(either_shell: Shell):
    async def some_of_it(ledger: Ledger) -> tuple[int, list[int]]:
        found = await diamond(ledger)
        await work(ledger, right=True)
        return found

    job, (fetch, left, right, join) = either_shell.ledger(some_of_it)
    code, out, _ = either_shell("jobs", "show", str(job))
    lines = [re.sub(r"  \d+(\.\d)? m?s(?=  |$)", "", line) for line in out.splitlines()]
    assert code == OK
    assert lines[0] == f"job {job}  nightly  completed, run 1"
    assert "4 of 4  100 %" in lines[1]
    assert "on success shop.announce (its task is enqueued)" in out
    assert lines[-7:] == [
        f"✔  fetch {fetch}  completed",
        "├─╮",
        f"✔ │  left {left}  completed",
        "│ │",
        f"│ ✘  right {right}  failed/error  not critical  builtins.ValueError: no",
        "├─╯",
        f"⊘  join {join}  cancelled/upstream_failed",
    ]
    found = json.loads(either_shell("jobs", "show", str(job), "--json")[1])
    assert (found["job"]["id"], found["hooks"]["on_success"]) == (str(job), "shop.announce")
    assert (found["nodes"][0]["id"], found["nodes"][0]["state"]) == (str(fetch), "completed")
    assert {(edge["upstream"], edge["task"]) for edge in found["edges"]} == {
        (str(a), str(b)) for a, b in ((fetch, left), (fetch, right), (left, join), (right, join))
    }


def test_a_large_job_is_folded_unless_all_is_asked_for(either_shell: Shell):
    async def fan(ledger: Ledger) -> int:
        wide = [task("extract", after=after(0), critical=False) for _ in range(60)]
        job, ids = await made(
            ledger, task("fetch"), *wide, task("load", after=after(*range(1, 61), kind=EdgeKind.ON_DONE))
        )
        await ledger.finish("a", completed(await ledger.claim_one()))
        claims = await ledger.claim(n=30)
        await ledger.finish("a", *[completed(claim) for claim in claims[:23]])
        await ledger.finish("a", *[failed_for_good(claim) for claim in claims[23:]])
        assert len(ids) == 62
        return job

    job = either_shell.ledger(fan)
    _, out, _ = either_shell("jobs", "show", str(job))
    assert "extract ×60: 23 completed, 7 failed, 30 pending" in out
    assert len(re.findall(r"✘ extract \d+  failed/error  builtins.ValueError: no", out)) == 5
    assert "… 2 more failed" in out
    assert re.search(r"load \d+  blocked  whatever becomes of it", out)
    _, out, _ = either_shell("jobs", "show", str(job), "--all")
    assert len(re.findall(r"extract \d+  ", out)) == 60
    assert len(json.loads(either_shell("jobs", "show", str(job), "--json")[1])["edges"]) == 120


def test_a_task_and_what_is_below_it_run_once_more(either_shell: Shell):
    async def done(ledger: Ledger) -> tuple[int, list[int]]:
        found = await diamond(ledger)
        await work(ledger)
        return found

    job, (fetch, left, right, join) = either_shell.ledger(done)
    assert either_shell("jobs", "clear", str(left))[:2] == (OK, f"task {left} and 1 below it will run once more\n")
    nodes = json.loads(either_shell("jobs", "show", str(job), "--json")[1])["nodes"]
    assert {int(node["id"]): node["state"] for node in nodes} == {
        fetch: "completed", left: "pending", right: "completed", join: "blocked",
    }  # fmt: skip
    code, _, err = either_shell("jobs", "clear", str(left))
    assert (code, "Traceback" in err) == (FAILED, False)
    assert either_shell("jobs", "clear", "987654321")[0] == NOT_FOUND


def test_a_secret_in_an_error_is_not_shown(shell: Shell):
    async def fail(ledger: Ledger) -> int:
        job, _ = await made(ledger, task("pay"))
        error = ErrorInfo(error_class="E", message="password=hunter2\x1b[2J\nsecond line")
        await ledger.finish("a", failed_for_good(await ledger.claim_one(), error))
        return job

    job = shell.ledger(fail)
    for words in ([], ["--json"], ["--all"]):
        _, out, _ = shell("jobs", "show", str(job), *words)
        assert "hunter2" not in out
        assert "\x1b" not in out


def test_a_job_that_does_not_exist(shell: Shell):
    for command in ("show", "watch", "cancel", "retry-failed"):
        code, out, err = shell("jobs", command, "987654321")
        assert (code, out) == (NOT_FOUND, "")
        assert "987654321" in err


@pytest.mark.parametrize("failing", [False, True])
def test_watching_without_a_terminal_prints_a_line_for_each_change(either_shell: Shell, failing: bool):
    """The exit code says what became of the job."""
    job, _ = either_shell.ledger(lambda ledger: made(ledger, task("one"), task("two", after=after(0))))
    watching = _watch(either_shell, str(job))
    assert watching.stdout is not None
    try:
        first = watching.stdout.readline()
        either_shell.ledger(lambda ledger: work(ledger, one=failing))
        rest, _ = watching.communicate(timeout=PATIENCE)
    finally:
        watching.kill()
    assert first == f"job {job} pending: 2 tasks: 0 completed, 0 failed, 0 cancelled, 0 running\n"
    lines = rest.splitlines()
    assert len({first.strip(), *lines}) == 1 + len(lines), "a line without a change"
    if failing:
        assert re.match(rf"job {job} failed(/\w+)?: 2 tasks: 0 completed, 1 failed, 1 cancelled", lines[-1])
        assert watching.returncode == FAILED
    else:
        assert lines[-1] == f"job {job} completed: 2 tasks: 2 completed, 0 failed, 0 cancelled, 0 running"
        assert watching.returncode == OK


def test_watching_ended_by_ctrl_c_leaves_the_job(shell: Shell):
    job, ids = shell.ledger(lambda ledger: made(ledger, task()))
    watching = _watch(shell, str(job), "--json")
    assert watching.stdout is not None
    try:
        assert json.loads(watching.stdout.readline())["state"] == "pending"
        watching.send_signal(signal.SIGINT)
        _, err = watching.communicate(timeout=PATIENCE)
    finally:
        watching.kill()
    assert watching.returncode == INTERRUPTED
    assert f"job {job} goes on" in err
    assert "Traceback" not in err
    assert shell.ledger(lambda ledger: ledger.state(ids[0])) == "pending"


def _watch(shell: Shell, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "jobs", "watch", *words, "--interval", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(shell.url), cwd=shell.folder,
    )  # fmt: skip


def test_a_person_decides(either_shell: Shell):
    async def two(ledger: Ledger) -> list[int]:
        asked = task(approval=True, options='{"approval":{"role":"finance"}}', critical=False)
        return (await made(ledger, asked, asked))[1]

    one, two_ = either_shell.ledger(two)
    code, _, err = either_shell("tasks", "approve", str(one))
    assert code == FAILED
    assert "waits for the role 'finance'" in err
    code, out, _ = either_shell("tasks", "approve", str(one), "--by", "ann", "--role", "finance", "--note", "fine")
    assert (code, out) == (OK, f"task {one}: approved by ann\n")
    code, out, _ = either_shell("tasks", "reject", str(two_), "--by", "bob", "--role", "finance", "--json")
    assert (code, json.loads(out)["state"]) == (OK, "rejected")
    assert either_shell("tasks", "reject", str(one), "--role", "finance")[0] == FAILED
    assert either_shell("tasks", "approve", "987654321")[0] == NOT_FOUND
    wait_until(lambda: either_shell.ledger(lambda ledger: ledger.state(one)) == "pending", timeout=PATIENCE)
