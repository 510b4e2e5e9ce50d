"""Webhooks as ordinary tasks: an event becomes a signed POST, retried until the other side takes it.

    webhook(app, "https://example.com/hooks", events=["paid", "job.failed"], secret=lambda: os.environ["HOOK_SECRET"])

declares a task that subscribes to these events. It is claimed, retried, kept as a dead letter and shown as any other.
The secret is read where the task runs; it is in no argument and in no log. A receiver checks what came with `verify`.
"""

import asyncio
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from headrace import App, Permanent, Retry, Task, Transient, current

EVENT, DELIVERY = "X-Headrace-Event", "X-Headrace-Delivery"
TIMESTAMP, SIGNATURE = "X-Headrace-Timestamp", "X-Headrace-Signature"
TIMEOUT = 10.0  # seconds for one delivery, from the first byte sent to the status that comes back
POLICY = Retry(
    max_attempts=8,
    backoff="table",
    table={
        "RateLimitError": (60, 120, 300, 600),
        "ServiceUnavailable": (5, 30, 120, 600, 3600),
        "NetworkTimeout": (2, 10, 60, 600, 3600),
        "Default": (5, 30, 120, 600, 3600),
    },
    jitter=0.1,
    classify="http",
    dead_letter=True,
    max_age=86_400,
)
# Of the refusals, those that time may mend: a timeout, a conflict, too early, too many.
_LATER = (408, 409, 425, 429)

type Secret = str | bytes | Callable[[], str | bytes]


class DeliveryFailed(Transient):
    """The receiver did not take it now. Its Retry-After, where there is one, is the least that is waited."""

    def __init__(self, message: str, *, status_code: int, headers: Mapping[str, str]) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = {name: value for name, value in headers.items() if name.lower() in ("retry-after", "date")}


class DeliveryRefused(Permanent):
    """The receiver would answer the same again."""

    def __init__(self, message: str, *, status_code: int) -> None:
        super().__init__(message)
        self.status_code = status_code


class InvalidDelivery(ValueError):
    """What came was not signed with this secret, or is too old; do not act on it."""


def webhook(
    app: App,
    url: str,
    *,
    events: Sequence[str],
    secret: Secret,
    retry: Retry = POLICY,
    name: str | None = None,
    queue: str = "default",
) -> Task[..., Any]:
    """Post every one of these events to `url`; the task that does so.

    `secret` may be a function, which is asked at each delivery. Redirects are not followed. Private addresses are
    allowed: it is your code that names the URL.
    """
    place = _checked(url)
    if isinstance(events, str) or not events:
        raise ValueError(f"webhook {place}: events is a list of names, not {events!r}")
    if not callable(secret):
        _key(secret)
    service = f"webhook:{place}"
    given = name or f"{service}:{hashlib.sha256(url.encode()).hexdigest()[:8]}"

    @app.task(name=given, queue=queue, retry=retry, timeout=3 * TIMEOUT, soft_timeout=None)
    async def deliver(event: str, key: str, payload: Any = None) -> int:
        """Post one event; the status that came back."""
        delivery = str(current.task_id)
        told = {"id": delivery, "event": event, "key": key, "payload": payload}
        body = json.dumps({**told, "sent_at": datetime.now(UTC).isoformat()}, ensure_ascii=False).encode()
        headers = {
            "content-type": "application/json",
            "user-agent": "headrace-webhook",
            EVENT: _header(event),
            DELIVERY: delivery,
            **signed(body, secret() if callable(secret) else secret, at=int(time.time())),
        }
        async with app.breaker(service).call():
            return await _post(url, body, headers, place)

    for event in dict.fromkeys(events):
        app.on_event(event)(deliver)
    return deliver


def signed(body: bytes, secret: str | bytes, *, at: int) -> dict[str, str]:
    """The headers that prove who sent these bytes, and when: HMAC-SHA256 of the timestamp, a dot and the body."""
    return {TIMESTAMP: str(at), SIGNATURE: f"sha256={_digest(body, secret, str(at))}"}


def verify(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | bytes,
    tolerance: float = 300.0,
    *,
    now: Callable[[], float] = time.time,
) -> dict[str, Any]:
    """What was delivered, for a receiver. InvalidDelivery unless these very bytes were signed with this secret, and no
    longer than `tolerance` seconds ago. A delivery may come twice: its `id` stays the same."""
    found = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = found.get(TIMESTAMP.lower(), ""), found.get(SIGNATURE.lower(), "")
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        raise InvalidDelivery(f"there is no {TIMESTAMP} that could be read")
    # First the signature: what is not ours is not looked at any further, and takes as long whatever is wrong with it.
    if not hmac.compare_digest(signature.encode(), f"sha256={_digest(body, secret, timestamp)}".encode()):
        raise InvalidDelivery(f"{SIGNATURE} does not fit this body and this secret")
    if abs(now() - int(timestamp)) > tolerance:
        raise InvalidDelivery(f"it was signed more than {tolerance:g} s ago, or its clock is wrong")
    return json.loads(body)


async def _post(url: str, body: bytes, headers: Mapping[str, str], place: str) -> int:
    import httpx

    async with (
        asyncio.timeout(TIMEOUT),
        httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False) as client,
        # Streamed, so that whatever they answer is not read into memory.
        client.stream("POST", url, content=body, headers=dict(headers)) as answer,
    ):
        status = answer.status_code
        if 200 <= status < 300:
            return status
        if status >= 500 or status in _LATER:
            raise DeliveryFailed(f"{place} answered {status}", status_code=status, headers=answer.headers)
    why = "redirects are not followed: name the last URL" if 300 <= status < 400 else "it would do so again"
    raise DeliveryRefused(f"{place} answered {status}; {why}", status_code=status)


def _checked(url: str) -> str:
    """Where a URL leads to, without what may be secret in it."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("a webhook needs a URL that begins with https:// or http:// and names a host")
    return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"


def _digest(body: bytes, secret: str | bytes, timestamp: str) -> str:
    return hmac.new(_key(secret), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


def _key(secret: str | bytes) -> bytes:
    key = secret.encode() if isinstance(secret, str) else secret
    if not key:
        raise ValueError("the secret of a webhook is empty: anybody could sign with it")
    return key


def _header(text: str) -> str:
    """A header is ASCII; the body has the name as it is."""
    return text.encode("ascii", "backslashreplace").decode().replace("\r", "").replace("\n", "")
