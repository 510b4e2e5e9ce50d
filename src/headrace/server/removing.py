"""A task that is to be gone."""

from headrace.app import App
from headrace.server.problems import Problem
from headrace.store.removing import DeleteAnswer


async def delete_one(app: App, id: int) -> None:
    """Problem 404 where there is none, 409 where somebody holds or needs it; nothing changed then."""
    match (await app.tasks.adelete(id))[id]:
        case DeleteAnswer.DELETED:
            return
        case DeleteAnswer.UNKNOWN:
            raise Problem(404, "Task not found", f"no task {id}")
        case DeleteAnswer.HELD:
            raise Problem(409, "Task is held", f"a worker has task {id}: cancel it first")
        case DeleteAnswer.NEEDED | DeleteAnswer.CHANGED_MEANWHILE:
            raise Problem(409, "Task is needed", f"the job of task {id} is not over, or another task waits for it")
