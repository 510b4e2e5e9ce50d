"""Every metric and label that the dashboard asks for is on the page of a running worker."""

import json
import re
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from headrace import App
from tests.support.waiting import wait_until
from tests.telemetry.workers import python, worker

DASHBOARD = Path(__file__).resolve().parents[2] / "deploy" / "grafana" / "headrace.json"
TASKS = """
import os

from headrace import App, Retry

app = App(os.environ["HEADRACE_DATABASE_URL"])
ONCE = Retry(max_attempts=1, dead_letter=True)


@app.task(name="good", queue="mail")
async def good() -> None:
    with app.breaker("bank").call():
        pass
    for n in range(2):
        await app.jobs.acreate("nothing", [none.prepare()])


@app.task(name="none", queue="mail")
def none() -> None: ...


@app.task(name="bad", queue="mail", retry=ONCE)
async def bad() -> None:
    raise ValueError("for good")


@app.task(name="fatal", queue="mail", retry=ONCE)
def fatal() -> None:
    os._exit(9)
"""
_WORDS = {
    "sum", "by", "rate", "increase", "max", "min", "histogram_quantile", "label_values", "le", "or", "and", "without",
}  # fmt: skip


def dashboard() -> dict[str, Any]:
    return json.loads(DASHBOARD.read_text())


def expressions() -> list[str]:
    found = [target["expr"] for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    return [*found, *(variable["definition"] for variable in dashboard()["templating"]["list"][1:])]


def asked_for(expression: str) -> tuple[set[str], set[str]]:
    """Metrics and labels of an expression."""
    labels = {label for group in re.findall(r"by \(([^)]*)\)", expression) for label in group.split(", ")}
    labels |= set(re.findall(r"(\w+)=~?\"", expression)) | set(re.findall(r"label_values\(\w+, (\w+)\)", expression))
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)|label_values\((\w+), \w+\)", r" \1 ", expression)
    return set(re.findall(r"[a-z_][a-z0-9_]*", bare)) - _WORDS, labels


def test_the_dashboard_can_be_loaded() -> None:
    data = dashboard()
    panels = data["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert data["templating"]["list"][0]["type"] == "datasource"
    for panel in panels:
        if panel["type"] != "row":
            assert panel["datasource"]["uid"] == "${datasource}"
            assert panel["title"]
            assert panel["description"]
            assert panel["targets"]
    places = [(p["gridPos"]["x"], p["gridPos"]["y"]) for p in panels]
    assert len(set(places)) == len(places)


def test_expressions_are_read_rightly() -> None:
    """The instrument: a metric that were overlooked would be looked for nowhere."""
    text = 'sum by (queue, le) (rate(a_bucket{queue=~"$queue"}[5m])) / sum(b_total{lane="x"})'
    assert asked_for(text) == ({"a_bucket", "b_total"}, {"queue", "le", "lane"})
    assert asked_for("label_values(queue_depth, queue)") == ({"queue_depth"}, {"queue"})


@pytest.mark.requirement("D67")
def test_every_metric_of_the_dashboard_is_on_the_page_of_a_worker(sqlite_url: str, tmp_path: Path) -> None:
    """D67: depth by queue, in flight, the counters of successes and failures, and the histograms of latency are there
    (the block at the end), as is all else that the dashboard asks for, with the labels by which it asks."""
    (tmp_path / "tasks.py").write_text(TASKS)
    App(sqlite_url).upgrade()
    python(
        tmp_path,
        "import tasks\n"
        "for task in (tasks.good, tasks.bad, tasks.fatal, tasks.none.using(run_after=3600)): task.enqueue()",
        HEADRACE_DATABASE_URL=sqlite_url,
    )
    with worker(tmp_path, "--metrics-port", "0", "--children", "1", HEADRACE_DATABASE_URL=sqlite_url):
        log = tmp_path / "worker.log"
        (address,) = wait_until(lambda: re.findall(r"metrics are at (\S+)", log.read_text()), timeout=60)

        def page() -> str:
            with urllib.request.urlopen(address, timeout=30) as answer:
                return answer.read().decode()

        wanted = ('error_type="ValueError"', "attempts_lost_total{", "jobs_completed_total 2.0", "dlq_depth 2.0")
        wait_until(lambda: all(text in page() for text in wanted), timeout=60, message=str(wanted))
        text = page()
    samples: dict[str, set[str]] = {}
    for line in text.splitlines():
        if found := re.match(r"(\w+)(?:\{(.*)\})? ", line):
            samples.setdefault(found[1], set()).update(re.findall(r'(\w+)="', found[2] or ""))
    declared = set(re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE))
    for expression in expressions():
        metrics, labels = asked_for(expression)
        assert metrics, expression
        for metric in metrics:
            # No report was refused here: of that metric there is only the head.
            assert metric in samples or metric in declared, (metric, expression)
        missing = labels - set().union(*(samples.get(metric, labels) for metric in metrics))
        assert missing == set(), expression

    assert samples["queue_depth"] == {"queue", "lane"}
    assert samples["in_flight"] == {"queue"}
    for counter in ("tasks_succeeded_total", "tasks_failed_total"):
        assert samples[counter] >= {"queue", "kind", "executor"}
    for histogram in ("task_latency_seconds_bucket", "task_run_seconds_bucket"):
        assert samples[histogram] == {"queue", "kind", "executor", "le"}
    assert samples["breaker_state"] == {"service"}
    assert samples["retry_ratio"] == {"queue"}
