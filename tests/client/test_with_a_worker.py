"""What a program enqueues, a real worker runs: types, resources, retries, jobs and commands, on both stores."""

import asyncio
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

PROGRAM = """
import asyncio, json, sys
from datetime import UTC, datetime, timedelta
from tests.client import worked_tasks as t
from headrace import orchestration as o
ids = {}
ids["arrive"] = t.arrive.enqueue(t.Trip(datetime(2030, 1, 1, tzinfo=UTC), timedelta(hours=3))).id
ids["double"] = t.double.enqueue(4).id
ids["child"] = t.double_in_a_child.enqueue(5).id
ids["third"] = t.third_time.enqueue().id
ids["never"] = t.never.enqueue().id
ids["unstorable"] = t.unstorable.enqueue().id
ids["enqueues"] = t.enqueues.enqueue(6).id
ids["command"] = t.app.commands.submit([sys.executable, "-c", "print('said')"]).id
grow = {"entrypoint": "tests.client.worked_tasks.grow", "kwargs": {"count": 3}}
ids["job"] = asyncio.run(o.create_job("grows", [grow])).id
bad = {"entrypoint": "no_such_module.function"}
ids["bad job"] = asyncio.run(o.create_job("bad", [bad])).id
print(json.dumps(ids))
"""


def run(*words: str, url: str) -> str:
    environ = {**os.environ, "HEADRACE_DATABASE_URL": url, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environ, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.requirement("A26", "A36")
def test_end_to_end(store_url: str, monkeypatch: pytest.MonkeyPatch):
    """A26: a task adds three to its job, which completes with four. A36: a path that leads nowhere fails its task with
    a clear message, and the worker runs the rest."""
    import json

    from headrace import App
    from headrace.core.errors import TaskFailed
    from headrace.core.states import JobState

    ids = json.loads(run(sys.executable, "-c", PROGRAM, url=store_url))
    headrace = str(Path(sys.executable).parent / "headrace")
    run(headrace, "worker", "tests.client.worked_tasks:app", "--burst", "--children", "1", url=store_url)

    app = App(store_url)
    result = {name: app.tasks.handle(ids[name]) for name in ids if "job" not in name}
    assert result["arrive"].result() == (datetime(2030, 1, 1, tzinfo=UTC) + timedelta(hours=3)).isoformat().replace(
        "+00:00", "Z"
    )
    assert (result["double"].result(), result["child"].result(), result["third"].result()) == (8, 10, 3)
    assert app.tasks.handle(result["enqueues"].result()).result() == 12
    assert result["command"].result()["stdout"] == "said\n"
    for name, said in (("never", "no use"), ("unstorable", "JSON")):
        with pytest.raises(TaskFailed, match=said):
            result[name].result()
        assert app.tasks.get(ids[name]).attempt == 1
    assert [line.line for line in app.tasks.logs(ids["double"])] == ["around"]
    job = app.jobs.get(ids["job"])
    assert (job.state, job.completed, job.total) == (JobState.COMPLETED, 4, 4)
    assert {record.result for record in app.tasks.list(job=job.id)} == {str(job.id)}
    assert app.jobs.get(ids["bad job"]).state is JobState.FAILED
    [failed] = app.tasks.list(job=ids["bad job"])
    assert "there is no module 'no_such_module'" in (failed.error_message or "")
    app.close()


def test_a_result_is_waited_for_while_a_worker_runs(store_url: str):
    from headrace import App

    app = App(store_url)

    @app.task(name="tests.client.worked_tasks.double")
    def double(number: int) -> int: ...

    environ = {**os.environ, "HEADRACE_DATABASE_URL": store_url, "PYTHONPATH": str(ROOT)}
    headrace = str(Path(sys.executable).parent / "headrace")
    app.tasks.list()
    worker = subprocess.Popen(
        [headrace, "worker", "tests.client.worked_tasks:app", "--children", "1"], cwd=ROOT, env=environ
    )
    try:
        assert double.enqueue(21).result(timeout=60) == 42
        assert asyncio.run(_double(double)) == 44
        assert app.health_check().healthy
    finally:
        worker.terminate()
        assert worker.wait(60) == 0
        app.close()


async def _double(double) -> int:
    return await (await double.aenqueue(22))
