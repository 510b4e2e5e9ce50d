"""Exceptions of any HTTP library are read by their shape."""

import asyncio
import urllib.error
from datetime import UTC, datetime, timedelta
from email.message import Message
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.core.classification import (
    class_path,
    classify_exception,
    classify_status,
    http_verdict,
    is_service_fault,
    mro_paths,
    retry_after_of,
    status_of,
)
from headrace.core.errors import Transient

NOW = datetime(2030, 1, 1, 12, 0, 0, tzinfo=UTC)


class HttpError(Exception):
    """Takes any attributes, like the errors of the libraries do."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__("http")
        self.__dict__.update(attributes)


class Falsy(SimpleNamespace):
    """The response of `requests` is false when its status is an error."""

    def __bool__(self) -> bool:
        return False


def foreign(path: str) -> type[Exception]:
    """A class that stands at `path`, and a subclass of it."""
    module, _, name = path.rpartition(".")
    base = type(name, (Exception,), {"__module__": module, "__qualname__": name})
    return type("Nearer", (base,), {})


@pytest.mark.requirement("F26")
@pytest.mark.parametrize("status", [429, 503, 500, 502, 504])
def test_transient_statuses(status: int) -> None:
    """F26, the statuses; the timeouts follow below."""
    assert classify_status(status).verdict == "transient"


@pytest.mark.requirement("F26")
@pytest.mark.parametrize(
    "exc",
    [
        TimeoutError(),
        asyncio.TimeoutError(),  # noqa: UP041 - the alias is the point
        foreign("httpx.TimeoutException")(),
        foreign("requests.exceptions.Timeout")(),
    ],
)
def test_network_timeouts_are_transient(exc: Exception) -> None:
    """F26 and F31: a timeout of any library, by its MRO, is transient and a NetworkTimeout."""
    found = classify_exception(exc)
    assert (found.verdict, found.error_type) == ("transient", "NetworkTimeout")


@pytest.mark.parametrize("status", [400, 401, 403, 404])
def test_permanent_statuses(status: int) -> None:
    found = classify_exception(HttpError(status_code=status))
    assert found.verdict == "permanent"
    assert found.status == status


@pytest.mark.requirement("F31")
@pytest.mark.parametrize(
    ("status", "error_type"),
    [
        (429, "RateLimitError"),
        (503, "ServiceUnavailable"),
        (500, "NetworkTimeout"),
        (502, "NetworkTimeout"),
        (504, "NetworkTimeout"),
    ],
)
def test_error_type_of_a_status(status: int, error_type: str) -> None:
    """F31: the mapping, with 500/502/504 on the NetworkTimeout schedule as documented beside the table."""
    assert classify_exception(HttpError(status_code=status)).error_type == error_type


@pytest.mark.parametrize(
    "exc", [ValueError("x"), HttpError(status_code=418), HttpError(status_code=200), KeyError("status")]
)
def test_the_rest_is_unclassified(exc: Exception) -> None:
    found = classify_exception(exc)
    assert found.verdict is None
    assert found.error_type is None
    assert http_verdict(exc) is None


@pytest.mark.parametrize(
    "exc",
    [
        ConnectionError(),
        ConnectionResetError(),
        OSError(5, "io"),
        foreign("aiohttp.client_exceptions.ClientConnectionError")(),
    ],
)
def test_lost_connections_are_transient(exc: Exception) -> None:
    assert http_verdict(exc) == "transient"


@pytest.mark.parametrize(
    "exc",
    [
        HttpError(response=SimpleNamespace(status_code=503)),
        HttpError(response=Falsy(status_code=503)),
        HttpError(response=SimpleNamespace(status=503)),
        HttpError(response={"ResponseMetadata": {"HTTPStatusCode": 503}}),
        HttpError(status_code=503),
        HttpError(status=503),
        HttpError(code=503),
        urllib.error.HTTPError("http://x", 503, "down", Message(), None),
    ],
)
def test_the_status_is_found_in_every_shape(exc: Exception) -> None:
    assert status_of(exc) == 503


def test_the_status_beats_the_class() -> None:
    error = urllib.error.HTTPError("http://x", 404, "gone", Message(), None)
    assert isinstance(error, OSError)
    assert http_verdict(error) == "permanent"


@pytest.mark.parametrize(
    "exc", [HttpError(code=True), HttpError(code="503"), HttpError(status=399), HttpError(code=600), SystemExit(404)]
)
def test_what_is_no_status_is_not_taken_for_one(exc: BaseException) -> None:
    assert status_of(exc) is None


def test_a_property_that_raises_is_no_status() -> None:
    class Hostile(Exception):
        @property
        def response(self) -> object:
            raise RuntimeError("not read yet")

    assert classify_exception(Hostile()).verdict is None
    assert retry_after_of(Hostile()) is None


@pytest.mark.parametrize(
    ("status", "fault"), [(500, True), (503, True), (599, True), (429, True), (404, False), (400, False)]
)
def test_a_breaker_counts_only_faults_of_the_service(status: int, fault: bool) -> None:
    assert is_service_fault(HttpError(status_code=status)) is fault


def test_a_breaker_counts_timeouts_but_not_bugs() -> None:
    assert is_service_fault(TimeoutError())
    assert not is_service_fault(ValueError())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("1.5", 1.5),
        ("0", 0.0),
        ("Tue, 01 Jan 2030 12:01:30 GMT", 90.0),
        ("Tue, 01 Jan 2030 11:00:00 GMT", 0.0),
        ("99999999999", 30 * 86400.0),
        ("-5", None),
        ("nan", None),
        ("1e9", None),
        ("soon", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("name", ["Retry-After", "retry-after", "RETRY-AFTER"])
def test_retry_after_header_in_seconds_or_as_a_date(name: str, value: str, expected: float | None) -> None:
    assert retry_after_of(HttpError(response=SimpleNamespace(headers={name: value})), now=NOW) == expected


def test_a_date_is_measured_from_the_response_where_no_clock_is_given() -> None:
    headers = {"Retry-After": "Tue, 01 Jan 2030 12:01:30 GMT", "Date": "Tue, 01 Jan 2030 12:01:00 GMT"}
    assert retry_after_of(HttpError(headers=headers)) == 30.0
    del headers["Date"]
    assert retry_after_of(HttpError(headers=headers)) is None


def test_retry_after_as_an_attribute_and_in_other_headers() -> None:
    assert retry_after_of(Transient(retry_after=5)) == 5.0
    assert retry_after_of(HttpError(retry_after=timedelta(minutes=1))) == 60.0
    assert retry_after_of(HttpError(retry_after=float("nan"))) is None
    assert retry_after_of(HttpError(response={"ResponseMetadata": {"HTTPHeaders": {"retry-after": "3"}}})) == 3.0
    message = Message()
    message["Retry-After"] = "9"
    assert retry_after_of(urllib.error.HTTPError("http://x", 429, "slow", message, None)) == 9.0
    assert retry_after_of(HttpError(headers=7)) is None


def test_paths_follow_the_mro() -> None:
    assert mro_paths(ConnectionResetError)[:3] == (
        "builtins.ConnectionResetError",
        "builtins.ConnectionError",
        "builtins.OSError",
    )


def test_a_class_of_the_script_has_the_name_others_import_it_by(monkeypatch: pytest.MonkeyPatch) -> None:
    Own = type("Own", (Exception,), {"__module__": "__main__"})
    monkeypatch.setitem(__import__("sys").modules, "__main__", SimpleNamespace(__spec__=None, __file__="/srv/tasks.py"))
    assert class_path(Own) == "tasks.Own"
    spec = SimpleNamespace(name="shop.tasks")
    monkeypatch.setitem(__import__("sys").modules, "__main__", SimpleNamespace(__spec__=spec, __file__="/srv/x.py"))
    assert class_path(Own) == "shop.tasks.Own"
