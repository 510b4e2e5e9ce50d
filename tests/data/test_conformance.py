"""The shipped conformance suite on files: a folder of this machine, and what fsspec reaches."""

from pathlib import Path
from uuid import uuid4

import pytest

from headrace.data import Backend
from headrace.data.places import open_backend
from headrace.testing.data_conformance import Case, DataConformance, all_cases, exercise
from tests.support.sizes import sized


def _marked(case: Case) -> object:
    marks = [pytest.mark.requirement(*case.requirements)] if case.requirements else []
    if case.concern == "memory":
        marks.append(pytest.mark.chaos)
    return pytest.param(case, id=str(case), marks=marks)


@pytest.mark.parametrize("case", [_marked(case) for case in all_cases()])
def test_a_folder(case: Case, tmp_path: Path) -> None:
    url = (tmp_path / "tables of Zoë").as_uri()
    exercise(case, lambda: open_backend(url), url=url, megabytes=sized(small=200, full=1000))


class TestFsspec(DataConformance):
    """As the author of a backend writes it. What is in memory is for one process."""

    @pytest.fixture(autouse=True)
    def _place(self) -> None:
        self.place = f"memory://tables/{uuid4().hex}"

    def make_backend(self) -> Backend:
        return open_backend(self.place)

    @classmethod
    def cases(cls) -> list[Case]:
        return [case for case in all_cases() if not case.needs_url]


def test_the_suite_is_not_empty_and_no_name_is_used_twice() -> None:
    names = [str(case) for case in all_cases()]
    assert len(names) == len(set(names)) > 50
    assert all(case.proof.__doc__ for case in all_cases() if case.requirements)
