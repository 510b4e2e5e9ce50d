"""`headrace worker --metrics-port 0` as a real process: what it did is what a scrape says."""

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from headrace import App
from tests.support.processes import command_has
from tests.support.waiting import wait_until

TASKS = """
import asyncio
import os

from headrace import App, Retry

app = App(os.environ["HEADRACE_DATABASE_URL"])
AT_ONCE = Retry(max_attempts=3, backoff="fixed", base=0.01, jitter=0.0)


@app.task(queue="mail")
async def send(n: int) -> int:
    return n


@app.task(queue="mail")
def print_page(n: int) -> int:
    return n


@app.task(queue="mail", retry=AT_ONCE)
async def flaky() -> None:
    from headrace import current

    if current.attempt < 3:
        raise OSError("not yet")


@app.task(queue="mail", retry=Retry(max_attempts=1))
async def broken() -> None:
    raise ValueError("for good")


@app.task(queue="mail", retry=AT_ONCE)
async def hopeless() -> None:
    raise OSError("again and again")


@app.task(queue="later")
async def later() -> None: ...


@app.task(queue="mail")
async def endless() -> None:
    await asyncio.sleep(600)


@app.task(queue="control")
async def begin() -> None:
    # In the process of the worker: jobs, one of which fails, and one whose hook is a task, too.
    await app.jobs.acreate("good", [send.prepare(1), send.prepare(2)], on_success=print_page.prepare(3))
    await app.jobs.acreate("bad", [broken.prepare()])
    await flaky.aenqueue()
    await hopeless.aenqueue()


@app.task(queue="control")
def begin_in_a_child() -> None:
    for n in range(3):
        print_page.enqueue(n)
    later.using(idempotency_key="one").enqueue()
    later.using(idempotency_key="one").enqueue()  # the same one: not created twice
"""


class Exposed:
    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log
        found = wait_until(lambda: re.search(r"metrics are at (http://\S+)", log.read_text()) or process.poll())
        assert isinstance(found, re.Match), log.read_text()
        self.address = found[1]

    def scrape(self) -> dict[str, float]:
        with urllib.request.urlopen(self.address, timeout=10) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = answer.read().decode().splitlines()
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line[:1] != "#")}

    def until(self, name: str, value: float) -> dict[str, float]:
        """The first scrape in which this is so."""
        last: dict[str, float] = {}

        def there() -> bool:
            nonlocal last
            last = self.scrape()
            return last.get(name) == value

        wait_until(there, message=f"{name} {value}")
        return last

    def workers(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children()
        return [child for child in children if command_has(child, "headrace.worker.process")]

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


@contextmanager
def exposed(folder: Path, url: str, *words: str, command: str = "worker", **variables: str) -> Iterator[Exposed]:
    (folder / "tasks.py").write_text(TASKS)
    log = folder / "worker.log"
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url, "HEADRACE_PORT": "0", **variables}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "headrace.cli", command, "tasks:app", "--children", "1", *words],
            cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    try:
        yield Exposed(process, log)
    finally:
        if process.poll() is None:
            everyone = [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]
            for one in everyone:
                with suppress(psutil.NoSuchProcess):  # it ends with the one before it
                    one.kill()
        process.wait(10)
        print(log.read_text()[-4000:])


@pytest.fixture
def app(store_url: str) -> Iterator[App]:
    app = App(store_url)
    app.upgrade()
    yield app
    app.close()


def enqueue(folder: Path, url: str, *names: str) -> None:
    """By another process, which counts for nobody."""
    code = "import sys, tasks\nfor name in sys.argv[1:]: getattr(tasks, name).enqueue()"
    environment = {**os.environ, "HEADRACE_DATABASE_URL": url}
    subprocess.run([sys.executable, "-c", code, *names], cwd=folder, env=environment, check=True, timeout=60)


def labels(queue: str, executor: str) -> str:
    return f'{{executor="{executor}",kind="function",queue="{queue}"}}'


def failed(queue: str, executor: str, error: str) -> str:
    return f'tasks_failed_total{{error_type="{error}",{labels(queue, executor)[1:]}'


COROUTINE, CHILD = labels("mail", "coroutine"), labels("mail", "process")


@pytest.mark.requirement("A60", "A61", "A62")
def test_a_scrape_says_exactly_what_happened(app: App, store_url: str, tmp_path: Path) -> None:
    """A60: the block on jobs; A61: the block on tasks; A62: the block on workers. Every figure is exact."""
    app.queues.pause("later")
    with exposed(tmp_path, store_url, "--metrics-port", "0", "--processes", "2") as worker:
        enqueue(tmp_path, store_url, "begin", "begin_in_a_child")
        worker.until(failed("mail", "coroutine", "OSError"), 1)
        worker.until(failed("mail", "coroutine", "ValueError"), 1)
        worker.until(f"tasks_completed_total{CHILD}", 4)
        worker.until("jobs_completed_total", 1)
        worker.until(f"tasks_created_total{CHILD}", 4)
        worker.until(f"tasks_completed_total{COROUTINE}", 3)
        worker.until('task_queue_depth{lane="primary",queue="later"}', 1)
        # The two processes tell their figures when they come to it: what is not asked for above may be of the other.
        worker.until(f"task_latency_seconds_count{COROUTINE}", 9)
        worker.until(f"worker_task_execution_time_count{COROUTINE}", 9)
        worker.until(f"worker_task_execution_time_count{CHILD}", 4)
        worker.until(f"tasks_created_total{COROUTINE}", 5)
        worker.until(f"tasks_created_total{labels('later', 'coroutine')}", 1)
        worker.until(f"tasks_completed_total{labels('control', 'coroutine')}", 1)
        worker.until(f"tasks_completed_total{labels('control', 'process')}", 1)
        worker.until("jobs_created_total", 2)
        worker.until("job_duration_seconds_count", 2)
        seen = worker.until("workers_active", 2)

        # Jobs: one completed, one failed.
        assert [seen[f"jobs_{word}_total"] for word in ("created", "completed", "failed")] == [2, 1, 1]
        assert seen["job_duration_seconds_count"] == 2
        assert 0 < seen["job_duration_seconds_sum"] < 60
        assert seen['job_duration_seconds_bucket{le="+Inf"}'] == 2

        # Tasks: two of the good job, the flaky one, the two that fail; in children three pages and the hook.
        assert seen[f"tasks_created_total{COROUTINE}"] == 5
        assert seen[f"tasks_created_total{CHILD}"] == 4
        assert seen[f"tasks_created_total{labels('later', 'coroutine')}"] == 1
        assert seen[f"tasks_completed_total{COROUTINE}"] == 3
        assert seen[f"tasks_completed_total{labels('control', 'coroutine')}"] == 1
        assert seen[f"tasks_completed_total{labels('control', 'process')}"] == 1
        assert {name: n for name, n in seen.items() if name.startswith("tasks_failed_total{")} == {
            failed("mail", "coroutine", "OSError"): 1,
            failed("mail", "coroutine", "ValueError"): 1,
        }
        assert seen[f"tasks_succeeded_total{COROUTINE}"] == 3
        assert seen[f"task_duration_seconds_count{COROUTINE}"] == 5
        assert seen[f"task_duration_seconds_count{CHILD}"] == 4
        assert seen['task_queue_depth{lane="primary",queue="later"}'] == 1
        assert seen[f"task_latency_seconds_count{COROUTINE}"] == 9
        assert seen[f"task_latency_seconds_count{CHILD}"] == 4
        assert seen['queue_depth{lane="primary",queue="later"}'] == 1

        # Workers: every attempt counts, the two that were retried of each of two tasks, too.
        assert seen[f"worker_task_execution_time_count{COROUTINE}"] == 9
        assert seen[f"worker_task_execution_time_count{CHILD}"] == 4
        assert seen[f"task_run_seconds_count{COROUTINE}"] == 9
        assert seen["workers_active"] == 2
        ages = {name: age for name, age in seen.items() if name.startswith("worker_heartbeat_age{")}
        assert {re.search('worker="(.*)"', name)[1] for name in ages} == {  # pyright: ignore[reportOptionalSubscript]
            record.id for record in app.workers.list(states=["active", "idle"])
        }
        assert all(0 <= age < 30 for age in ages.values())
        assert 0 <= seen["ledger_figures_age_seconds"] < 30
        assert worker.stop() == 0


def test_the_counts_of_a_killed_process_stay_and_its_task_is_counted(app: App, store_url: str, tmp_path: Path) -> None:
    with exposed(tmp_path, store_url, "--metrics-port", "0") as worker:
        enqueue(tmp_path, store_url, "begin")
        worker.until(failed("mail", "coroutine", "OSError"), 1)
        worker.until(failed("mail", "coroutine", "ValueError"), 1)
        worker.until(f"tasks_completed_total{COROUTINE}", 3)
        enqueue(tmp_path, store_url, "endless")
        worker.until('in_flight{queue="mail"}', 1)
        wait_until(lambda: app.tasks.counts().get("running"))
        (process,) = worker.workers()
        process.send_signal(signal.SIGKILL)
        worker.until(f"worker_task_execution_time_count{COROUTINE}", 10)  # the supervisor settled the lost attempt
        assert worker.scrape()[f"tasks_completed_total{COROUTINE}"] == 3


def test_a_deadline_that_passes_counts_as_a_failed_job(app: App, store_url: str, tmp_path: Path) -> None:
    """Nobody finishes a task here: the supervisor's own upkeep ends the job."""
    app.queues.pause("later")
    with exposed(tmp_path, store_url, "--metrics-port", "0", "--lease", "1") as worker:
        code = "import tasks; tasks.app.jobs.create('late', [tasks.later.prepare()], timeout=0.1)"
        environment = {**os.environ, "HEADRACE_DATABASE_URL": store_url}
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=60)
        seen = worker.until("jobs_failed_total", 1)
        assert (seen["jobs_created_total"], seen["job_duration_seconds_count"]) == (0, 0)


def test_one_of_many_shows_what_the_ledger_says(sqlite_url: str, tmp_path: Path) -> None:
    App(sqlite_url).upgrade()
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    with exposed(folders[0], sqlite_url, "--metrics-port", "0") as first:
        first.until("workers_active", 1)
        with exposed(folders[1], sqlite_url, "--metrics-port", "0") as second:
            first.until("workers_active", 2)
            assert "workers_active" not in second.scrape()
            assert first.stop() == 0
            second.until("workers_active", 1)


def test_up_and_the_environment_say_the_port(sqlite_url: str, tmp_path: Path) -> None:
    with exposed(tmp_path, sqlite_url, command="up", HEADRACE_METRICS_PORT="0") as worker:
        assert worker.address.startswith("http://127.0.0.1:")
        assert worker.scrape()["jobs_created_total"] == 0


def test_a_port_that_is_taken_is_said_at_the_start(sqlite_url: str, tmp_path: Path) -> None:
    App(sqlite_url).upgrade()
    with exposed(tmp_path, sqlite_url, "--metrics-port", "0") as worker:
        port = worker.address.split(":")[2].partition("/")[0]
        second = subprocess.run(
            [sys.executable, "-m", "headrace.cli", "worker", "tasks:app", "--metrics-port", port],
            cwd=tmp_path, env={**os.environ, "HEADRACE_DATABASE_URL": sqlite_url},
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert second.returncode == 1
    assert f"metrics cannot be served on 127.0.0.1 port {port}" in second.stderr
    assert "Traceback" not in second.stderr


def test_without_the_library_the_worker_says_so_at_the_start(sqlite_url: str, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "prometheus_client.py").write_text("raise ModuleNotFoundError('gone', name='prometheus_client')")
    done = subprocess.run(
        [sys.executable, "-m", "headrace.cli", "worker", "tasks:app", "--metrics-port", "0"],
        cwd=tmp_path, env={**os.environ, "HEADRACE_DATABASE_URL": sqlite_url},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert "pip install 'headrace[metrics]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_app_shows_what_its_own_process_did(store_url: str, app: App) -> None:
    @app.task(name="own", queue="mail")
    async def own() -> None: ...

    page = app.metrics()
    own.enqueue()
    own.enqueue_many([((), {})] * 3)
    job = app.jobs.create("mine", [own.prepare()])
    app.jobs.cancel(job.id)
    last = app.jobs.create("last", [own.prepare()])
    wait_until(lambda: b"jobs_cancelled_total 1.0" in page.render())
    (task,) = app.tasks.list(job=last.id)
    app.tasks.cancel(task.id)
    wait_until(lambda: b"jobs_cancelled_total 2.0" in page.render())
    lines = page.render().decode().splitlines()
    assert f"tasks_created_total{COROUTINE} 6.0" in lines
    assert "jobs_created_total 2.0" in lines
