"""What every test may use. The parts live in tests/support, one concern a module."""

import gc
import os
import signal

from hypothesis import HealthCheck, settings

pytest_plugins = (
    "tests.support.coroutines",
    "tests.support.sizes",
    "tests.support.parts",
    "tests.support.databases",
    "tests.support.chdb",
    "tests.support.requirements",
)

# `repeatable` gives the same examples on every run, `random` looks for new ones. Two busy cores make a single
# example slow now and then, which says nothing about the code: no deadline in either.
_CALM = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("repeatable", derandomize=True, deadline=None, suppress_health_check=_CALM)
settings.register_profile("random", deadline=None, print_blob=True, suppress_health_check=_CALM)
settings.load_profile(os.environ.get("HEADRACE_HYPOTHESIS_PROFILE", "repeatable"))

# A shell without job control starts what goes to the background with Ctrl-C ignored, and so would everything that the
# tests start be: those who are interrupted by a test must hear it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: the garbage collector need not look at it again and again."""
    gc.collect()
    gc.freeze()
