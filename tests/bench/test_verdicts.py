"""What counts as met, and that the table of requirements is whole."""

import pytest

from bench.required import PARTS, REQUIRED, Requirement
from bench.results import Measure
from bench.verdicts import Verdict, judge

FAST = Requirement(
    measure="fast", part="drain", what="fast", unit="×", direction="at least", required=1.2, aim=1.5
)  # fmt: skip
SMALL = Requirement(measure="small", part="growth", what="small", unit="×", direction="at most", required=1.1, aim=1)
EITHER = Requirement(
    measure="crowd", part="enqueue", what="crowd", unit="/s", direction="at least", required=40_000, aim=80_000,
    instead=("crowd_ratio", 15),
)  # fmt: skip


@pytest.mark.parametrize(
    ("requirement", "value", "expected"),
    [
        (FAST, 1.19, Verdict.MISSED),
        (FAST, 1.2, Verdict.MET),
        (FAST, 1.5, Verdict.AIM),
        (SMALL, 1.11, Verdict.MISSED),
        (SMALL, 1.1, Verdict.MET),
        (SMALL, 0.9, Verdict.AIM),
        (FAST, None, Verdict.ABSENT),
    ],
)
def test_a_value_is_judged_in_its_direction(requirement: Requirement, value: float | None, expected: Verdict) -> None:
    assert judge(requirement, {requirement.measure: Measure(value=value)}) is expected


@pytest.mark.parametrize(
    ("crowd", "ratio", "expected"),
    [
        (39_000, 14, Verdict.MISSED),
        (39_000, 15, Verdict.MET),
        (40_000, 2, Verdict.MET),
        (80_000, None, Verdict.AIM),
        (None, 16, Verdict.MET),
    ],
)
def test_either_bound_is_enough(crowd: float | None, ratio: float | None, expected: Verdict) -> None:
    measures = {"crowd": Measure(value=crowd), "crowd_ratio": Measure(value=ratio)}
    assert judge(EITHER, measures) is expected


def test_what_was_not_measured_is_not_met() -> None:
    assert judge(FAST, {}) is Verdict.ABSENT
    assert not Verdict.ABSENT.enough
    assert [verdict for verdict in Verdict if verdict.enough] == [Verdict.AIM, Verdict.MET]


def test_the_table_names_every_part_and_no_measure_twice() -> None:
    named = [(each.part, each.measure) for each in REQUIRED]
    assert len(named) == len(set(named))
    assert {each.part for each in REQUIRED} == set(PARTS)


def test_an_aim_is_never_below_what_is_required() -> None:
    for each in REQUIRED:
        if each.aim is not None:
            harder = each.aim >= each.required if each.direction == "at least" else each.aim <= each.required
            assert harder, each.what
