"""The task on a chat server that fails on request: each failure ends as the specification says."""

import asyncio
import json
import logging
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace import App, Handle
from headrace.contrib.summarize import SummarizeSettings, register
from headrace.core.breaker import BreakerStatus
from headrace.core.errors import SettingsError
from headrace.core.lanes import Lane
from headrace.core.payload import loads
from headrace.core.states import AttemptState, TaskState
from headrace.core.task import AttemptRecord, TaskRecord
from headrace.testing import drain, override
from tests.contrib.conftest import KEY
from tests.support import chat_server as answers
from tests.support.chat_server import Answer, ChatServer

SMALL = {"chunk_tokens": 40, "summary_tokens": 10}


class Room:
    """An app on a database of the test, with `summarize` against the chat server."""

    def __init__(self, app: App, task: Any) -> None:
        self.app = app
        self.task = task

    def submit(self, content: str = "A text about rivers.") -> Handle[str]:
        return self.task.enqueue(content=content)

    def run(self, *, with_retries: bool = False) -> None:
        drain(self.app, with_retries=with_retries, raise_on_failure=False)

    def record(self, handle: Handle[str]) -> TaskRecord:
        return self.app.tasks.get(handle.id)

    def attempts(self, handle: Handle[str]) -> list[AttemptRecord]:
        return self.app.tasks.attempts(handle.id)


@pytest.fixture
def room(chat: ChatServer, sqlite_url: str) -> Iterator[Room]:
    yield from _room(chat, sqlite_url)


@pytest.fixture
def small(chat: ChatServer, sqlite_url: str) -> Iterator[Room]:
    """As `room`, where a text of a few sentences needs several calls."""
    yield from _room(chat, sqlite_url, **SMALL)


def _room(chat: ChatServer, url: str, **changes: Any) -> Iterator[Room]:
    app = App("sqlite:///:memory:", preset="asynctaskflow")
    task = register(app, SummarizeSettings(base_url=chat.base_url, timeout=10.0, **changes))
    with override(app, url=url):
        yield Room(app, task)


# --- what goes well -----------------------------------------------------------------------------------------------


@pytest.mark.requirement("F2")
def test_a_text_is_summarised_by_the_service(room: Room, chat: ChatServer):
    """F2: the worker calls the service, and its answer is the result. (The breaker: below.)"""
    chat.then(answers.text(["A river", " runs", " to the sea."]))
    handle = room.submit()
    room.run()
    assert handle.result(timeout=5) == "A river runs to the sea."
    (asked,) = chat.asked
    assert asked.path == "/api/v1/chat/completions"
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert (asked.body["stream"], asked.body["model"]) == (True, "meta-llama/llama-3.2-90b-text-preview")
    assert "A text about rivers." in asked.text
    assert room.app.breaker("openrouter").status is BreakerStatus.CLOSED


def test_tokens_are_streamed_as_they_come(small: Room, chat: ChatServer):
    """Of each part, with its number; together they are what the service said."""
    text = "\n\n".join(f"Paragraph {n} says something about rivers, and then something more of it." for n in range(4))
    chat.then(answers.text(["one", " two"]), answers.text("three"), answers.text(["all", " of", " it"]))
    handle = small.submit(text)
    small.run()
    assert handle.result(timeout=5) == "all of it"

    async def streamed() -> list[dict[str, Any]]:
        return [value async for value in small.app.tasks.handle(handle.id).stream()]

    values = asyncio.run(streamed())
    said: dict[tuple[int, int], str] = {}
    for value in values:
        place = (value["part"], value["parts"])
        said[place] = said.get(place, "") + value["text"]
    assert said == {(1, 2): "one two", (2, 2): "three", (1, 1): "all of it"}


@pytest.mark.parametrize("answer", [answers.whole("A whole one."), answers.text("A whole one.")])
def test_a_service_that_does_not_stream_will_do(room: Room, chat: ChatServer, answer: Answer):
    chat.then(answer)
    handle = room.submit()
    room.run()
    assert handle.result(timeout=5) == "A whole one."


def test_a_long_text_goes_in_parts_and_what_was_paid_is_not_paid_again(small: Room, chat: ChatServer):
    """The second part fails; the retry asks for it and the rest, not for the first, and then for the whole."""
    text = "\n\n".join(f"Paragraph {n} says something about rivers, and then something more of it." for n in range(8))
    chat.then(
        answers.text("one"), answers.status(503), answers.text("two"), answers.text("three"), answers.text("four")
    )
    chat.otherwise = answers.text("the end")
    handle = small.submit(text)
    small.run(with_retries=True)
    assert handle.result(timeout=5) == "the end"
    asked = [asked.text for asked in chat.asked]
    assert ["part 1 of" in each for each in asked].count(True) == 1
    assert ["part 2 of" in each for each in asked].count(True) == 2
    assert asked[-1].startswith("Summarise this text:\n\none\n\ntwo\n\nthree\n\nfour")
    assert [attempt.state for attempt in small.attempts(handle)] == [AttemptState.FAILED, AttemptState.SUCCEEDED]
    progress = json.loads(small.record(handle).progress or "{}")
    assert progress["value"] == progress["total"] > 3


def test_a_text_that_would_cost_too_much_is_refused(chat: ChatServer, sqlite_url: str):
    for room in _room(chat, sqlite_url, most_chunks=2, **SMALL):
        handle = room.submit("word " * 400)
        room.run()
        record = room.record(handle)
        assert (record.state, record.dead_letter) == (TaskState.FAILED, True)
        assert "most_chunks" in (record.error_message or "")
    assert chat.asked == []


def test_an_empty_text_is_refused_for_good(room: Room, chat: ChatServer):
    handle = room.submit("  ")
    room.run()
    assert (room.record(handle).state, room.record(handle).dead_letter) == (TaskState.FAILED, True)
    assert chat.asked == []


# --- what goes wrong ----------------------------------------------------------------------------------------------

TRANSIENT = {
    "429": (answers.status(429), "RateLimitError", 60),
    "503": (answers.status(503), "ServiceUnavailable", 5),
    "500": (answers.status(500), "NetworkTimeout", 2),
    "502": (answers.status(502), "NetworkTimeout", 2),
    "504": (answers.status(504), "NetworkTimeout", 2),
    "418": (answers.status(418), "UnexpectedStatus", 5),
    "302": (answers.status(302), "UnexpectedStatus", 5),
    "cut in the stream": (answers.cut(), "BrokenAnswer", 5),
    "cut at once": (answers.cut_at_once(), "BrokenAnswer", 5),
    "malformed": (answers.malformed(), "BrokenAnswer", 5),
    "no object": (answers.malformed("[1]"), "BrokenAnswer", 5),
    "no choices": (answers.malformed('{"choices": {}}'), "BrokenAnswer", 5),
    "empty": (answers.empty(), "BrokenAnswer", 5),
    "malformed body": (answers.body("<html>"), "BrokenAnswer", 5),
    "429 in the stream": (answers.error_in_stream(429), "RateLimitError", 60),
    "error in the stream": (answers.malformed('{"error": "away"}'), "BrokenAnswer", 5),
}


@pytest.mark.requirement("F26", "F29", "F31", "F33")
@pytest.mark.parametrize("case", TRANSIENT)
def test_what_may_pass_is_tried_again_by_its_row_of_the_table(room: Room, chat: ChatServer, case: str):
    """F26: each of these waits for a retry. F29, F31: as long as the first entry of its error type's row says, up to a
    tenth more. F33: `eligible_at` says until when, in the retry lane. And then it succeeds."""
    answer, error, delay = TRANSIENT[case]
    chat.then(answer, answers.text("at last"))
    handle = room.submit()
    room.run()
    waiting, (attempt,) = room.record(handle), room.attempts(handle)
    assert (waiting.state, waiting.lane, waiting.attempt) == (TaskState.PENDING, Lane.RETRY, 1)
    assert (attempt.error_class or "").rpartition(".")[2] == error
    assert attempt.finished_at is not None
    wait = (waiting.eligible_at - attempt.finished_at).total_seconds()
    assert delay - 0.5 <= wait <= delay * 1.1 + 0.5
    room.run(with_retries=True)
    assert handle.result(timeout=5) == "at last"


@pytest.mark.requirement("F26", "F31")
@pytest.mark.parametrize("comments", [False, True])
def test_silence_is_a_network_timeout(chat: ChatServer, sqlite_url: str, comments: bool):
    """F26, F31: no text in time is NetworkTimeout, transient; comments that keep the connection alive are no text."""
    app = App("sqlite:///:memory:", preset="asynctaskflow")
    task = register(app, SummarizeSettings(base_url=chat.base_url, timeout=0.3))
    chat.then(answers.silence(chat, comments=comments))
    with override(app, url=sqlite_url):
        handle = task.enqueue("A text.")
        drain(app, raise_on_failure=False)
        (attempt,) = app.tasks.attempts(handle.id)
        assert attempt.error_class == "headrace.contrib.summarize.errors.NetworkTimeout"
        assert app.tasks.get(handle.id).state is TaskState.PENDING


@pytest.mark.parametrize("form", ["900", "date"])
def test_retry_after_is_a_lower_bound(room: Room, chat: ChatServer, form: str):
    """The service asks for fifteen minutes, in either form of the header; the table's minute is less."""
    from datetime import UTC
    from email.utils import format_datetime

    header = format_datetime(datetime.now(UTC) + timedelta(seconds=902), usegmt=True) if form == "date" else form
    chat.then(answers.status(429, retry_after=header))
    handle = room.submit()
    room.run()
    (attempt,) = room.attempts(handle)
    assert attempt.finished_at is not None
    wait = (room.record(handle).eligible_at - attempt.finished_at).total_seconds()
    assert 890 <= wait <= 1000


@pytest.mark.requirement("F27")
@pytest.mark.parametrize("code", [400, 401, 403, 404])
def test_what_will_not_pass_is_a_dead_letter_at_once(room: Room, chat: ChatServer, code: int):
    """F27: one call, one attempt, dead letter; and the breaker does not count it as a fault of the service."""
    chat.otherwise = answers.status(code)
    handle = room.submit()
    room.run(with_retries=True)
    record = room.record(handle)
    assert (record.state, record.dead_letter, record.attempt) == (TaskState.FAILED, True, 1)
    assert len(chat.asked) == 1
    assert f"answered {code} (you get {code})" in (record.error_message or "")


@pytest.mark.requirement("F32")
def test_three_retries_and_then_a_dead_letter(room: Room, chat: ChatServer):
    """F32: the count goes on over re-queues: four calls in all, one for each attempt, none repeated within one. And
    each waits by the next entry of the row."""
    due: list[datetime] = []

    def busy(handler: Any) -> None:
        due.append(room.record(handle).eligible_at)  # of this attempt: it is under way
        answers.status(503)(handler)

    chat.otherwise = busy
    handle = room.submit()
    room.run(with_retries=True)
    record, attempts = room.record(handle), room.attempts(handle)
    assert (record.state, record.dead_letter, record.attempt) == (TaskState.FAILED, True, 4)
    assert len(chat.asked) == 4
    ends = [attempt.finished_at for attempt in attempts if attempt.finished_at]
    waits = [(at - end).total_seconds() for at, end in zip(due[1:], ends[:-1], strict=True)]
    assert all(least - 0.5 <= wait <= least * 1.1 + 0.5 for wait, least in zip(waits, (5, 10, 30), strict=True)), waits


@pytest.mark.requirement("F2", "F24", "F36")
def test_an_open_breaker_makes_no_call_and_charges_nothing(room: Room, chat: ChatServer):
    """Ten failures open it (F2; F36: no call is made from then on); what is taken then goes back uncharged (F24), and
    runs once it is closed."""
    chat.otherwise = answers.status(503)
    for _ in range(10):
        room.submit()
    room.run()
    assert len(chat.asked) == 10
    assert room.app.breaker("openrouter").status is BreakerStatus.OPEN
    late = room.submit()
    room.run()
    record = room.record(late)
    assert (record.state, record.attempt) == (TaskState.PENDING, 0)
    assert len(chat.asked) == 10
    room.app.breakers.reset("openrouter")
    chat.otherwise = answers.text("open again")
    room.run(with_retries=True)
    assert late.result(timeout=5) == "open again"


# --- the key ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F72")
@pytest.mark.parametrize("key", [None, "", "   ", "sk-broken\nkey", "sk-caf\u00e9"])
def test_without_a_key_it_fails_for_good_and_says_why(
    room: Room, chat: ChatServer, monkeypatch: pytest.MonkeyPatch, key: str | None
):
    """F72: a dead letter after one attempt, no call, and the variable named in the message."""
    monkeypatch.delenv("OPENROUTER_API_KEY")
    if key is not None:
        monkeypatch.setenv("OPENROUTER_API_KEY", key)
    handle = room.submit()
    room.run(with_retries=True)
    record = room.record(handle)
    assert (record.state, record.dead_letter, record.attempt) == (TaskState.FAILED, True, 1)
    assert "OPENROUTER_API_KEY" in (record.error_message or "")
    assert chat.asked == []
    assert "sk-" not in (record.error_message or "")


LEAKS: dict[str, Answer] = {
    "401 that quotes it": answers.status(401, quote_key=True),
    "429 that quotes it": answers.status(429, quote_key=True),
    "500 that quotes it": answers.status(500, quote_key=True),
    "an error in the stream that quotes it": answers.error_in_stream(502, quote_key=True),
    "a body that is no JSON": answers.body(f"<p>Bearer {KEY}</p>", content_type="text/html", status=400),
    "an answer that repeats it": answers.text(f"the key is {KEY}"),
    "an answer that repeats it in pieces": answers.text(["the key is ", KEY[:9], KEY[9:30], f"{KEY[30:]}, and more"]),
    "cut": answers.cut(),
    "cut at once": answers.cut_at_once(),
    "malformed": answers.malformed(f'{{"{KEY}'),
}


@pytest.mark.requirement("F71")
@pytest.mark.parametrize("case", LEAKS)
def test_the_key_is_nowhere(room: Room, chat: ChatServer, case: str, caplog: pytest.LogCaptureFixture):
    """F71: with every logger at its loudest, whatever the service answers: not in a log, nor in an error or traceback,
    nor in any column of any table."""
    chat.otherwise = LEAKS[case]
    with caplog.at_level(logging.DEBUG):
        handle = room.submit()
        room.run()
    assert len(chat.asked) == 1
    assert chat.asked[0].headers["authorization"] == f"Bearer {KEY}"  # else the rest proves nothing
    assert KEY not in caplog.text
    assert KEY not in _everything(room.app.url)
    assert KEY[9:30] not in _everything(room.app.url)
    assert str(handle.id) in _everything(room.app.url)


def _everything(url: str) -> str:
    """Every value of every table."""
    import sqlite3

    connection = sqlite3.connect(url.removeprefix("sqlite:///"))
    try:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return "\n".join(repr(row) for table in tables for row in connection.execute(f'SELECT * FROM "{table}"'))
    finally:
        connection.close()


@pytest.mark.requirement("F71")
def test_the_key_is_in_no_setting_and_no_repr(room: Room, chat: ChatServer):
    """F71: what is printed of the parts shows no key: settings hold the name of a variable."""
    from headrace.contrib.summarize.chat import ChatService

    async def shown() -> str:
        async with ChatService(SummarizeSettings(base_url=chat.base_url), KEY) as service:
            return repr(service)

    printed = asyncio.run(shown()) + repr(SummarizeSettings.from_environment()) + repr(room.task) + repr(room.app)
    assert KEY not in printed
    assert "OPENROUTER_API_KEY" in printed


# --- settings -----------------------------------------------------------------------------------------------------


@pytest.mark.requirement("F70")
def test_the_settings_of_the_service_come_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    """F70: the defaults of the specification, each changed by its variable, the key read when it is needed."""
    found = SummarizeSettings.from_environment()
    assert found.base_url == "https://openrouter.ai/api/v1"
    assert found.endpoint == "https://openrouter.ai/api/v1/chat/completions"
    assert found.model == "meta-llama/llama-3.2-90b-text-preview"
    assert found.timeout == 30
    assert found.read_key() == KEY
    monkeypatch.setenv("OPENROUTER_BASE_URL", "http://localhost:9/v1/")
    monkeypatch.setenv("OPENROUTER_MODEL", "some/other")
    monkeypatch.setenv("OPENROUTER_TIMEOUT", "7.5")
    monkeypatch.setenv("OPENROUTER_API_KEY", " another ")
    found = SummarizeSettings.from_environment()
    assert (found.endpoint, found.model, found.timeout) == (
        "http://localhost:9/v1/chat/completions",
        "some/other",
        7.5,
    )
    assert found.read_key() == "another"


@pytest.mark.parametrize(
    "settings",
    [
        {"base_url": "openrouter.ai"},
        {"base_url": "https://me:secret@host/v1"},
        {"model": " "},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"chunk_tokens": 10, "summary_tokens": 10},
    ],
)
def test_impossible_settings_are_refused_and_say_nothing_secret(settings: dict[str, Any]):
    with pytest.raises(SettingsError) as refused:
        SummarizeSettings(**settings)
    assert "secret" not in str(refused.value)


def test_a_time_limit_that_is_no_number_is_refused():
    with pytest.raises(SettingsError, match="OPENROUTER_TIMEOUT"):
        SummarizeSettings.from_environment({"OPENROUTER_TIMEOUT": "soon"})


def test_without_the_preset_it_brings_the_same_policy_along(chat: ChatServer):
    from headrace.presets import PRESETS

    task = register(App("sqlite:///:memory:"), SummarizeSettings(base_url=chat.base_url))
    preset = PRESETS["asynctaskflow"].values["retry"]
    assert {**task.retry.to_dict(), "max_age": None} == preset.to_dict()
    new = task.prepare("A text.")
    assert (new.max_age, new.max_attempts, new.dead_letter) == (3600.0, 4, True)
    assert loads(new.arguments)
