"""What can go wrong with a chat service. The name of a class is the row of the delay table that it waits by.

Each carries the HTTP status where there was one, and the headers that say how long to wait, so that the classification,
the breaker and the table agree about it. 500, 502 and 504 are NetworkTimeout: like a timeout they say «this call went
wrong», not «slow down» (429) nor «I am down» (503).
"""

from collections.abc import Mapping

from headrace import Permanent, Transient


class _Answered(Transient):
    """An answer with a status that says: try again."""

    def __init__(
        self, message: str, *, status_code: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = dict(headers or {})


class RateLimitError(_Answered):
    """429: too many calls."""


class ServiceUnavailable(_Answered):
    """503."""


class NetworkTimeout(_Answered, TimeoutError):
    """No answer in time, or 500, 502, 504."""


class UnexpectedStatus(_Answered):
    """Any other status. Nobody knows what it means, so it is tried again, by the Default row."""


class BrokenAnswer(Transient, ConnectionError):
    """The connection was cut, or what came is not what the protocol says. Waits by the Default row."""


class ServiceRefused(Permanent):
    """400, 401, 403, 404: asking again would be answered the same."""

    def __init__(self, message: str, *, status_code: int | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code


_TRANSIENT: Mapping[int, type[_Answered]] = {
    408: NetworkTimeout,
    429: RateLimitError,
    500: NetworkTimeout,
    502: NetworkTimeout,
    503: ServiceUnavailable,
    504: NetworkTimeout,
}


def error_of_status(status: int, message: str, *, headers: Mapping[str, str] | None = None) -> Exception:
    """The error that an HTTP status stands for."""
    if status in (400, 401, 403, 404):
        return ServiceRefused(message, status_code=status)
    return _TRANSIENT.get(status, UnexpectedStatus)(message, status_code=status, headers=headers)
