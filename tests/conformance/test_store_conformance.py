"""The shipped conformance suite on both stores."""

import asyncio
import contextlib

import pytest

from headrace.core.clock import FakeClock
from headrace.store.base import Store, StoreOptions
from headrace.store.connect import connect
from headrace.testing.store_conformance import Case, all_cases, exercise

_OF_THE_SERVER = "what_the_database_says_of_itself"


def _marked(case: Case) -> object:
    marks = [pytest.mark.requirement(*case.requirements)] if case.requirements else []
    return pytest.param(case, id=str(case), marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in all_cases()])
def test_conformance(case: Case, store_url: str, request: pytest.FixtureRequest) -> None:
    # SQLite's clock is the host's, passed in; PostgreSQL has its own.
    clock = FakeClock() if store_url.startswith("sqlite:") else None

    def make_store() -> Store:
        return connect(store_url, StoreOptions(extra={"clock": clock} if clock else {}))

    with contextlib.ExitStack() as stack:
        if case.name == _OF_THE_SERVER and clock is None:
            # At the small size the tests' server forces nothing to the disk; this one asks it whether it does.
            stack.enter_context(request.getfixturevalue("postgres_server").forcing())
        asyncio.run(asyncio.wait_for(exercise(case, make_store, clock=clock), timeout=90))


def test_the_suite_is_not_empty_and_no_name_is_used_twice() -> None:
    names = [str(case) for case in all_cases()]
    assert _OF_THE_SERVER in {case.name for case in all_cases()}
    assert len(names) == len(set(names)) > 100
    assert all(case.proof.__doc__ for case in all_cases() if case.requirements)
