"""The options of a schedule, and which of them contradict each other."""

from datetime import timedelta
from typing import Any

import pytest

from headrace.core.errors import OptionError
from headrace.scheduling.policy import Policy


def test_by_default_one_fire_makes_up_for_all_and_none_overlap() -> None:
    policy = Policy()
    assert (policy.catch_up, policy.overlap, policy.jitter) == ("coalesce", "skip", timedelta(0))
    assert policy == Policy(catch_up="coalesce", grace=timedelta(minutes=1), overlap="skip", jitter=0)


def test_who_asks_for_every_tick_gets_them_beside_each_other() -> None:
    assert Policy(catch_up="all").overlap == "allow"
    assert Policy(catch_up="all", overlap="allow") == Policy(catch_up="all")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"catch_up": "none"}, "catch_up must be one of coalesce, skip, all, not 'none'"),
        ({"overlap": "wait"}, "overlap must be one of skip, queue, replace, allow, not 'wait'"),
        ({"catch_up": "all", "overlap": "skip"}, "use overlap='allow'"),
        ({"catch_up": "all", "overlap": "queue"}, "use overlap='allow'"),
        ({"grace": -1}, "grace must not be negative"),
        ({"jitter": "5m"}, "jitter must be a timedelta or a number of seconds"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(options: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError) as caught:
        Policy(**options)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
