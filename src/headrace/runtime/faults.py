"""Named points at which a test may kill, stop, fail or delay this process.

HEADRACE_FAULT="point:action[:nth]" arms a point, several with commas between: `kill9`, `stop` (SIGSTOP), `raise` or
`delay[=seconds]` happens the nth time (default 1) that this process reaches it. HEADRACE_FAULT_ONCE names a file: only
the process that creates <file>.<point> acts, so that a replacement of the killed process gets further, and the file
tells that it happened. Unset, `reached` is an empty function, bound at import.
"""

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field


class InjectedFault(Exception):
    """Raised by the action `raise`."""


@dataclass(slots=True, kw_only=True)
class Fault:
    point: str
    action: str
    nth: int = 1
    once: str | None = None
    _seen: int = field(default=0, init=False)

    @classmethod
    def parse(cls, text: str, *, once: str | None = None) -> "Fault":
        point, action, *rest = text.split(":")
        if action.partition("=")[0] not in ("kill9", "stop", "raise", "delay") or len(rest) > 1:
            raise ValueError(f"HEADRACE_FAULT={text!r}: write point:kill9|stop|raise|delay[=seconds][:nth]")
        return cls(point=point, action=action, nth=int(rest[0]) if rest else 1, once=once)

    def __call__(self, point: str) -> None:
        if point != self.point:
            return
        self._seen += 1
        if self._seen == self.nth and self._first():
            self._act()

    def _first(self) -> bool:
        if self.once is None:
            return True
        try:
            os.close(os.open(f"{self.once}.{self.point}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def _act(self) -> None:
        action, _, argument = self.action.partition("=")
        match action:
            case "kill9":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "delay":
                time.sleep(float(argument or 1))
            case _:
                raise InjectedFault(self.point)


def _unarmed(_point: str) -> None:
    """No fault is armed."""


def _from_environment() -> Callable[[str], None]:
    text = os.environ.get("HEADRACE_FAULT")
    if not text:
        return _unarmed
    faults = [Fault.parse(part, once=os.environ.get("HEADRACE_FAULT_ONCE")) for part in text.split(",")]

    def act(point: str) -> None:
        for fault in faults:
            fault(point)

    return act


reached = _from_environment()
