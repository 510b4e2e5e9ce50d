"""What every executor must do, as cases that run on any of them.

@pytest.mark.parametrize("case", cases_for(functions=True, limits=True, kill=True), ids=lambda case: case.__name__)
async def test_it(case, tmp_path):
    async with Stand.open(make_executor, tmp_path, launches=launch_function) as stand:
        await case(stand)
"""

from headrace.testing.executor_conformance.cases import cases_for
from headrace.testing.executor_conformance.stand import RecordingChannel, Stand, claimed

__all__ = ["RecordingChannel", "Stand", "cases_for", "claimed"]
