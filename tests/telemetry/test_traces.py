"""Spans of real processes, as a collector gets them from the real exporter."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.support.waiting import wait_until
from tests.telemetry.collector import Collector, Span, collecting
from tests.telemetry.workers import headrace, python, worker

TASKS = """
import logging
import os
import sys

from opentelemetry import trace

from headrace import App, Retry, current

app = App(os.environ["HEADRACE_DATABASE_URL"])
tracer = trace.get_tracer("shop")
AT_ONCE = Retry(max_attempts=3, backoff="fixed", base=0, jitter=0.0)


def own(kind: str) -> None:
    with tracer.start_as_current_span(f"inside {kind}"):
        logging.getLogger("shop").info("in a span")


@app.task(name="coroutine", queue="mail")
async def coroutine() -> None:
    own("coroutine")


@app.task(name="thread", queue="mail", executor="thread")
def thread() -> None:
    own("thread")


@app.task(name="process", queue="mail")
def process() -> None:
    own("process")


@app.task(name="flaky", queue="mail", retry=AT_ONCE)
async def flaky() -> None:
    if current.attempt < 3:
        raise OSError("not yet, password=hunter2")


@app.task(name="fatal", queue="mail", retry=Retry(max_attempts=1))
async def fatal() -> None:
    os._exit(9)


COMMAND = [sys.executable, "-c", "import os; print(os.environ['TRACEPARENT'])"]
"""
ENQUEUE = """
import tasks
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

# As a web program does, which has a provider of its own.
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
trace.set_tracer_provider(provider)
with tasks.tracer.start_as_current_span("request"):
    for one in (tasks.coroutine, tasks.thread, tasks.process, tasks.flaky):
        one.enqueue()
    tasks.app.commands.submit(tasks.COMMAND, queue="mail")
"""
ACTS = ["enqueue", "claim", "submit", "run", "finalize"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tasks.py").write_text(TASKS)
    return tmp_path


def spans_of(collector: Collector, task: str) -> dict[str, Span]:
    """Those of the attempt that ran. A slow worker gives back what it cannot start at once: such a claim is another."""
    spans = collector.of(task=task)
    ran = {span.parent for span in spans if span.act == "run"}
    others = {span.id for span in spans if span.act == "claim"} - ran if ran else set[str]()
    return {span.act: span for span in spans if span.id not in others and span.parent not in others}


@pytest.mark.requirement("D68")
def test_enqueue_claim_submit_run_and_finalize_are_one_trace(store_url: str, folder: Path) -> None:
    """D68: for every executor the five spans are there, in one trace, each below the one that caused it; in the order
    of time; and what user code traces belongs to its run."""
    with collecting() as collector:
        variables = {"HEADRACE_DATABASE_URL": store_url, **collector.environment}
        headrace(folder, "db", "upgrade", HEADRACE_DATABASE_URL=store_url)
        python(folder, ENQUEUE, **variables)
        done = headrace(
            folder, "worker", "tasks:app", "--burst", "--children", "1", "--log-format", "json", **variables
        )
        spans = collector.spans
        (request,) = [span for span in spans if span.name == "request"]
        for task in ("coroutine", "thread", "process", "command"):
            found = spans_of(collector, task)
            assert sorted(found) == sorted(ACTS), task
            enqueue, claim, submit, run, finalize = (found[act] for act in ACTS)
            assert {span.trace for span in found.values()} == {request.trace}
            assert enqueue.parent == request.id
            assert claim.parent == enqueue.id
            assert {submit.parent, run.parent, finalize.parent} == {claim.id}
            # One clock: an instant may be read a little before the one of another process.
            assert enqueue.begins <= claim.ends <= submit.ends <= run.ends + 10_000_000
            assert run.begins <= run.ends <= finalize.ends + 10_000_000
            assert (enqueue.kind, claim.kind, submit.kind, run.kind, finalize.kind) == (4, 3, 1, 5, 1)
            assert run.attributes["messaging.system"] == "headrace"
            assert run.attributes["messaging.destination.name"] == "mail"
            assert run.attributes["messaging.operation.type"] == "process"
            assert run.attributes["headrace.task.executor"] == task
            assert run.attributes["messaging.message.id"] == claim.attributes["messaging.message.id"]
            assert finalize.attributes["headrace.task.state"] == "completed"
            assert run.service == "headrace"
            if task != "command":
                (inside,) = [span for span in spans if span.name == f"inside {task}"]
                assert (inside.parent, inside.trace) == (run.id, run.trace)

        # A command finds its run in its environment.
        (command,) = json.loads(
            headrace(folder, "tasks", "list", "--task", "command", "--json", HEADRACE_DATABASE_URL=store_url).stdout
        )
        run = spans_of(collector, "command")["run"]
        assert f"00-{run.trace}-{run.id}-" in command["result"]

        # Every attempt has a run of its own; the failed ones say so, without the secret.
        flaky = collector.of(task="flaky")
        acts = Counter(span.act for span in flaky)
        assert (acts["enqueue"], acts["run"]) == (1, 3)
        assert min(acts["claim"], acts["submit"], acts["finalize"]) >= 3
        assert {span.trace for span in flaky} == {request.trace}
        runs = sorted((span for span in flaky if span.act == "run"), key=lambda span: span.begins)
        assert [span.attributes["headrace.task.attempt"] for span in runs] == [1, 2, 3]
        assert [span.error for span in runs] == ["not yet, password=[redacted]"] * 2 + [None]
        assert [event[0] for event in runs[0].events] == ["exception"]
        assert not any(b"hunter2" in body for body in collector.bodies)

        # Log lines of user code name the trace.
        lines = [json.loads(line) for line in done.stderr.splitlines() if '"in a span"' in line]
        assert [line["trace_id"] for line in lines] == [request.trace] * 3


def test_a_batch_is_one_span_and_a_job_is_traced(sqlite_url: str, folder: Path) -> None:
    with collecting() as collector:
        variables = {"HEADRACE_DATABASE_URL": sqlite_url, **collector.environment}
        python(
            folder,
            "import tasks\n"
            "tasks.coroutine.enqueue_many([{}] * 5)\n"
            "tasks.app.jobs.create('j', [tasks.thread.prepare(), tasks.thread.prepare()])\n",
            **variables,
        )
        headrace(folder, "worker", "tasks:app", "--burst", "--children", "0", **variables)
        acts = Counter(span.act for span in collector.of(task="coroutine"))
        assert (acts["enqueue"], acts["run"]) == (1, 5)
        assert min(acts["claim"], acts["submit"], acts["finalize"]) >= 5
        (enqueue,) = [span for span in collector.of(task="coroutine") if span.act == "enqueue"]
        assert enqueue.attributes["messaging.batch.message_count"] == 5
        assert {span.trace for span in collector.of(task="coroutine")} == {enqueue.trace}
        assert Counter(span.act for span in collector.of(task="thread"))["enqueue"] == 1
        assert len({span.trace for span in collector.of(task="thread")}) == 1


def test_what_was_enqueued_without_spans_begins_a_trace_at_its_claim(sqlite_url: str, folder: Path) -> None:
    with collecting() as collector:
        python(folder, "import tasks; tasks.process.enqueue()", HEADRACE_DATABASE_URL=sqlite_url)
        headrace(
            folder, "worker", "tasks:app", "--burst", "--children", "1",
            HEADRACE_DATABASE_URL=sqlite_url, OTEL_SERVICE_NAME="shop", **collector.environment,
        )  # fmt: skip
        found = spans_of(collector, "process")
        assert sorted(found) == sorted(ACTS[1:])
        assert found["claim"].parent == ""
        assert {span.trace for span in found.values()} == {found["claim"].trace}
        assert found["run"].service == "shop"


def test_the_supervisor_finalizes_what_its_dead_process_ran(sqlite_url: str, folder: Path) -> None:
    with collecting() as collector:
        variables = {"HEADRACE_DATABASE_URL": sqlite_url, **collector.environment}
        python(folder, "import tasks; tasks.fatal.enqueue()", **variables)
        with worker(folder, "--children", "0", **variables) as process:
            wait_until(lambda: "finalize" in spans_of(collector, "fatal"), timeout=60)
            process.terminate()
            assert process.wait(60) == 0
        found = spans_of(collector, "fatal")
        assert found["finalize"].trace == found["enqueue"].trace
        assert found["finalize"].attributes["headrace.recorded_by"] == "supervisor"
        assert found["finalize"].error is not None


def test_without_spans_nothing_of_them_is_stored_or_imported(sqlite_url: str, folder: Path) -> None:
    text = python(
        folder,
        "import sys\n"
        "from headrace import App\n"
        "app = App(sys.argv[1])\n"
        "@app.task(name='plain')\n"
        "async def plain() -> None: ...\n"
        "handle = plain.enqueue()\n"
        "assert app.tracing is None and not app.middleware\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
        "print(app.tasks.get(handle.id).options)",
        sqlite_url,
    )
    assert "trace" not in text


def test_a_provider_of_the_program_is_used(sqlite_url: str, folder: Path) -> None:
    """Set after the app was made, as programs do."""
    text = python(
        folder,
        "import sys\n"
        "from opentelemetry import trace\n"
        "from opentelemetry.sdk.trace import TracerProvider\n"
        "from opentelemetry.sdk.trace.export import SimpleSpanProcessor\n"
        "from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter\n"
        "from headrace import App\n"
        "app = App(sys.argv[1], otel=True)\n"
        "exporter, provider = InMemorySpanExporter(), TracerProvider()\n"
        "provider.add_span_processor(SimpleSpanProcessor(exporter))\n"
        "trace.set_tracer_provider(provider)\n"
        "@app.task(name='plain')\n"
        "async def plain() -> None: ...\n"
        "plain.enqueue()\n"
        "print([span.name for span in exporter.get_finished_spans()])",
        sqlite_url,
    )
    assert text.strip() == "['enqueue plain']"


def test_without_the_library_an_app_says_so(folder: Path) -> None:
    text = python(
        folder,
        "import sys\n"
        "sys.modules['opentelemetry'] = None\n"
        "from headrace import App, errors\n"
        "try:\n"
        "    App('sqlite:///x.db', otel=True)\n"
        "except errors.SettingsError as error:\n"
        "    print(error)\n",
    )
    assert "pip install 'headrace[otel]'" in text
