"""An app for a real worker. The test says by the environment which preset and which database."""

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator

from headrace import App, Retry, current
from headrace.core.breaker import BreakerPolicy
from headrace.orchestration import configure

app = App(preset=os.environ.get("TEST_PRESET") or None)
configure(app)


@app.lifespan
async def set_up() -> AsyncIterator[None]:
    if os.environ.get("DJANGO_SETTINGS_MODULE"):
        import django

        django.setup()
    yield


@app.task
def unreachable(error: str, times: int) -> int:
    """Fails `times` times with a connection or an operating system's error, then gives the attempt."""
    if current.attempt <= times:
        raise {"connection": ConnectionResetError, "os": BlockingIOError}[error](f"away on attempt {current.attempt}")
    return current.attempt


@app.task
def wrong() -> None:
    current.log("about to go wrong")
    raise ValueError("this input is wrong")


@app.task(retry=Retry(max_attempts=4, backoff="fixed", base=0, jitter=0))
async def through_the_breaker(works: bool) -> str:
    async with app.breaker("service", BreakerPolicy(volume_threshold=2, timeout=0.3)).call():
        if not works:
            raise ConnectionError("the service is down")
        return "through"


@app.task
async def forever() -> None:
    await asyncio.Event().wait()


@app.task
async def nap() -> None:
    await asyncio.sleep(0.3)


@app.task
def mark_run_failed(database: str, run: int, job_name: str) -> None:
    """The hook of a job that belongs to a retraining run: the run and its schedule learn how it ended."""
    (job,) = [job for job in app.jobs.list() if job.name == job_name]
    (failed,) = app.tasks.list(job=job.id, states=["failed"])
    with sqlite3.connect(database) as connection:
        connection.execute("UPDATE runs SET status = 'FAILED', error = ? WHERE id = ?", (failed.error_message, run))
        connection.execute("UPDATE schedules SET last_run_status = 'FAILED'")
        connection.execute("INSERT INTO hooks DEFAULT VALUES")
    connection.close()


@app.task
def remove(folder: str) -> None:
    """The hook that clears away what a failed or cancelled job left."""
    shutil.rmtree(folder)
