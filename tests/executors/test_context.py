"""`current` outside of a task, and the outcomes that no conformance case reaches."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from headrace.core.errors import BreakerOpen, NoCurrentTask, SoftTimeLimitExceeded, Transient
from headrace.core.outcome import Completed, Failed, Released
from headrace.core.retry import Retry
from headrace.executors.context import Context, QuietChannel, current
from headrace.executors.invocation import (
    MESSAGE_LIMIT,
    error_info,
    outcome_of_exception,
    outcome_of_value,
    resolve,
)
from headrace.testing.executor_conformance.stand import claimed
from headrace.testing.executor_conformance.tasks import FunctionEntry, source


@pytest.mark.parametrize("name", ["task_id", "attempt", "cancelled", "log", "progress"])
def test_outside_of_a_task_there_is_no_current(name: str) -> None:
    with pytest.raises(NoCurrentTask, match="inside a task"):
        getattr(current, name)
    assert "no task" in repr(current)


@pytest.mark.parametrize("act", ["step", "sleep", "wait", "call", "job"])
def test_a_context_without_a_ledger_says_so(act: str) -> None:
    context = Context(claimed(7, "echo", job=3), channel=QuietChannel(), options={}, worker="w")
    arguments = {"step": ("name", echo), "sleep": (1,), "wait": ("paid",), "call": (None,), "job": ()}[act]
    with pytest.raises(NoCurrentTask, match=rf"current\.{act} needs a ledger, and what runs task 7 \(echo\)"):
        getattr(context, act)(*arguments)


def test_a_task_of_no_job_has_no_current_job() -> None:
    context = Context(claimed(7, "echo"), channel=QuietChannel(), options={}, worker="w")
    with pytest.raises(NoCurrentTask, match=r"task 7 \(echo\) belongs to none; enqueue it as a job: task\.s"):
        _ = context.job


def echo() -> None: ...


def test_a_result_at_the_limit_is_kept_and_above_it_refused() -> None:
    entry = FunctionEntry("echo", echo)
    context = Context(claimed(1, "echo"), channel=QuietChannel(), options={}, worker="w")
    fits = outcome_of_value("x" * 98, entry, Retry(), context=context, result_limit=100)
    assert fits == Completed(result='"' + "x" * 98 + '"')
    for value in ("x" * 99, "€" * 33):  # 101 bytes each
        refused = outcome_of_value(value, entry, Retry(), context=context, result_limit=100)
        assert isinstance(refused, Failed)
        assert "101 bytes" in refused.error.message
    assert isinstance(outcome_of_value("€" * 32, entry, Retry(), context=context, result_limit=100), Completed)


def test_a_group_that_holds_the_soft_limit_is_a_soft_timeout() -> None:
    inner = ExceptionGroup("inner", [SoftTimeLimitExceeded("now")])
    outcome = outcome_of_exception(ExceptionGroup("outer", [ValueError(), inner]), Retry())
    assert isinstance(outcome, Failed)
    assert outcome.signature.kind == "soft_timeout"


def test_the_breakers_own_instant_is_the_delay() -> None:
    outcome = outcome_of_exception(BreakerOpen("mail", until=datetime.now(UTC) + timedelta(seconds=50)), Retry())
    assert isinstance(outcome, Released)
    assert 40 < outcome.delay <= 50


def test_the_policy_classifies_in_the_process_that_ran_it() -> None:
    def classify(error: BaseException) -> Any:
        return "permanent" if "no" in str(error) else None

    outcome = outcome_of_exception(ValueError("no"), Retry(classify=classify))
    assert isinstance(outcome, Failed)
    assert outcome.signature.verdict == "permanent"
    transient = outcome_of_exception(Transient("later", retry_after=9), Retry())
    assert isinstance(transient, Failed)
    assert (transient.signature.verdict, transient.signature.retry_after) == ("transient", 9)


def test_a_long_message_keeps_both_ends() -> None:
    info = error_info(ValueError("begin" + "x" * 100_000 + "end"))
    assert info.message.startswith("begin")
    assert info.message.endswith("end")
    assert len(info.message) < MESSAGE_LIMIT + 100


@pytest.mark.requirement("A36")
def test_resolving_never_raises() -> None:
    unknown = resolve(source, "nobody", {}, Retry())
    assert getattr(unknown, "unknown", False)
    missing: Any = resolve(source, "no_such_module.f", {}, Retry())
    assert missing.outcome.signature.verdict == "permanent"
    assert "no_such_module" in missing.outcome.error.message
