"""A task that is to be gone."""

from headrace.app import App
from headrace.client.seen import delete_seen
from headrace.core.task import TaskRecord
from headrace.server.problems import Problem
from headrace.store.removing import DeleteAnswer


async def delete_one(app: App, id: int, *, seen: TaskRecord | None = None) -> None:
    """Problem 404 where there is none, 409 where somebody holds or needs it, or where it is not any more as it was
    `seen`; nothing changed then."""
    match (await app.tasks.adelete(id))[id] if seen is None else await delete_seen(app.engine, seen):
        case DeleteAnswer.DELETED:
            return
        case DeleteAnswer.UNKNOWN:
            raise Problem(404, "Task not found", f"no task {id}")
        case DeleteAnswer.HELD:
            raise Problem(409, "Task is held", f"a worker has task {id}: cancel it first")
        case DeleteAnswer.CHANGED_MEANWHILE:
            raise Problem(409, "Changed meanwhile", f"somebody ran task {id} again, or removed it, a moment ago")
        case DeleteAnswer.NEEDED:
            raise Problem(409, "Task is needed", f"the job of task {id} is not over, or another task waits for it")
