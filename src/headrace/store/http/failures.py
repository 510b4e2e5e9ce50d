"""Errors of headrace on the wire: by the name of their class, so that an app over HTTP raises what any other would."""

from collections.abc import Mapping
from typing import Any

from headrace.core import errors

# Those that are made of more than a sentence.
_MADE_OF: Mapping[type[Exception], tuple[str, ...]] = {
    errors.DuplicateTask: ("key", "task_id"),
    errors.MovedAway: ("key", "task_id"),
}


def written(error: errors.HeadraceError) -> dict[str, Any]:
    """What a problem document says beside its own words."""
    made_of = _MADE_OF.get(type(error), ())
    return {"error": type(error).__name__, **{name: getattr(error, name) for name in made_of}}


def read(problem: Mapping[str, Any]) -> errors.HeadraceError | None:
    """The error that a problem document is about; None when it is none of headrace's."""
    found = getattr(errors, str(problem.get("error")), None)
    if not (isinstance(found, type) and issubclass(found, errors.HeadraceError)):
        return None
    if made_of := _MADE_OF.get(found):
        return found(*(problem.get(name) for name in made_of))
    return found(str(problem.get("detail") or problem.get("title")))
