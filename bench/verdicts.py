"""Whether what was measured is enough: a pure judgement of one measure by its requirement."""

from collections.abc import Mapping
from enum import StrEnum

from bench.required import Requirement
from bench.results import Measure


class Verdict(StrEnum):
    AIM = "met, aim reached"
    MET = "met"
    MISSED = "missed"
    ABSENT = "not measured"

    @property
    def enough(self) -> bool:
        return self in (Verdict.AIM, Verdict.MET)


def judge(requirement: Requirement, measures: Mapping[str, Measure]) -> Verdict:
    """A value that is absent is not met: what was not shown is not promised."""
    value = _value(measures, requirement.measure)
    if requirement.aim is not None and _reaches(requirement, value, requirement.aim):
        return Verdict.AIM
    if _reaches(requirement, value, requirement.required):
        return Verdict.MET
    if requirement.instead is not None:
        other, bound = requirement.instead
        if _reaches(requirement, _value(measures, other), bound):
            return Verdict.MET
    return Verdict.ABSENT if value is None else Verdict.MISSED


def _value(measures: Mapping[str, Measure], name: str) -> float | None:
    found = measures.get(name)
    return None if found is None else found.value


def _reaches(requirement: Requirement, value: float | None, bound: float) -> bool:
    if value is None:
        return False
    return value >= bound if requirement.direction == "at least" else value <= bound
