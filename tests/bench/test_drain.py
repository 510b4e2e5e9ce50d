"""A whole drain at a size that gives no figure: fresh store, own processes, the store's word for finished."""

import psutil
import pytest

from bench.draining import drain
from bench.services import Services
from bench.stage import Failed, Stage
from bench.subjects import COROUTINES, SQLITE_FULL
from tests.support.postgres import PrivatePostgres

_TASKS = 5_000  # a tenth of a second of CPU, which is counted in hundredths


def _children() -> set[int]:
    return {process.pid for process in psutil.Process().children(recursive=True)}


def test_a_run_leaves_no_file_behind() -> None:
    stage = Stage(services=Services(postgres=None, redis=None))
    with stage.fresh(SQLITE_FULL[0]) as run:
        run.call("load", 1)
        assert run.unfinished() == 1
        assert run.finished() == 0
        assert run.record.exists()
    assert not run.directory.exists()
    assert not run.record.exists()


def test_a_drain_on_sqlite_leaves_no_process_behind() -> None:
    before = _children()
    stage = Stage(services=Services(postgres=None, redis=None))
    measured = drain(stage, SQLITE_FULL[0], _TASKS)
    assert 0 < measured.rate < 1_000_000
    assert measured.worker_cpu > 0
    assert measured.server_cpu == 0
    assert _children() <= before


def test_a_drain_on_postgres_counts_the_servers_time(private_postgres: PrivatePostgres) -> None:
    stage = Stage(services=Services(postgres=private_postgres, redis=None))
    measured = drain(stage, COROUTINES[0], _TASKS)
    assert 0 < measured.rate < 1_000_000
    assert measured.server_cpu > 0
    assert measured.cpu == measured.worker_cpu + measured.server_cpu
    with private_postgres.connect() as connection:
        left = connection.execute("SELECT count(*) FROM pg_database WHERE datname LIKE 'bench%'").fetchone()
    assert left == (0,)


def test_without_a_server_the_run_says_so() -> None:
    stage = Stage(services=Services(postgres=None, redis=None))
    with pytest.raises(Failed, match="no PostgreSQL on this machine"):
        drain(stage, COROUTINES[0], _TASKS)
