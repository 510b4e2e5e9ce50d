"""What every executor must do, as cases that run on any of them.

    class TestMyExecutor(ExecutorConformance):
        able = ("function", "limits", "wake")

        def make_executor(self, slots, host):
            return MyExecutor(slots=slots, host=host)

gives pytest one test for each case that an executor with these abilities must pass; or, without a class:

    @pytest.mark.parametrize("case", cases_for("function", "limits", "wake"), ids=lambda case: case.__name__)
    async def test_it(case, tmp_path):
        async with Stand.open(make_executor, tmp_path) as stand:
            await case(stand)
"""

from headrace.testing.executor_conformance.cases import cases_for
from headrace.testing.executor_conformance.stand import RecordingChannel, Stand, claimed
from headrace.testing.executor_conformance.suite import ExecutorConformance

__all__ = ["ExecutorConformance", "RecordingChannel", "Stand", "cases_for", "claimed"]
