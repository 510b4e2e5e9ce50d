"""Objects in chDB: the shipped conformance suite, the cases of ClickHouse, and those of one process per folder.

They are one test here, since the engine would stay in the process of all other tests: see tests.support.chdb. What runs
in there is inside_chdb.py, which can be run alone with pytest.
"""

import re

import pytest

from tests.support.chdb import need_chdb, python

INSIDE = "tests/data/clickhouse/inside_chdb.py"
OPTIONS = ("-q", "-W", "error", "-p", "no:cacheprovider", "-p", "no:xdist", "--durations=5")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_chdb_in_a_process_of_its_own():
    need_chdb()
    with python("-m", "pytest", *OPTIONS, INSIDE) as inside:
        said, _ = inside.communicate(timeout=590)
    assert inside.returncode == 0, said
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None
    assert int(passed[1]) > 80, said
    assert "skipped" not in said, said
