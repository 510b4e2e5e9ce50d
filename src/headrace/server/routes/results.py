"""/results: what tasks returned, by their ids; the same as /tasks/{id}/result."""

from fastapi import APIRouter

from headrace.server.models.tasks import TaskResult
from headrace.server.openapi import ProblemDocument
from headrace.server.routes.tasks import get_result

router = APIRouter(prefix="/results", tags=["results"])
router.get("/{id}", response_model=TaskResult, responses={410: {"model": ProblemDocument, "description": "Gone"}})(
    get_result
)
