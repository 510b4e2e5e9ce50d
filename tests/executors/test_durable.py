"""Durable calls in every executor's way of running code, on a ledger that is a dictionary: names, values, suspensions.

That a real ledger keeps them, under kills, is proved in tests/worker and tests/guarantees.
"""

import asyncio
import contextlib
import dataclasses
import inspect
import pickle
from collections.abc import Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.client.arguments import Result
from headrace.core import payload
from headrace.core.errors import DurableError, PayloadError, TaskFailed, WaitTimeout
from headrace.core.outcome import Completed, Failed, Outcome, Suspended
from headrace.core.retry import Retry, should_retry
from headrace.core.task import ClaimedTask, Received
from headrace.executors.base import Launch
from headrace.executors.context import Context, QuietChannel, current, running
from headrace.executors.coroutine import Attempt
from headrace.executors.durable import LARGEST_STEP
from headrace.executors.invocation import Call, outcome_of_exception, outcome_of_value
from headrace.executors.suspension import Suspend
from headrace.testing.executor_conformance.stand import claimed
from headrace.testing.executor_conformance.tasks import FunctionEntry


@dataclasses.dataclass
class Kept:
    """A ledger and its Source."""

    stored: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    events: dict[tuple[str, str], Received] = dataclasses.field(default_factory=dict[Any, Any])
    calls: list[Any] = dataclasses.field(default_factory=list[Any])
    ends: dict[int, str] = dataclasses.field(default_factory=dict[int, str])
    clock: datetime = datetime(2030, 1, 1, tzinfo=UTC)
    reads: int = 0

    def ledger(self, claim: ClaimedTask, worker: str) -> "Kept":
        return self

    def block[T](self, name: str, work: Coroutine[Any, Any, T], /) -> T:
        with pytest.raises(StopIteration) as end:
            work.send(None)
        return end.value.value

    async def checkpoints(self) -> Mapping[str, str]:
        self.reads += 1
        return self.stored

    def decode(self, stored: str) -> str:
        return stored

    async def save(self, name: str, text: str) -> str:
        return self.stored.setdefault(name, text)

    async def now(self) -> datetime:
        return self.clock

    async def receive(self, step: str, *, event: str, key: str, timeout: float | None) -> Received | None:
        return self.events.get((event, key))

    async def spawn(self, name: str, call: Any) -> int:
        self.calls.append(call)
        self.stored[name] = str(100 + len(self.calls))
        return 100 + len(self.calls)

    async def ended(self, task: int) -> str | None:
        return self.ends.get(task)

    def succeeded(self, ended: str) -> bool:
        return "result" in payload.loads(ended)

    def result(self, ended: str) -> Any:
        found = payload.loads(ended)
        if "result" not in found:
            raise TaskFailed(found["failed"])
        return found["result"]

    def dump(self, function: Callable[..., Any], value: Any) -> str:
        return Result(function, name="task").dump(value)

    def load(self, function: Callable[..., Any], text: str) -> Any:
        return Result(function, name="task").load(text)

    def payload(self, text: str) -> Any:
        return payload.loads(text)

    def job(self) -> Any:
        return "job"


def attempt(kept: Kept, function: Callable[[], Any], *, claim_no: int = 1) -> Outcome:
    """As a child does for a `def`, and a loop for an `async def`."""
    claim = claimed(7, "task", claim_no=claim_no)
    entry, policy = FunctionEntry("task", function), Retry()
    context = Context(claim, channel=QuietChannel(), options={}, worker="w", source=kept)
    if inspect.iscoroutinefunction(function):

        async def drive() -> Outcome:
            loop = asyncio.get_running_loop()
            launch = Launch(claim=claim, entry=entry, options={}, policy=policy)
            driven = Attempt(launch, Call(entry, (), {}), context, limit=10**9, entered=0.0)
            token = running.set(context)
            driven.task = asyncio.Task(driven.drive(), loop=loop)
            running.reset(token)
            await driven.wait(loop)
            assert driven.outcome is not None
            return driven.outcome

        return asyncio.run(drive())
    token = running.set(context)
    try:
        return outcome_of_value(function(), entry, policy, context=context)
    except BaseException as error:
        return outcome_of_exception(error, policy)
    finally:
        running.reset(token)


def failure(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return f"{outcome.error.error_class}: {outcome.error.message}"


def both(asynchronous: Callable[[], Any], blocking: Callable[[], Any]) -> Any:
    return pytest.mark.parametrize("task", [asynchronous, blocking], ids=["async def", "def"])


# --- steps ------------------------------------------------------------------------------------------------------------

_ran: list[str] = []


def work(word: str) -> str:
    _ran.append(word)
    return word.upper()


async def work_later(word: str) -> str:
    await asyncio.sleep(0)
    return work(word)


async def two_steps_async() -> list[str]:
    return [await current.step("a", work, "one"), await current.step("b", work_later, word="two")]


def two_steps() -> list[str]:
    return [current.step("a", work, "one"), current.step("b", work, word="two")]


@both(two_steps_async, two_steps)
def test_a_step_runs_once_and_gives_its_value_ever_after(task: Callable[[], Any]) -> None:
    kept = Kept()
    _ran.clear()
    for claim_no in (1, 2, 3):
        assert attempt(kept, task, claim_no=claim_no) == Completed(result='["ONE","TWO"]')
    assert _ran == ["one", "two"]
    assert kept.stored == {"a": '"ONE"', "b": '"TWO"'}
    assert kept.reads == 2, "read once per attempt, and not in the first"


@dataclasses.dataclass
class Receipt:
    at: datetime
    items: tuple[int, ...]


def receipt() -> Receipt:
    return Receipt(datetime(2030, 1, 1, tzinfo=UTC), (1, 2))


def unannotated():  # type: ignore[no-untyped-def]
    return (1, 2)


def test_a_value_is_the_same_the_first_time_and_later() -> None:
    """By its annotation, and without one as JSON gives it back, already where it was made."""
    seen: list[Any] = []

    def task() -> None:
        seen.append((current.step("typed", receipt), current.step("plain", unannotated)))

    kept = Kept()
    for claim_no in (1, 2):
        assert attempt(kept, task, claim_no=claim_no) == Completed(result="null")
    assert seen == [(receipt(), [1, 2])] * 2


def test_a_step_that_fails_stores_nothing_and_runs_again() -> None:
    ran: list[int] = []

    def charge() -> str:
        ran.append(len(ran))
        if len(ran) == 1:
            raise ConnectionError("no answer")
        return "paid"

    kept = Kept()
    assert "ConnectionError: no answer" in failure(attempt(kept, lambda: current.step("charge", charge)))
    assert kept.stored == {}
    assert attempt(kept, lambda: current.step("charge", charge), claim_no=2) == Completed(result='"paid"')


def test_two_steps_of_one_name_are_refused() -> None:
    def task() -> None:
        for word in ("one", "two"):
            current.step("send", work, word)

    said = failure(attempt(Kept(), task))
    assert said.startswith("headrace.DurableError: task 7 (task): two durable calls have the name 'send'")


@pytest.mark.parametrize("name", ["", "x" * 201, "a\0b", "sleep:1", "wait:2", "call:1/ended", 7])
def test_a_name_that_cannot_be_is_refused(name: Any) -> None:
    assert failure(attempt(Kept(), lambda: current.step(name, work, "x"))).startswith("headrace.DurableError")


def test_a_value_that_cannot_be_kept_is_refused_by_the_steps_name() -> None:
    assert "PayloadError" in failure(attempt(Kept(), lambda: current.step("odd", lambda: {1, 2})))
    said = failure(attempt(Kept(), lambda: current.step("huge", lambda: "x" * LARGEST_STEP)))
    assert "step 'huge' returned 1,048,578 bytes" in said
    assert issubclass(PayloadError, Exception)


def test_a_coroutine_in_a_def_is_refused() -> None:
    said = failure(attempt(Kept(), lambda: current.step("later", work_later, "x")))
    assert "step 'later' gave something to await, and task 7 (task) is no `async def`" in said


def test_steps_side_by_side() -> None:
    async def task() -> list[str]:
        return await asyncio.gather(*(current.step(f"step {n}", work_later, f"w{n}") for n in range(5)))

    kept = Kept()
    for claim_no in (1, 2):
        assert attempt(kept, task, claim_no=claim_no) == Completed(result='["W0","W1","W2","W3","W4"]')
    assert len(kept.stored) == 5


# --- sleep, wait, call ------------------------------------------------------------------------------------------------


async def sleeps_async() -> str:
    await current.sleep(60)
    await current.sleep(timedelta(hours=1))
    await current.sleep(0)
    return "awake"


def sleeps() -> str:
    current.sleep(60)
    current.sleep(timedelta(hours=1))
    current.sleep(0)
    return "awake"


@both(sleeps_async, sleeps)
def test_a_sleep_is_counted_from_its_first_time(task: Callable[[], Any]) -> None:
    kept = Kept()
    assert attempt(kept, task) == Suspended(delay=60.0)
    kept.clock += timedelta(seconds=45)  # a restart, say
    assert attempt(kept, task, claim_no=2) == Suspended(delay=15.0)
    kept.clock += timedelta(seconds=15)
    assert attempt(kept, task, claim_no=3) == Suspended(delay=3600.0)
    kept.clock += timedelta(hours=1)
    assert attempt(kept, task, claim_no=4) == Completed(result='"awake"')
    assert set(kept.stored) == {"sleep:1", "sleep:2", "sleep:3"}


async def waits_async() -> Any:
    return await current.wait("paid", key="order-7", timeout=60)


def waits() -> Any:
    return current.wait("paid", key="order-7", timeout=60)


@both(waits_async, waits)
def test_a_wait_gives_the_payload_or_the_timeout(task: Callable[[], Any]) -> None:
    kept = Kept()
    assert attempt(kept, task) == Suspended(step="wait:1", delay=60.0)
    kept.events["paid", "order-7"] = Received(payload='{"amount":5}')
    assert attempt(kept, task, claim_no=2) == Completed(result='{"amount":5}')
    kept.events["paid", "order-7"] = Received(payload=None)
    said = failure(attempt(kept, task, claim_no=3))
    assert said == (
        "headrace.WaitTimeout: task 7 (task): the event 'paid' with the key 'order-7' did not come within 60 s"
    )
    assert issubclass(WaitTimeout, TimeoutError)


async def calls_async() -> Any:
    return [await current.call("child.s(1)"), await current.call("child.s(2)", name="second")]


def calls() -> Any:
    return [current.call("child.s(1)"), current.call("child.s(2)", name="second")]


@both(calls_async, calls)
def test_a_call_waits_for_its_child_and_keeps_what_it_came_to(task: Callable[[], Any]) -> None:
    kept = Kept()
    assert attempt(kept, task) == Suspended(task=101)
    assert attempt(kept, task, claim_no=2) == Suspended(task=101)
    assert kept.calls == ["child.s(1)"], "once"
    kept.ends[101] = '{"result":"one"}'
    assert attempt(kept, task, claim_no=3) == Suspended(task=102)
    kept.ends = {102: '{"failed":"boom"}'}  # history has forgotten the first one
    assert failure(attempt(kept, task, claim_no=4)) == "headrace.TaskFailed: boom"
    assert kept.stored["call:1/ended"] == '{"result":"one"}'
    assert "second/ended" not in kept.stored, "a child that failed may be run again by hand"
    kept.ends = {102: '{"result":"two"}'}
    assert attempt(kept, task, claim_no=5) == Completed(result='["one","two"]')


# --- a suspension on its way out --------------------------------------------------------------------------------------


def test_a_suspension_is_no_exception_that_code_catches() -> None:
    async def task() -> str:
        try:
            await current.sleep(5)
        except Exception:
            return "caught"
        return "slept"

    assert attempt(Kept(), task) == Suspended(delay=5.0)


def test_one_that_is_caught_is_an_error_at_the_next_call_and_at_the_end() -> None:
    async def goes_on() -> None:
        try:
            await current.sleep(5)
        except BaseException:
            await current.step("more", work, "x")

    def returns() -> str:
        with contextlib.suppress(BaseException):
            current.sleep(5)
        return "done"

    for task in (goes_on, returns):
        kept = Kept()
        said = failure(attempt(kept, task))
        assert "headrace.DurableError: task 7 (task) caught what 'sleep:1' raises" in said
        assert set(kept.stored) == {"sleep:1"}
    assert issubclass(DurableError, RuntimeError)


def test_what_runs_beside_a_suspended_call_does_not_go_on() -> None:
    """Its work would be done, and done again by the next attempt."""
    ended: list[str] = []

    async def slow() -> None:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    async def in_a_group() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(slow())
            await asyncio.sleep(0)
            group.create_task(_sleep_durably())

    async def gathered() -> None:
        await asyncio.gather(slow(), _sleep_durably())

    async def both_suspend() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_sleep_durably())
            group.create_task(_sleep_durably())

    for task in (in_a_group, gathered, both_suspend):
        assert attempt(Kept(), task) == Suspended(delay=5.0)
    assert ended == ["cancelled", "cancelled"]


async def _sleep_durably() -> None:
    await current.sleep(5)


async def _lost_later() -> None:
    _ = current.job


def _lost() -> None:
    _ = current.job


async def _twice_later() -> None:
    await current.step("send", work, "a")
    await current.step("send", work, "b")


def _twice() -> None:
    current.step("send", work, "a")
    current.step("send", work, "b")


@pytest.mark.parametrize("task", [_lost_later, _lost, _twice_later, _twice])
def test_what_is_written_wrongly_is_not_tried_again(task: Callable[[], Any]) -> None:
    """A name that is there twice, and a job that is not there, are so at the next attempt, too."""
    outcome = attempt(Kept(), task)
    assert failure(outcome).startswith(("headrace.NoCurrentTask: ", "headrace.DurableError: "))
    assert isinstance(outcome, Failed)
    assert not should_retry(Retry(), error=outcome.signature, attempt=1)


def test_a_failure_beside_a_suspension_is_a_failure() -> None:
    async def task() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(_sleep_durably())
            group.create_task(_fail())

    assert isinstance(attempt(Kept(), task), Failed)


async def _fail() -> None:
    raise ValueError("no")


def test_a_suspension_crosses_processes() -> None:
    for suspended in (Suspended(delay=1.5), Suspended(step="wait:1", delay=3.0), Suspended(task=9)):
        assert pickle.loads(pickle.dumps(suspended)) == suspended
    assert not issubclass(Suspend, Exception)
