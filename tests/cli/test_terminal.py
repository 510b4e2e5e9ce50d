"""Commands in a real terminal: the live table, lines that come, questions, Ctrl-C, completion by the shell."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from headrace.cli.failures import INTERRUPTED, OK
from headrace.core.task import After, NewJob
from headrace.testing.store_conformance.ledger import Ledger, completed, failed_for_good, ref, task
from tests.cli.shell import Shell
from tests.support.postgres import PrivatePostgres
from tests.support.waiting import wait_until

type Terminal = pexpect.spawn[str]
type Start = Callable[..., Terminal]

PATIENCE = 60
SCREEN, LEFT = re.escape("\x1b[?1049h"), re.escape("\x1b[?1049l")


def variables(**more: str) -> dict[str, str]:
    """Without those that would tell a size instead of the terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {**kept, "TERM": "xterm-256color", **more}


@pytest.fixture
def start(shell: Shell) -> Iterator[Start]:
    """`start("top")`: the command in a terminal of 30 lines and 100 columns."""
    started: list[Terminal] = []

    def spawn(*words: str, url: str = shell.url) -> Terminal:
        terminal = pexpect.spawn(
            sys.executable, ["-m", "headrace.cli", *words], cwd=str(shell.folder), encoding="utf-8", timeout=PATIENCE,
            dimensions=(30, 100), env=variables(HEADRACE_DATABASE_URL=url),
        )  # fmt: skip
        started.append(terminal)
        return terminal

    yield spawn
    for terminal in started:
        terminal.close(force=True)


def ended(terminal: Terminal) -> int | None:
    terminal.expect(pexpect.EOF)
    terminal.close()
    return terminal.exitstatus


def test_top_shows_what_changes_and_q_quits(shell: Shell, start: Start):
    shell.ledger(lambda ledger: ledger.enqueue_one(queue="letters"))
    top = start("top", "--interval", "0.2")
    top.expect(SCREEN)
    top.expect("letters")
    top.expect("no worker is active")

    async def work(ledger: Ledger) -> None:
        await ledger.register("worker-one", lease=600.0, queues=("letters",))
        await ledger.enqueue_one("shop.pay", queue="parcels")
        await ledger.enqueue_one("shop.pay", queue="parcels")
        claim = await ledger.claim_one("worker-one", queue="parcels")
        await ledger.finish("worker-one", failed_for_good(claim))

    shell.ledger(work)
    top.expect("parcels")
    top.expect("worker-one")
    top.expect("shop.pay")
    top.send("q")
    top.expect(LEFT)
    assert ended(top) == OK


def test_top_follows_the_size_of_its_terminal(shell: Shell, start: Start):
    async def many(ledger: Ledger) -> None:
        await ledger.enqueue(*[task(queue=f"queue-{n:02}") for n in range(20)])

    shell.ledger(many)
    top = start("top", "--interval", "3600")
    top.expect("queue-09")
    top.setwinsize(60, 120)
    top.expect("queue-19")  # long before the next look
    top.setwinsize(5, 30)
    top.expect("QUEUE")
    top.setwinsize(1, 5)
    top.setwinsize(40, 100)
    top.expect("queue-19")
    top.send("q")
    assert ended(top) == OK


def test_top_is_ended_by_ctrl_c(start: Start):
    top = start("top")
    top.expect("QUEUE")
    top.sendintr()
    top.expect(LEFT)
    assert ended(top) == INTERRUPTED


@pytest.mark.postgres
def test_top_survives_a_server_that_goes_away(start: Start, postgres_url: str, private_postgres: PrivatePostgres):
    top = start("top", "--interval", "0.2", url=postgres_url)
    top.expect("no queues yet")
    private_postgres.stop()
    top.expect("trying again")
    private_postgres.start()

    # Whatever was drawn while it was away is read before: then a screen without the notice.
    def back() -> bool:
        top.expect("headrace top")
        top.expect("q quits")
        return "trying again" not in top.before

    wait_until(back, timeout=PATIENCE)
    assert top.isalive()
    top.send("q")
    assert ended(top) == OK


def test_logs_are_followed_until_the_task_ends(shell: Shell, start: Start):
    """The lines of a running task, by a real worker; the follower ends by itself."""
    gate = shell.folder / "gate"
    code, out, _ = shell("enqueue", shell.target, f"{shell.module}.talk", f"gate={gate}")
    assert code == OK
    id = out.strip()
    logs = start("logs", id, "--follow")
    worker = subprocess.Popen(
        [sys.executable, "-m", "headrace.cli", "worker", shell.target, "--burst", "--children", "0"],
        cwd=shell.folder, env=variables(HEADRACE_DATABASE_URL=shell.url), stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        logs.expect("before the gate")
        assert not gate.exists()
        gate.touch()
        logs.expect("after the gate")
        logs.expect(f"task {id} is completed")
        assert ended(logs) == OK
        assert worker.wait(timeout=PATIENCE) == OK
    finally:
        if worker.poll() is None:
            worker.kill()
            worker.wait()


@pytest.mark.parametrize("words", [["{id}"], []], ids=["of one task", "of all"])
def test_following_is_ended_by_ctrl_c(shell: Shell, start: Start, words: list[str]):
    async def talk(ledger: Ledger) -> int:
        await ledger.register("a", lease=600.0)
        await ledger.enqueue_one()
        claim = await ledger.claim_one()
        await ledger.store.append_logs([(ref(claim), 0, "info", "something was said")])
        return claim.id

    id = shell.ledger(talk)
    logs = start("logs", "--follow", *(word.format(id=id) for word in words))
    logs.expect("something was said")
    logs.sendintr()
    assert ended(logs) == INTERRUPTED
    assert "Traceback" not in logs.before


def test_a_job_is_watched_until_it_is_over(shell: Shell, start: Start):
    """Bars that move, the task that runs, and how it ended."""

    async def begin(ledger: Ledger) -> int:
        await ledger.register("a", lease=600.0)
        tasks = [task("shop.one"), task("shop.two", after=(After(task=0, local=True),))]
        job, _ = await ledger.store.create_job(NewJob(name="nightly", tasks=tasks))
        claim = await ledger.claim_one()
        await ledger.store.start("a", [ref(claim)])
        await ledger.store.progress("a", [(ref(claim), '{"done":3}')])
        return job

    async def go_on(ledger: Ledger) -> None:
        for held in await ledger.store.held("a"):
            await ledger.finish("a", completed(held))

    job = shell.ledger(begin)
    watch = start("jobs", "watch", str(job), "--interval", "0.1")
    watch.expect("nightly")
    watch.expect("0 of 2")
    watch.expect("shop.one")
    watch.expect("shop.two")
    watch.expect('"done":3')
    shell.ledger(go_on)
    watch.expect("1 of 2  50 %")

    async def end(ledger: Ledger) -> None:
        await ledger.finish("a", completed(await ledger.claim_one()))

    shell.ledger(end)
    watch.expect("2 of 2  100 %")
    watch.expect(f"job {job} is completed")
    assert ended(watch) == OK


def test_watching_a_job_is_ended_by_ctrl_c(shell: Shell, start: Start):
    async def begin(ledger: Ledger) -> int:
        return (await ledger.store.create_job(NewJob(name="nightly", tasks=[task()])))[0]

    job = shell.ledger(begin)
    watch = start("jobs", "watch", str(job))
    watch.expect("0 of 1")
    watch.sendintr()
    watch.expect(f"job {job} goes on")
    assert ended(watch) == INTERRUPTED
    assert "Traceback" not in watch.before
    assert shell.ledger(lambda ledger: ledger.job(job)).state == "pending"


def test_a_graph_fits_a_terminal(shell: Shell, start: Start):
    async def begin(ledger: Ledger) -> int:
        tasks = [task("fetch"), *(task("extract", after=(After(task=0, local=True),)) for _ in range(100))]
        return (await ledger.store.create_job(NewJob(name="nightly", tasks=tasks)))[0]

    job = shell.ledger(begin)
    show = start("jobs", "show", str(job))
    show.expect("nightly")
    show.expect("fetch")
    show.expect("×100")
    show.expect("100 blocked")
    assert ended(show) == OK


async def three_dead_letters(ledger: Ledger) -> None:
    await ledger.enqueue(*[task(dead_letter=True) for _ in range(3)])
    await ledger.finish("a", *[failed_for_good(claim) for claim in await ledger.claim()])


def count(shell: Shell) -> int:
    return shell("dlq", "list", "--json")[1].count('"dead_letter": true')


def test_a_purge_asks_first(shell: Shell, start: Start):
    shell.ledger(three_dead_letters)
    purge = start("dlq", "purge", "--all")
    purge.expect("Remove 3 dead letters for good\\?")
    purge.sendline("n")
    purge.expect("nothing was changed")
    assert ended(purge) == OK
    assert count(shell) == 3
    purge = start("dlq", "purge", "--all")
    purge.expect("Remove 3 dead letters for good\\?")
    purge.sendintr()
    assert ended(purge) == INTERRUPTED
    assert count(shell) == 3
    purge = start("dlq", "purge", "--all")
    purge.expect("Remove 3 dead letters for good\\?")
    purge.sendline("y")
    purge.expect("3 of 3 dead letters removed")
    assert ended(purge) == OK
    assert count(shell) == 0


def test_a_retry_asks_first_unless_told(shell: Shell, start: Start):
    shell.ledger(three_dead_letters)
    retry = start("dlq", "retry", "--all")
    retry.expect("Run 3 dead letters once more\\?")
    retry.sendline("y")
    retry.expect("3 of 3 dead letters back in the queue")
    assert ended(retry) == OK

    async def fail_again(ledger: Ledger) -> None:
        await ledger.finish("a", *[failed_for_good(claim) for claim in await ledger.claim()])

    shell.ledger(fail_again)
    retry = start("dlq", "retry", "--all", "--yes")
    retry.expect("3 of 3 dead letters back in the queue")
    assert ended(retry) == OK


def test_a_table_fits_a_terminal(shell: Shell, start: Start):
    """In a terminal long names are folded into their column, not cut."""
    shell.ledger(lambda ledger: ledger.enqueue_one("shop." + "x" * 150 + ".end"))
    listed = start("tasks", "list")
    listed.expect("\\.end")
    assert ended(listed) == OK

    async def finish(ledger: Ledger) -> None:
        await ledger.finish("a", completed(await ledger.claim_one()))

    shell.ledger(finish)


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_bash_completes_the_names_of_queues(shell: Shell, tmp_path: Path):
    shell.ledger(lambda ledger: ledger.enqueue_one(queue="letters-of-all-kinds"))
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "headrace"
    program.write_text(f"#!{sys.executable}\nfrom headrace.cli import main\n\nmain()\n")
    program.chmod(0o755)
    path = f"{folder}:{os.environ.get('PATH', '/usr/bin:/bin')}"
    environment = variables(HEADRACE_DATABASE_URL=shell.url, PATH=path, PS1="ready> ", HOME=str(tmp_path))
    bash: Terminal = pexpect.spawn(
        "bash", ["--noprofile", "--norc"], cwd=str(shell.folder), encoding="utf-8", timeout=PATIENCE,
        dimensions=(30, 100), env=environment,
    )  # fmt: skip
    try:
        bash.expect("ready> ")
        bash.sendline('eval "$(headrace --show-completion)"; echo loaded=$?')
        bash.expect("loaded=0")
        bash.expect("ready> ")
        bash.send("headrace queues pause let\t")
        bash.expect("letters-of-all-kinds")
    finally:
        bash.close(force=True)
