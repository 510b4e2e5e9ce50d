"""Secrets are planted wherever a task can hold them, and every sink is searched for them."""

import json
import re
import urllib.request
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from headrace import App
from headrace.cli.root import application
from tests.support.waiting import wait_until
from tests.telemetry.collector import collecting
from tests.telemetry.workers import headrace, python, worker

# None stands under a name that is no secret's, nor in a text without a name: that no rule could know.
PLANTED = {
    place: f"planted-{number:02d}-{place}"
    for number, place in enumerate(
        ("argument", "nested", "listed", "jsontext", "metadata", "message", "url", "variable", "flag", "said", "field",
         "logged", "extra", "group", "span", "word", "hook", "environment", "progress", "returned",
         "kept")
    )
}  # fmt: skip
TASKS = """
import json
import logging
import os
import sys

from opentelemetry import trace

from headrace import App, Retry, current


def hide_hooked(name, value):
    return "hidden" if isinstance(value, str) and "-hook" in value else value


app = App(os.environ["HEADRACE_DATABASE_URL"], redact=["iban", hide_hooked])
log = logging.getLogger("shop.auth")
# A handler of the user's own, before ours, which redacts nothing: what it leaves in a record is not shown by ours.
own = logging.FileHandler("own.log", delay=True)
own.setFormatter(logging.Formatter("%(message)s"))
log.addHandler(own)
P = json.load(open("planted.json"))


def leak(kind: str, login: dict, blob: str) -> dict:
    current.log(f"logging in with password={P['said']}", api_key=P["field"])
    current.progress(1, message=f"token={P['progress']}")
    log.warning("login %s of %s", login, kind, extra={"access_token": P["extra"], "note": f"secret: {P['logged']}"})
    log.warning("by the app's own rules: iban=%s %s", P["word"], P["hook"])
    with trace.get_tracer("shop").start_as_current_span("inside") as span:
        span.set_attribute("db.password", P["span"])
        span.set_attribute("db.url", f"postgresql://me:{P['url']}@db/shop")
    try:
        raise LookupError(f"passphrase={P['kept']}")
    except LookupError:
        log.exception("caught it")
    if kind == "good":
        return {"session_token": P["returned"], "ok": True}
    inner = ValueError(f"cannot reach postgresql://me:{P['url']}@db/shop")
    raise ExceptionGroup(f"login failed: password={P['message']}", [inner, KeyError(f"token={P['group']}")])


@app.task(name="coroutine", queue="mail", retry=Retry(max_attempts=1, dead_letter=True))
async def coroutine(kind: str, password: str, login: dict, blob: str) -> dict:
    return leak(kind, login, blob)


@app.task(name="thread", queue="mail", executor="thread", retry=Retry(max_attempts=1, dead_letter=True))
def thread(kind: str, password: str, login: dict, blob: str) -> dict:
    return leak(kind, login, blob)


@app.task(name="process", queue="mail", retry=Retry(max_attempts=1, dead_letter=True))
def process(kind: str, password: str, login: dict, blob: str) -> dict:
    return leak(kind, login, blob)


def plant() -> None:
    values = {
        "password": P["argument"],
        "login": {"user": "me", "auth": {"code": P["nested"]}, "all": [{"clientSecret": P["listed"]}]},
        "blob": json.dumps({"token": P["jsontext"]}),
    }
    for task in (coroutine, thread, process):
        for kind in ("good", "bad"):
            task.using(metadata={"api_token": P["metadata"]}).enqueue(kind=kind, **values)
    code = "import os, sys; print(f\\"password={os.environ['DB_PASSWORD']}\\", file=sys.stderr); sys.exit(3)"
    app.commands.submit(
        [sys.executable, "-c", code, "--token", P["flag"]], env={"DB_PASSWORD": P["variable"]}, queue="mail"
    )
"""


def assert_clean(sink: str, text: str) -> None:
    found = {place: re.findall(f".{{0,60}}{secret}", text) for place, secret in PLANTED.items() if secret in text}
    assert found == {}, sink


class Exposed:
    """The page of a worker whose log is here."""

    def __init__(self, log: Path) -> None:
        found = wait_until(lambda: re.search(r"http://[^\s\"]+/metrics", log.read_text()), timeout=60)
        assert found is not None
        self.address = found[0]

    def page(self) -> str:
        with urllib.request.urlopen(self.address, timeout=30) as answer:
            return answer.read().decode()


def printed(*words: str, url: str, codes: tuple[int, ...] = (0,)) -> str:
    done = CliRunner().invoke(application, [*words, "--database", url])
    assert done.exit_code in codes, done.output
    return done.output


@pytest.mark.requirement("D69")
def test_no_sink_shows_a_planted_secret(sqlite_url: str, tmp_path: Path) -> None:
    """D69: logs (both formats, and those kept in the ledger), spans, metrics and everything that commands print, plain
    and as JSON. That the sinks were reached is asserted beside."""
    (tmp_path / "tasks.py").write_text(TASKS)
    (tmp_path / "planted.json").write_text(json.dumps(PLANTED))
    log = tmp_path / "worker.log"
    app = App(sqlite_url)
    app.upgrade()
    with collecting() as collector:
        variables = {
            "HEADRACE_DATABASE_URL": sqlite_url,
            "SHOP_SECRET_KEY": PLANTED["environment"],
            **collector.environment,
        }
        words = ("--metrics-port", "0", "--children", "1", "--log-level", "debug", "--log-format")
        for format in ("console", "json"):
            python(tmp_path, "import tasks; tasks.plant()", **variables)
            with worker(tmp_path, *words, format, **variables) as process:
                exposed = Exposed(log)
                wait_until(lambda: not app.tasks.list(states=["pending", "claimed", "running"]), timeout=60)
                wait_until(partial(_counted, exposed), timeout=60)
                assert_clean("metrics", exposed.page())
                process.terminate()
                assert process.wait(60) == 0
            text = log.read_text()
            assert text.count("login failed: password=[redacted]") >= 3
            assert text.count("LookupError: passphrase=[redacted]") >= 6
            assert PLANTED["kept"] in (tmp_path / "own.log").read_text()
            assert text.count("iban=[redacted]") + text.count("hidden") >= 3
            assert_clean(f"{format} log", text)

        names = {span.name for span in collector.spans}
        assert names >= {f"{act} {task}" for act in ("enqueue", "run", "finalize") for task in ("process", "command")}
        inside = [span for span in collector.spans if span.name == "inside"]
        assert {span.attributes.get("db.password") for span in inside} == {"[redacted]"}
        assert_clean("spans", "".join(body.decode("utf-8", "replace") for body in collector.bodies))

    tasks = app.tasks.list()
    assert any("password=[redacted]" in line.line for task in tasks for line in app.tasks.logs(task.id))
    shown = ""
    for task in tasks:
        assert_clean("kept logs", "".join(line.line for line in app.tasks.logs(task.id)))
        for words in (("tasks", "show"), ("logs",), ("explain",)):
            for more in ((), ("--json",)):
                text = printed(*words, str(task.id), *more, url=sqlite_url)
                assert_clean(" ".join((*words, *more)), text)
                shown += text
    assert shown.count("[redacted]") > 50
    for command in (
        ("tasks", "list"), ("tasks", "list", "--json"), ("tasks", "list", "--dead-letters"), ("queues", "list"),
        ("workers", "list", "--json"), ("dlq", "list"), ("dlq", "list", "--json"), ("top",), ("top", "--json"),
        ("jobs", "list", "--json"), ("schedules", "list", "--json"),
    ):  # fmt: skip
        assert_clean(" ".join(command), printed(*command, url=sqlite_url))
    # These find no worker, and say so.
    for command in (("doctor",), ("doctor", "--json"), ("health",)):
        assert_clean(" ".join(command), printed(*command, url=sqlite_url, codes=(0, 1)))
    # A failure that a command prints, as a real process.
    bad = ("enqueue", "tasks:app", "coroutine", "kind=bad", "password=x", "login={}", "blob=x", "--wait")
    with worker(tmp_path, "--children", "0", **variables):
        said = headrace(tmp_path, *bad, code=1, **variables)
    assert "login failed: password=[redacted]" in said.stderr
    assert_clean("enqueue --wait", said.stdout + said.stderr)

    # What is executed is of course what was given.
    assert PLANTED["argument"] in app.tasks.list(names=["process"])[0].arguments
    app.close()


def _counted(exposed: Exposed) -> bool:
    return 'error_type="ExceptionGroup"' in exposed.page()
