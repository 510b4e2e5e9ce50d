"""`app.send`: what tasks wait for that is no task."""

from typing import Any, cast

from headrace.client.engine import Engine
from headrace.client.transactions import run_in, transaction_of
from headrace.core import payload
from headrace.core.errors import ArgumentError, PayloadError
from headrace.core.payload import JSON_CODEC
from headrace.core.subscription import RESERVED

LONGEST_NAME = 200
LARGEST_PAYLOAD = 1024 * 1024  # bytes of JSON; it stays in the ledger with every task that takes it
_CODEC = "$codec"


async def send(engine: Engine, event: str, key: str, value: Any) -> int:
    """Keep an event and resume what waits for it; in the user's transaction where there is one. Its id."""
    _check("event", event, least=1)
    _check("key", key, least=0)
    if event.startswith(RESERVED):
        raise ArgumentError(f"app.send: {event!r} is for the engine to send: names do not begin with job. or task.")
    text = _text_of(engine, event, value)
    connection = transaction_of(engine)
    if connection is None:
        sent = await engine.run(lambda store: store.send(event, key, text))
        await engine.readied()
        return sent
    store = await engine.opened_store()
    return await run_in(connection, store, store.send_program(event, key, text), asking=engine.identity)


def payload_of(engine: Engine, text: str) -> Any:
    """What was sent."""
    return unwrapped(engine, payload.loads(text))


def unwrapped(engine: Engine, value: Any) -> Any:
    """A payload as it was given to `send`."""
    if isinstance(value, dict) and _CODEC in value:
        stored = cast("dict[str, str]", value)
        return payload.loads(engine.codecs.get(stored[_CODEC]).decode(stored["text"]))
    return cast("Any", value)


def _text_of(engine: Engine, event: str, value: Any) -> str:
    """Of an app with a codec of its own, in a wrapping that names it: an event has no column for that."""
    text = payload.dumps(value)
    if len(text) * 4 > LARGEST_PAYLOAD and (size := len(text.encode())) > LARGEST_PAYLOAD:
        raise PayloadError(
            f"the payload of event {event!r} has {size:,} bytes of JSON and {LARGEST_PAYLOAD:,} are the most; store it "
            "elsewhere and send where it is"
        )
    codec = engine.codecs.default
    if codec.name == JSON_CODEC.name and not (isinstance(value, dict) and _CODEC in value):
        return text
    return payload.dumps({_CODEC: codec.name, "text": codec.encode(text)})


def _check(what: str, text: object, *, least: int) -> None:
    if not isinstance(text, str) or not least <= len(text) <= LONGEST_NAME or "\0" in text:
        raise ArgumentError(f"app.send: the {what} is a text of {least} to {LONGEST_NAME}, not {text!r:.250}")
