"""/results: what tasks returned, by their ids; the same as /tasks/{id}/result."""

from fastapi import APIRouter

from headrace.server.models.tasks import TaskResult
from headrace.server.routes.tasks import GONE, get_result

router = APIRouter(prefix="/results", tags=["results"])
router.get("/{id}", response_model=TaskResult, responses=GONE)(get_result)
