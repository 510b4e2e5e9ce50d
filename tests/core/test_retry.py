"""Which failures are tried again. The waiting is in test_backoff."""

import json
import pickle
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.core.errors import OptionError, Permanent, SoftTimeLimitExceeded, Transient
from headrace.core.payload import dumps
from headrace.core.retry import ASYNCTASKFLOW_TABLE, DEFAULT_RETRY, ErrorSignature, Retry, should_retry


class ShopError(Exception):
    pass


class SoldOut(ShopError):
    pass


class HttpError(Exception):
    def __init__(self, status_code: int, **attributes: Any) -> None:
        super().__init__(str(status_code))
        self.status_code = status_code
        self.__dict__.update(attributes)


def retried(exc: BaseException, policy: Retry, *, attempt: int = 1) -> bool:
    return should_retry(policy, error=ErrorSignature.of(exc, policy), attempt=attempt)


def test_defaults_of_a_bare_task() -> None:
    assert (DEFAULT_RETRY.max_attempts, DEFAULT_RETRY.backoff, DEFAULT_RETRY.jitter) == (4, "exponential", 0.1)
    assert (DEFAULT_RETRY.base, DEFAULT_RETRY.cap) == (timedelta(seconds=1), timedelta(seconds=600))
    for exc in (ValueError(), OSError(), SoldOut(), TimeoutError(), HttpError(404)):
        assert retried(exc, DEFAULT_RETRY)
    for exc in (Permanent("no"), SystemExit(1), KeyboardInterrupt()):
        assert not retried(exc, DEFAULT_RETRY)


@pytest.mark.requirement("D58")
@pytest.mark.parametrize("max_attempts", [1, 2, 3, 10])
def test_max_attempts_counts_the_first_execution(max_attempts: int) -> None:
    """D58: a task that always fails is executed exactly max_attempts times."""
    policy, executions = Retry(max_attempts=max_attempts), 1
    while retried(ValueError(), policy, attempt=executions):
        executions += 1
    assert executions == max_attempts


def test_only_connection_and_os_errors_under_that_policy() -> None:
    """ConnectionError, OSError and their subclasses are retried; nothing else is."""
    policy = Retry(on=(ConnectionError, OSError))
    for exc in (ConnectionError(), OSError(), ConnectionResetError(), FileNotFoundError(), BrokenPipeError()):
        assert retried(exc, policy)
    for other in (ValueError(), RuntimeError(), KeyError(), MemoryError(), AssertionError(), ShopError()):
        assert not retried(other, policy)


@pytest.mark.requirement("R10")
def test_three_retries_and_the_fourth_failure_is_final() -> None:
    """R10: attempts 1 to 3 are followed by another, the fourth is not."""
    assert [retried(ConnectionError(), Retry(), attempt=n) for n in (1, 2, 3, 4)] == [True, True, True, False]


@pytest.mark.requirement("D55")
@pytest.mark.parametrize("never", [ValueError, "ValueError", "builtins.ValueError"])
def test_never_on_wins_and_subclasses_match(never: Any) -> None:
    """D55: empty `on` is all; `never_on` wins over `on`; UnicodeError, a subclass of ValueError, matches; short names
    do (T-D8).
    """
    for policy in (Retry(never_on=(never,)), Retry(on=(ValueError, KeyError), never_on=(never,))):
        assert not retried(ValueError(), policy)
        assert not retried(UnicodeError(), policy)
        assert retried(KeyError(), policy)
    assert retried(ValueError(), Retry(on=(Exception,), never_on=(UnicodeError,)))
    assert not retried(RuntimeError(), Retry(on=(ValueError, KeyError)))


@pytest.mark.requirement("D54")
def test_a_policy_from_class_paths() -> None:
    """D54: attempts, both backoffs, base, cap, and the two lists as class paths, which decide as the classes do."""
    path = f"{SoldOut.__module__}.SoldOut"
    for backoff in ("fixed", "exponential"):
        policy = Retry(max_attempts=3, backoff=backoff, base=60, cap=3600, on=("builtins.Exception",), never_on=(path,))  # type: ignore[arg-type]
        assert retried(ShopError(), policy, attempt=2)
        assert not retried(SoldOut(), policy)
        assert policy == replace(policy, on=(Exception,), never_on=(SoldOut,))


@pytest.mark.parametrize("alias", ["asyncio.TimeoutError", "socket.timeout", "IOError", "json.JSONDecodeError"])
def test_a_class_written_by_an_alias_matches(alias: str) -> None:
    exc = json.JSONDecodeError("x", "", 0) if "JSON" in alias else TimeoutError()
    assert retried(exc, Retry(on=(alias,)))
    assert not retried(exc, Retry(never_on=(alias,)))


def test_one_class_need_not_stand_in_a_tuple() -> None:
    assert Retry(on=ValueError) == Retry(on=("ValueError",))  # type: ignore[arg-type]


def test_transient_is_retried_whatever_on_lists_but_not_against_never_on() -> None:
    assert retried(Transient(), Retry(on=(KeyError,)))
    assert not retried(Transient(), Retry(never_on=(Transient,)))


def test_permanent_beats_everything() -> None:
    assert not retried(Permanent(), Retry(on=(Permanent,), classify=lambda _: "transient"))


def test_a_users_function_classifies() -> None:
    policy = Retry(on=(KeyError,), classify=lambda exc: "permanent" if "gone" in str(exc) else None)
    assert not retried(KeyError("gone"), policy)
    assert retried(KeyError("busy"), policy)
    assert retried(ValueError(), Retry(on=(KeyError,), classify=lambda _: "transient"))


def test_a_broken_classifier_does_not_hide_the_error() -> None:
    def broken(exc: BaseException) -> None:
        raise ZeroDivisionError

    exc = ValueError("the real one")
    assert retried(exc, Retry(classify=broken))
    assert "ZeroDivisionError" in exc.__notes__[0]
    assert retried(exc, Retry(classify=lambda _: "nonsense"))  # type: ignore[arg-type, return-value]


@pytest.mark.requirement("F28")
def test_statuses_decide_under_the_http_classifier() -> None:
    """F28: what is unclassified (a bug, an unlisted status) is retried, on the Default schedule."""
    policy = Retry(classify="http", backoff="table", table=ASYNCTASKFLOW_TABLE)
    for status in (429, 503, 500, 502, 504):
        assert retried(HttpError(status), policy)
    for status in (400, 401, 403, 404):
        assert not retried(HttpError(status), policy)
    for unclassified in (RuntimeError(), HttpError(418)):
        assert retried(unclassified, policy)
        error_type = ErrorSignature.of(unclassified, policy).error_type
        assert policy.schedule_for(error_type) == (5.0, 15.0, 60.0, 300.0)


@pytest.mark.parametrize("kind", ["soft_timeout", "timeout"])
def test_timeouts_follow_their_own_flag(kind: Any) -> None:
    error = ErrorSignature(kind=kind)
    assert should_retry(Retry(on=(KeyError,)), error=error, attempt=1)
    assert not should_retry(Retry(timeouts=False), error=error, attempt=1)
    assert not should_retry(Retry(max_attempts=2), error=error, attempt=2)


@pytest.mark.parametrize("kind", ["lost", "killed", "oom"])
def test_a_process_that_is_gone_follows_lost(kind: Any) -> None:
    error = ErrorSignature(kind=kind)
    assert should_retry(Retry(on=(KeyError,)), error=error, attempt=1)
    assert not should_retry(Retry(lost="fail"), error=error, attempt=1)
    assert not should_retry(Retry(max_attempts=2), error=error, attempt=2)


def test_the_soft_limit_is_known_by_its_exception() -> None:
    assert ErrorSignature.of(SoftTimeLimitExceeded(), Retry()).kind == "soft_timeout"
    assert not retried(SoftTimeLimitExceeded(), Retry(timeouts=False))
    assert not retried(SoftTimeLimitExceeded(), Retry(never_on=(SoftTimeLimitExceeded,)))


def test_a_table_may_list_exception_classes() -> None:
    path = f"{ShopError.__module__}.ShopError"
    policy = Retry(backoff="table", table={path: [7], "Default": [1]})
    assert ErrorSignature.of(SoldOut(), policy).error_type == path
    assert ErrorSignature.of(HttpError(429), policy).error_type == "RateLimitError"


def test_a_signature_carries_what_a_child_must_report() -> None:
    error = ErrorSignature.of(HttpError(429, retry_after=30), Retry(classify="http"))
    assert (error.verdict, error.error_type, error.retry_after) == ("transient", "RateLimitError", 30.0)
    assert error.mro[-3:] == ("builtins.Exception", "builtins.BaseException", "builtins.object")
    assert pickle.loads(pickle.dumps(error)) == error


POLICIES = st.builds(
    Retry,
    max_attempts=st.integers(1, 1000),
    backoff=st.sampled_from(["exponential", "fixed"]),
    base=st.timedeltas(timedelta(0), timedelta(seconds=600)),
    cap=st.floats(600, 1e6),
    jitter=st.just("full") | st.floats(0, 1),
    on=st.lists(st.sampled_from([ValueError, "OSError", SoldOut, "shop.errors.Gone"])).map(tuple),
    never_on=st.lists(st.sampled_from([KeyError, "asyncio.TimeoutError"])).map(tuple),
    classify=st.sampled_from([None, "http"]),
    max_age=st.none() | st.integers(0, 10**6),
    dead_letter=st.booleans(),
    timeouts=st.booleans(),
    lost=st.sampled_from(["retry", "fail"]),
)


@given(POLICIES)
def test_a_policy_survives_the_store(policy: Retry) -> None:
    text = dumps(policy.to_dict())
    again = Retry.from_dict(json.loads(text))
    assert again == policy
    assert hash(again) == hash(policy)
    assert dumps(again.to_dict()) == text
    assert pickle.loads(pickle.dumps(policy)) == policy


def test_a_table_survives_the_store_and_newer_fields_are_ignored() -> None:
    policy = Retry(backoff="table", table=ASYNCTASKFLOW_TABLE)
    assert Retry.from_dict({**json.loads(dumps(policy.to_dict())), "from_the_future": 1}) == policy
    assert Retry(backoff="table", table=[1, timedelta(seconds=2)]) == Retry(
        backoff="table", table={"Default": (1.0, 2.0)}
    )
    assert Retry.from_dict({}) == Retry()
    assert dumps(Retry(jitter=0).to_dict()) == dumps(Retry(jitter=0.0).to_dict())


def test_a_classifying_function_cannot_be_stored() -> None:
    policy = Retry(classify=lambda _: None)
    assert not policy.storable
    with pytest.raises(OptionError, match="where the task is defined"):
        policy.to_dict()
    assert Retry(classify="http").storable


@pytest.mark.parametrize(
    "options",
    [
        {"max_attempts": 0},
        {"max_attempts": True},
        {"max_attempts": 2.5},
        {"backoff": "linear"},
        {"base": -1},
        {"cap": float("nan")},
        {"jitter": -0.1},
        {"jitter": 1.1},
        {"jitter": "half"},
        {"jitter": True},
        {"jitter": float("nan")},
        {"on": ("NoSuchBuiltin",)},
        {"on": (int,)},
        {"on": ("int",)},
        {"on": ("a..b",)},
        {"never_on": (ValueError(),)},
        {"classify": "grpc"},
        {"max_age": -1},
        {"lost": "ignore"},
        {"timeouts": "no"},
        {"dead_letter": 1},
        {"base": 700},
        {"table": [1]},
        {"backoff": "table"},
        {"backoff": "table", "table": {"RateLimitError": [1]}},
        {"backoff": "table", "table": {"Default": []}},
        {"backoff": "table", "table": [-1]},
        {"backoff": "table", "table": 5},
        {"backoff": "table", "table": {"Default": "12"}},
        {"on": 5},
    ],
)
def test_impossible_policies_are_refused_by_name(options: dict[str, Any]) -> None:
    with pytest.raises(OptionError) as refusal:
        Retry(**options)
    assert any(name in str(refusal.value) for name in options)
