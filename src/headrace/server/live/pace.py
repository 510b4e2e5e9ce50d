"""How often, how much, how long: the figures of everything that is live."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Durations are seconds."""

    ping: float = 60.0  # of a WebSocket; whoever is connected is also asked again whether they may be
    least_ping: float = 5.0  # that one may ask for, who has to notice sooner that a connection is dead
    comment: float = 15.0  # of an event stream: proxies close one that is silent
    poll: float = 1.0  # between two looks for what no hint came for
    rest: float = 0.02  # between two reads of one topic, however many hints come
    most_messages: int = 256  # that a watcher may be behind; then it is dropped
    most_bytes: int = 1_048_576
    stall: float = 30.0  # for one page of what a late watcher is sent; then it is dropped


PAGE = 500  # of a catch-up, read and sent before the next is read
SLICE = 100  # that are handed over before the watchers get a turn to send them
SLICE_BYTES = 262_144
FAREWELL = 10.0  # seconds for the last word to somebody who may not read any more
