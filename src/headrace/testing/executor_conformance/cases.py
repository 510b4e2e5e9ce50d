"""The cases. Each is an async function of a Stand; `needs` says what an executor must be able to do for it."""

import asyncio
import signal
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from headrace.core import payload
from headrace.core.outcome import Cancelled, Completed, Failed, Lost, Released, Retried, Snoozed
from headrace.executors.base import Ran
from headrace.testing.executor_conformance.stand import CEILING, Stand

type Case = Callable[[Stand], Awaitable[None]]
type Need = Literal["function", "limits", "interrupt", "wake", "kill", "child", "any"]

# function: runs Python functions; limits: keeps the hard limit by itself; interrupt: can raise into running bytecode;
# wake: can end a wait outside of Python; kill: can end what does not listen; child: does so in processes of its own.
_CASES: list[tuple[frozenset[Need], Case]] = []
# Long enough that a busy machine enters the task before it, short enough for a test.
SOON = 0.3


def case(*needs: Need) -> Callable[[Case], Case]:
    def keep(function: Case) -> Case:
        _CASES.append((frozenset(needs), function))
        return function

    return keep


def cases_for(*able: Need) -> list[Case]:
    """The cases that an executor with these abilities must pass."""
    return [function for needs, function in _CASES if needs <= {"any", *able}]


def value_of(ran: Ran) -> Any:
    assert isinstance(ran.outcome, Completed), ran
    assert ran.outcome.result is not None
    return payload.loads(ran.outcome.result)


def failure_of(ran: Ran) -> Failed:
    assert isinstance(ran.outcome, Failed), ran
    return ran.outcome


# --- every executor ---------------------------------------------------------------------------------------------------


@case("any")
async def success_is_completed(stand: Stand) -> None:
    ran = await stand.run("succeed" if stand.command else "echo", **({} if stand.command else {"value": 1}))
    assert isinstance(ran.outcome, Completed), ran
    assert ran.ran_for is not None
    await stand.until(lambda: not stand.occupied)


@case("wake")
async def stop_ends_a_waiting_attempt(stand: Stand) -> None:
    launch, task = await stand.start("sleep")
    began = time.monotonic()
    await stand.executor.stop(launch.ref, grace=CEILING, reason="user")
    ran = await asyncio.wait_for(task, CEILING)
    assert ran.outcome == Cancelled(reason="user")
    assert ran.ran_for is not None
    assert time.monotonic() - began < CEILING / 2, "it waited for the end of the grace"
    await stand.until(lambda: not stand.occupied)


@case("any")
async def stop_of_what_is_not_here_is_ignored(stand: Stand) -> None:
    launch = stand.launch("sleep")
    await stand.executor.stop(launch.ref, grace=0.0)
    assert stand.executor.free() > 0


@case("limits")
async def hard_limit_is_a_timeout(stand: Stand) -> None:
    began = time.monotonic()
    failed = failure_of(await stand.run("sleep", hard=SOON))
    assert failed.signature.kind == "timeout"
    assert "hard limit" in failed.error.message
    assert time.monotonic() - began >= SOON


@case("limits")
async def neighbours_of_a_timeout_are_unaffected(stand: Stand) -> None:
    victim = asyncio.ensure_future(stand.run("sleep", hard=SOON))
    neighbours = [asyncio.ensure_future(stand.run("succeed" if stand.command else "echo")) for _ in range(6)]
    assert failure_of(await victim).signature.kind == "timeout"
    for neighbour in neighbours:
        assert isinstance((await neighbour).outcome, Completed)


@case("kill")
async def hard_limit_ends_what_burns_the_processor(stand: Stand) -> None:
    assert failure_of(await stand.run("spin", hard=SOON)).signature.kind == "timeout"
    assert isinstance((await stand.run("succeed" if stand.command else "echo")).outcome, Completed)


@case("kill")
async def stop_ends_the_stubborn_by_force(stand: Stand) -> None:
    launch, task = await stand.start("stubborn")
    await stand.executor.stop(launch.ref, grace=0.2, reason="user")
    ran = await asyncio.wait_for(task, CEILING)
    assert isinstance(ran.outcome, Cancelled), ran
    assert ran.outcome.reason == "user"


# --- executors of functions -------------------------------------------------------------------------------------------


@case("function")
async def arguments_arrive_unchanged(stand: Stand) -> None:
    values = {"words": "quotes \" ' \\ and\nlines\t€ 𝄞 \x7f '; DROP", "n": [1, -2.5, None, True, {"ü": "\u2028"}]}
    assert value_of(await stand.run("echo", **values)) == values


@case("function")
async def the_task_knows_itself(stand: Stand) -> None:
    launch = stand.launch("who", options={"metadata": {"tenant": "a"}}, claim={"attempt": 2, "claim_no": 9, "job": 77})
    seen = value_of(await stand.executor.run(launch))
    claim = launch.claim
    wanted = {
        "task_id": claim.id,
        "claim_no": 9,
        "attempt": 3,
        "max_attempts": 4,
        "name": claim.name,
        "queue": "default",
        "job_id": 77,
        "run_no": 1,
        "worker": "stand",
        "metadata": {"tenant": "a"},
        "cancelled": False,
        "injected": claim.id,
    }
    assert {key: seen[key] for key in wanted} == wanted
    assert {seen.get("in_subtask", claim.id), seen.get("in_thread", claim.id)} == {claim.id}


@case("function")
async def words_reach_the_channel_before_the_outcome(stand: Stand) -> None:
    launch = stand.launch("say")
    await stand.executor.run(launch)
    lines = stand.channel.lines[launch.ref]
    assert [line.message for line in lines][:2] == ["first", "second"]
    assert (lines[0].fields, lines[0].level, lines[1].level) == ({"part": 1}, "info", "warning")
    assert abs(lines[0].at - time.time()) < CEILING
    progress = stand.channel.values[launch.ref]
    assert (progress.value, progress.total, progress.message) == (3, 10, "third of ten")
    assert stand.channel.heartbeats == [launch.ref]
    assert stand.channel.streams[launch.ref] == ['{"value":[1,null]}', '"second"']


@case("function")
async def an_error_is_data(stand: Stand) -> None:
    failed = failure_of(await stand.run("raise", what="error"))
    assert failed.error.error_class == "builtins.ValueError"
    assert failed.error.message == "broken \\x00 text \\udc80"
    assert failed.error.traceback is not None
    assert "_raise" in failed.error.traceback
    assert "\0" not in failed.error.traceback
    failed.error.traceback.encode()
    assert failed.signature.mro[:2] == ("builtins.ValueError", "builtins.Exception")


@case("function")
async def whatever_is_raised_is_a_failure(stand: Stand) -> None:
    for what, error_class in (
        ("exit", "builtins.SystemExit"),
        ("interrupt", "builtins.KeyboardInterrupt"),
        ("cancelled", "asyncio.exceptions.CancelledError"),
        ("unprintable", "headrace.testing.executor_conformance.tasks._Unprintable"),
        ("huge", "builtins.ValueError"),
    ):
        failed = failure_of(await stand.run("raise", what=what))
        assert failed.error.error_class == error_class
        assert len(failed.error.message) < 20_000
        assert len(failed.error.traceback or "") < 100_000
    assert failure_of(await stand.run("raise", what="permanent")).signature.verdict == "permanent"
    assert isinstance((await stand.run("echo")).outcome, Completed), "the executor is unharmed"


@case("function")
async def an_open_breaker_gives_the_task_back(stand: Stand) -> None:
    ran = await stand.run("raise", what="breaker")
    assert isinstance(ran.outcome, Released)
    assert ran.outcome.delay == 7.5


@case("function")
async def returned_control_values_are_outcomes(stand: Stand) -> None:
    assert (await stand.run("give", what="snooze")).outcome == Snoozed(delay=30.0)
    assert (await stand.run("give", what="retry")).outcome == Retried(delay=12.0, message="not yet")
    cancelled = (await stand.run("give", what="cancel")).outcome
    assert isinstance(cancelled, Cancelled)
    assert cancelled.message == "enough"
    assert failure_of(await stand.run("give", what="bad snooze")).error.error_class == "headrace.OptionError"


@case("function")
async def a_result_that_cannot_be_stored_is_a_failure(stand: Stand) -> None:
    for what, words in (("object", "object"), ("nan", "$.score"), ("nested", "nested"), ("huge", "limit")):
        failed = failure_of(await stand.run("give", what=what))
        assert failed.error.error_class == "headrace.PayloadError", failed
        assert words in failed.error.message
        assert failed.signature.verdict == "permanent"
    assert isinstance((await stand.run("echo")).outcome, Completed), "the executor is unharmed"


@case("function")
async def arguments_that_do_not_load_fail_without_running(stand: Stand) -> None:
    for text in ("[]", "{broken"):
        ran = await stand.run("echo", text=text)
        assert failure_of(ran).signature.verdict == "permanent"
        assert ran.ran_for is None
    assert "what" in failure_of(await stand.run("raise")).error.message


@case("function")
async def printing_is_not_reporting(stand: Stand) -> None:
    assert value_of(await stand.run("print_outcome")) == "real"


@case("function", "interrupt")
async def soft_limit_is_raised_inside(stand: Stand) -> None:
    launch = stand.launch("clean_up", soft=SOON, hard=CEILING)
    began = time.monotonic()
    assert value_of(await stand.executor.run(launch)) == "cleaned up"
    assert time.monotonic() - began >= SOON
    assert stand.channel.said(launch.ref) == ["entered", "cleaned up"]


@case("function", "interrupt")
async def soft_limit_not_caught_is_a_soft_timeout(stand: Stand) -> None:
    failed = failure_of(await stand.run("spin", soft=SOON, hard=CEILING))
    assert failed.signature.kind == "soft_timeout"
    assert failed.error.error_class == "headrace.SoftTimeLimitExceeded"
    assert "_spin" in (failed.error.traceback or "")


@case("function", "interrupt")
async def a_cancelled_task_can_ask_and_answer(stand: Stand) -> None:
    launch, task = await stand.start("ask_whether_cancelled")
    await stand.executor.stop(launch.ref, grace=CEILING)
    assert value_of(await asyncio.wait_for(task, CEILING)) in ("cancelled=True", "asked")


@case("function", "limits")
async def limits_of_one_do_not_touch_another(stand: Stand) -> None:
    """A quick task with a long limit runs beside one that passes its soft limit."""
    slow = asyncio.ensure_future(stand.run("sleep", soft=SOON, hard=2 * SOON))
    quick = [await stand.run("echo", soft=60, hard=90) for _ in range(20)]
    assert all(isinstance(ran.outcome, Completed) for ran in quick)
    assert failure_of(await slow).signature.kind in ("soft_timeout", "timeout")


# --- executors whose children can be killed ---------------------------------------------------------------------------


@case("child")
async def hard_limit_ends_a_call_that_holds_the_interpreter(stand: Stand) -> None:
    """One call in C that looks at no signal: the soft limit cannot reach it, the hard limit ends it."""
    failed = failure_of(await stand.run("hold_the_interpreter", soft=SOON, hard=2 * SOON))
    assert failed.signature.kind == "timeout"
    assert isinstance((await stand.run("echo")).outcome, Completed)


@case("child")
async def soft_limit_ends_a_backtracking_expression(stand: Stand) -> None:
    assert failure_of(await stand.run("backtrack", soft=SOON, hard=CEILING)).signature.kind == "soft_timeout"


@case("child")
async def a_process_that_exits_is_lost_alone(stand: Stand) -> None:
    """Only the one inside user code is charged: those queued behind it in the same child complete."""
    for _ in range(40):
        await stand.run("echo")  # so short that batches form
    runs = [asyncio.ensure_future(stand.run("echo", n=n)) for n in range(20)]
    poison = asyncio.ensure_future(stand.run("exit_process", code=3))
    runs += [asyncio.ensure_future(stand.run("echo", n=n)) for n in range(20, 60)]
    lost = (await poison).outcome
    assert isinstance(lost, Lost)
    assert lost.error.exit_code == 3
    assert "code 3" in lost.error.message
    assert [value_of(await run)["n"] for run in runs] == list(range(60))


@case("child")
async def a_segmentation_fault_is_named(stand: Stand) -> None:
    lost = (await stand.run("segfault")).outcome
    assert isinstance(lost, Lost)
    assert lost.error.exit_code == -signal.SIGSEGV
    assert "SIGSEGV" in lost.error.message
    assert isinstance((await stand.run("echo")).outcome, Completed)


@case("child")
async def a_name_nobody_registered_goes_back(stand: Stand) -> None:
    ran = await stand.run("no_such_task")
    assert (ran.outcome, ran.unknown, ran.ran_for) == (Released(), True, None)


@case("child")
async def a_path_that_does_not_import_fails_clearly(stand: Stand) -> None:
    for path, words in (("no_such_module.task", "no_such_module"), ("os.no_such_function", "no_such_function")):
        ran = await stand.run(path)
        failed = failure_of(ran)
        assert words in failed.error.message
        assert failed.signature.verdict == "permanent"
        assert ran.ran_for is None
    assert isinstance((await stand.run("echo")).outcome, Completed), "the executor goes on"


@case("child")
async def coroutines_run_in_children_too(stand: Stand) -> None:
    assert value_of(await stand.run("echo_async", n=1)) == {"n": 1}
    assert value_of(await stand.run("clean_up_async", soft=SOON, hard=CEILING)) == "cleaned up"
    assert failure_of(await stand.run("sleep_async", hard=SOON)).signature.kind == "timeout"


@case("child")
async def resources_are_opened_once_per_child(stand: Stand) -> None:
    for _ in range(5):
        seen = value_of(await stand.run("opened_in"))
        assert seen["opened_in"] == seen["runs_in"]
