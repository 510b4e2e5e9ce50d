"""What a check found."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"  # works, and somebody should know
    PROBLEM = "problem"  # tasks do not run, or will not


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    level: Level
    check: str
    what: str
    mend: str | None = None


def fine(check: str, what: str) -> Finding:
    return Finding(level=Level.OK, check=check, what=what)


def warning(check: str, what: str, mend: str) -> Finding:
    return Finding(level=Level.WARNING, check=check, what=what, mend=mend)


def problem(check: str, what: str, mend: str) -> Finding:
    return Finding(level=Level.PROBLEM, check=check, what=what, mend=mend)
