"""What an exception says about its cause: an HTTP status, a timeout, a lost connection, a `Retry-After`.

Exceptions are read by their shape (`exc.response.status_code`, `exc.status`, class paths along the MRO), so no HTTP
library is imported here and each of them works.
"""

import math
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import PurePath
from typing import Any, Literal, cast

type Verdict = Literal["transient", "permanent"]

RATE_LIMIT_ERROR = "RateLimitError"
SERVICE_UNAVAILABLE = "ServiceUnavailable"
NETWORK_TIMEOUT = "NetworkTimeout"
CONNECTION_LOST = "ConnectionLost"
DEFAULT_ERROR_TYPE = "Default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Classification:
    """`verdict` None means unclassified: the policy decides, and its table's Default applies."""

    verdict: Verdict | None = None
    error_type: str | None = None
    status: int | None = None


# 500, 502 and 504 share the NetworkTimeout schedule: like a timeout they say «this call went wrong», not «slow down»
# (429) nor «I am down» (503), so a first repeat after two seconds is worth it. 408 is a timeout that the server noticed
# first.
_BY_STATUS: Mapping[int, tuple[Verdict, str]] = {
    400: ("permanent", "BadRequest"),
    401: ("permanent", "Unauthorized"),
    403: ("permanent", "Forbidden"),
    404: ("permanent", "NotFound"),
    408: ("transient", NETWORK_TIMEOUT),
    429: ("transient", RATE_LIMIT_ERROR),
    500: ("transient", NETWORK_TIMEOUT),
    502: ("transient", NETWORK_TIMEOUT),
    503: ("transient", SERVICE_UNAVAILABLE),
    504: ("transient", NETWORK_TIMEOUT),
}

_TIMEOUT_PATHS = frozenset(
    {
        "builtins.TimeoutError",
        "httpx.TimeoutException",
        "httpcore.TimeoutException",
        "requests.exceptions.Timeout",
        "urllib3.exceptions.TimeoutError",
        "botocore.exceptions.ConnectTimeoutError",
        "botocore.exceptions.ReadTimeoutError",
        "openai.APITimeoutError",
        "anthropic.APITimeoutError",
    }
)
_CONNECTION_PATHS = frozenset(
    {
        "builtins.ConnectionError",
        "builtins.OSError",
        "httpx.TransportError",
        "httpcore.NetworkError",
        "aiohttp.client_exceptions.ClientConnectionError",
        "urllib3.exceptions.HTTPError",
        "botocore.exceptions.HTTPClientError",
        "openai.APIConnectionError",
        "anthropic.APIConnectionError",
    }
)


def class_path(cls: type) -> str:
    """`module.qualname`; a class of the script that runs as `__main__` gets the name under which others import that
    script.
    """
    module = cls.__module__
    if module in ("__main__", "__mp_main__"):
        main = sys.modules.get("__main__")
        spec = getattr(main, "__spec__", None)
        file = getattr(main, "__file__", None)
        module = spec.name if spec is not None else PurePath(file).stem if file else module
    return f"{module}.{cls.__qualname__}"


def mro_paths(cls: type) -> tuple[str, ...]:
    """The class paths of `cls` and its bases, nearest first."""
    return tuple(class_path(base) for base in cls.__mro__)


def classify_status(status: int) -> Classification:
    """The meaning of an HTTP status; one that is not listed is unclassified."""
    verdict, error_type = _BY_STATUS.get(status, (None, None))
    return Classification(verdict=verdict, error_type=error_type, status=status)


def classify_exception(exc: BaseException) -> Classification:
    """Status first (an HTTP error of `requests` is an OSError too), then timeouts, then lost connections."""
    status = status_of(exc)
    if status is not None:
        return classify_status(status)
    paths = mro_paths(type(exc))
    if not _TIMEOUT_PATHS.isdisjoint(paths):
        return Classification(verdict="transient", error_type=NETWORK_TIMEOUT)
    if not _CONNECTION_PATHS.isdisjoint(paths):
        return Classification(verdict="transient", error_type=CONNECTION_LOST)
    return Classification()


def http_verdict(exc: BaseException) -> Verdict | None:
    """`classify_exception` in the form that `Retry(classify=...)` takes; `classify="http"` is the same and can be
    stored.
    """
    return classify_exception(exc).verdict


def is_service_fault(exc: BaseException) -> bool:
    """Whether a breaker counts this against the service: 5xx, 429, timeouts, lost connections; a refused request is an
    answer.
    """
    found = classify_exception(exc)
    if found.status is not None:
        return found.status >= 500 or found.status in (408, 429)
    return found.verdict == "transient"


def status_of(exc: BaseException) -> int | None:
    """The HTTP status 400..599 that the exception carries, if any."""
    if not isinstance(exc, Exception):
        return None  # the code of a SystemExit is an exit code
    response = _attribute(exc, "response")
    candidates: list[Any] = [_attribute(response, "status_code"), _attribute(response, "status")]
    candidates.append(_metadata(response).get("HTTPStatusCode"))
    candidates += [_attribute(exc, name) for name in ("status_code", "status", "code")]
    for value in candidates:
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return int(value)
    return None


# A wait beyond this is a broken header; honouring it would only overflow instants.
_LONGEST_RETRY_AFTER = timedelta(days=30).total_seconds()
_DELTA_SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,9})?")


def retry_after_of(exc: BaseException, *, now: datetime | None = None) -> float | None:
    """Seconds that the other side asked to wait: an attribute `retry_after`, or the `Retry-After` header in either
    form.

    A header with a date is measured from `now`; without it from the response's own `Date`, which needs no common clock.
    """
    own = _attribute(exc, "retry_after")
    if isinstance(own, timedelta):
        own = own.total_seconds()
    if isinstance(own, int | float) and not isinstance(own, bool):
        return _bounded(float(own)) if math.isfinite(own) else None
    headers = _headers(exc)
    value = headers.get("retry-after", "").strip()
    if _DELTA_SECONDS.fullmatch(value):
        return _bounded(float(value))
    moment, origin = _http_date(value), now if now is not None else _http_date(headers.get("date", ""))
    if moment is None or origin is None:
        return None
    return _bounded((moment - origin).total_seconds())


def _bounded(wait: float) -> float:
    return min(max(wait, 0.0), _LONGEST_RETRY_AFTER)


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    # "-0000" gives a naive value; HTTP dates are GMT by definition.
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _headers(exc: BaseException) -> dict[str, str]:
    """The headers with lower-case names; a broken mapping is no headers at all."""
    response = _attribute(exc, "response")
    for found in (_attribute(response, "headers"), _metadata(response).get("HTTPHeaders"), _attribute(exc, "headers")):
        items = _attribute(found, "items")
        if not callable(items):
            continue
        try:
            pairs = cast("Iterable[tuple[object, object]]", items())
            return {str(name).lower(): str(value) for name, value in pairs}
        except Exception:  # foreign objects; the error at hand matters more
            continue
    return {}


def _metadata(response: object) -> Mapping[str, Any]:
    """The response metadata of botocore, whose response is a plain dict."""
    if not isinstance(response, Mapping):
        return {}
    found = cast("Mapping[str, Any]", response).get("ResponseMetadata")
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def _attribute(value: object, name: str) -> Any:
    try:
        return getattr(value, name, None)
    except Exception:  # a property of a foreign exception may raise anything
        return None
