"""What the server refused, as headrace's own errors, whatever driver brought it."""

from typing import Any

from headrace.core.errors import DuplicateTask, NotFound, PayloadError, SchemaError, UniqueBusy, WrongState

_NO_SCHEMA = ("3F000", "42P01", "42883")


def translated(error: Exception) -> Exception | None:
    """Our error for what a driver raised; None for what is not ours to explain."""
    raised = _with_state(error)
    if raised is None:
        return None
    state, detail, hint = raised
    match state:
        case "HR001":
            return DuplicateTask(detail, int(hint))
        case "HR002":
            return NotFound(f"no job {detail}; nothing was enqueued")
        case "HR003":
            return WrongState(f"job {detail} is already {hint} and takes no more tasks; nothing was enqueued")
        case "55P03":
            return UniqueBusy("a transaction that is still open holds the key; nothing was enqueued, try again")
        case "22P05" | "22021":
            return PayloadError(f"a task cannot be stored: {error}")
        case _ if state in _NO_SCHEMA:
            return SchemaError(f"the database has no headrace schema ({error}); run `headrace db upgrade`")
        case _:
            return None


def _with_state(error: BaseException) -> tuple[str, str, str] | None:
    """(SQLSTATE, detail, hint): SQLAlchemy wraps the driver's error once, and its asyncpg adapter twice."""
    seen: set[int] = set()
    todo: list[Any] = [error]
    while todo:
        found = todo.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        state = getattr(found, "sqlstate", None) or getattr(found, "pgcode", None)
        told = getattr(found, "diag", None)
        detail = getattr(told, "message_detail", None) or getattr(found, "detail", None)
        hint = getattr(told, "message_hint", None) or getattr(found, "hint", None)
        deeper = [getattr(found, "orig", None), getattr(found, "__cause__", None)]
        if state and ((detail is not None and hint is not None) or not any(deeper)):
            return str(state), str(detail or ""), str(hint or "")
        todo.extend(deeper)
        if state and not any(candidate is not None and id(candidate) not in seen for candidate in todo):
            return str(state), "", ""
    return None
