"""The test support itself: a run that should fail must not pass by skipping, waiting or forgetting."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.postgres import PrivatePostgres, find_binaries
from tests.support.sizes import sized
from tests.support.waiting import eventually, wait_until

ROOT = Path(__file__).resolve().parents[2]
PLUGINS = tuple(f"tests.support.{name}" for name in ("coroutines", "sizes", "parts", "requirements"))
MARKERS = "[pytest]\nmarkers =\n  requirement\n  slow\n  chaos\n"
IN_BOTH_WAYS = pytest.mark.parametrize("parallel", [(), ("-n", "2")], ids=["alone", "parallel"])


def _run(directory: Path, body: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (directory / "pytest.ini").write_text(MARKERS)
    (directory / "conftest.py").write_text(f"pytest_plugins = {PLUGINS}")
    (directory / "test_body.py").write_text(f"import asyncio, pytest\nfrom tests.support.parts import missing\n{body}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("HEADRACE_", "PYTEST_"))}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        cwd=directory,
        env={**clean, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _recorded(directory: Path) -> dict[str, str]:
    tests = json.loads((directory / ".cache" / "requirements.json").read_text())["tests"]
    return {nodeid.partition("::")[2]: result["outcome"] for nodeid, result in tests.items()}


def test_a_coroutine_test_really_runs(tmp_path: Path) -> None:
    body = "async def test_it():\n    await asyncio.sleep(0)\n    assert False, 'reached'\n"
    done = _run(tmp_path, body)
    assert done.returncode == 1
    assert "reached" in done.stdout


@IN_BOTH_WAYS
def test_a_missing_part_skips_and_is_listed_with_the_command_that_brings_it(
    tmp_path: Path, parallel: tuple[str, ...]
) -> None:
    body = "def test_a():\n    missing('postgres', 'none')\ndef test_b():\n    missing('postgres', 'none')\n"
    done = _run(tmp_path, body, *parallel)
    assert done.returncode == 0
    assert "postgres: 2 tests skipped; to run them: apt-get install postgresql" in done.stdout


def test_a_required_part_that_is_missing_fails(tmp_path: Path) -> None:
    body = "def test_a():\n    missing('postgres', 'none')\n"
    assert _run(tmp_path, body, HEADRACE_REQUIRE="postgres").returncode == 1
    mistyped = _run(tmp_path, body, HEADRACE_REQUIRE="postgers")
    assert mistyped.returncode == pytest.ExitCode.USAGE_ERROR
    assert "unknown part postgers" in mistyped.stderr


SIZES = """
from tests.support.sizes import sized
def test_plain():
    pass
@pytest.mark.chaos
def test_chaos():
    print("size", sized(small=1, full=1000))
@pytest.mark.slow
def test_slow():
    pass
"""


@pytest.mark.parametrize(
    ("environment", "ran", "size"),
    [
        ({}, "2 passed, 1 deselected", "size 1\n"),
        ({"HEADRACE_TEST_SIZE": "full"}, "3 passed", "size 1000\n"),
        ({"HEADRACE_TEST_SIZE": "full", "HEADRACE_TEST_ONLY_SIZED": "1"}, "2 passed, 1 deselected", "size 1000\n"),
    ],
    ids=["small", "full", "only-sized"],
)
def test_what_runs_at_which_size(tmp_path: Path, environment: dict[str, str], ran: str, size: str) -> None:
    done = _run(tmp_path, SIZES, "-s", **environment)
    assert ran in done.stdout
    assert size in done.stdout


RECORDED = """
@pytest.mark.requirement("A1")
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_both(store):
    pass
@pytest.mark.requirement("A2")
def test_failing():
    assert False
@pytest.fixture
def leaking():
    yield
    assert False
@pytest.mark.requirement("A3")
def test_leaking(leaking):
    pass
@pytest.mark.requirement("A4")
@pytest.mark.xfail
def test_expected():
    assert False
@pytest.mark.requirement("A5")
def test_skipped():
    pytest.skip("no")
def test_unmarked():
    pass
"""


@IN_BOTH_WAYS
def test_what_is_recorded_of_a_whole_run(tmp_path: Path, parallel: tuple[str, ...]) -> None:
    _run(tmp_path, RECORDED, *parallel)
    assert _recorded(tmp_path) == {
        "test_both[sqlite]": "passed",
        "test_both[postgres]": "passed",
        "test_failing": "failed",
        "test_leaking": "failed",
        "test_expected": "xfailed",
        "test_skipped": "skipped",
    }


@IN_BOTH_WAYS
def test_a_part_of_the_suite_changes_only_what_it_ran_and_proves_no_variant_it_left_out(
    tmp_path: Path, parallel: tuple[str, ...]
) -> None:
    _run(tmp_path, RECORDED, "-k", "sqlite", *parallel)
    assert _recorded(tmp_path)["test_both[sqlite]"] == "passed"
    assert _recorded(tmp_path)["test_both[postgres]"] == "deselected"
    _run(tmp_path, RECORDED)
    _run(tmp_path, RECORDED.replace("assert False", "pass"), "-k", "failing")
    assert _recorded(tmp_path)["test_failing"] == "passed"
    assert _recorded(tmp_path)["test_both[postgres]"] == "passed"
    _run(tmp_path, "def test_other():\n    pass\n")
    assert _recorded(tmp_path) == {}


def test_a_test_that_ends_its_worker_is_not_proved_by_its_other_variant(tmp_path: Path) -> None:
    dying = RECORDED.replace(
        "def test_both(store):\n    pass", "def test_both(store):\n    if store == 'postgres': os._exit(1)"
    )
    done = _run(tmp_path, f"import os\n{dying}", "-n", "2")
    assert "crashed while running 'test_body.py::test_both[postgres]'" in done.stdout
    assert _recorded(tmp_path)["test_both[sqlite]"] == "passed"
    assert _recorded(tmp_path)["test_both[postgres]"] == "failed"


async def test_waiting_returns_the_value_and_gives_up_at_its_ceiling() -> None:
    answers = iter([None, 0, "ready"])
    assert wait_until(lambda: next(answers)) == "ready"
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: the tide"):
        wait_until(lambda: False, 0.05, message="the tide")

    event = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, event.set)
    assert await eventually(event.is_set) is True

    async def never() -> int:
        return 0

    with pytest.raises(AssertionError, match="never"):
        await eventually(never, 0.05)


def test_a_private_server_keeps_what_was_committed_over_a_crash_and_ends_with_its_owner(
    private_postgres: PrivatePostgres, postgres_url: str
) -> None:
    database = postgres_url.rpartition("/")[2]
    with private_postgres.forcing(), private_postgres.connect() as connection:
        assert connection.execute("SHOW fsync").fetchone() == ("on",)
    with private_postgres.connect(database) as connection:
        assert connection.execute("SHOW fsync").fetchone() == (sized(small="off", full="on"),)
        connection.execute("CREATE TABLE kept AS SELECT 7 AS number")
        first = private_postgres.pid
        assert private_postgres.kill_backends(database) == 1
        connection.close()
    private_postgres.restart("immediate")
    assert private_postgres.pid != first
    with private_postgres.connect(database) as connection:
        assert connection.execute("SELECT number FROM kept").fetchone() == (7,)

    # A run that is killed cannot clean up; its server must go all the same.
    script = (
        "import os, sys; from tests.support.postgres import PrivatePostgres; from pathlib import Path;"
        "server = PrivatePostgres(Path(sys.argv[1])).__enter__();"
        "print(server.pid, server.directory, flush=True); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run(
        [sys.executable, "-c", script, str(find_binaries())], cwd=ROOT, capture_output=True, text=True, check=False
    )
    pid, directory = killed.stdout.split()
    wait_until(lambda: not Path("/proc", pid).exists() and not Path(directory).exists())
