"""Parameters that do not travel with the task: the worker fills them in.

`pool: Resource[Pool]` is what `@app.lifespan` yielded under the parameter's name, or the one value of that type;
`context: Context` describes the running attempt. A type checker sees `Pool` itself, so give such a parameter the
default `injected`, and `enqueue` does not ask for it.
"""

import inspect
from collections.abc import Mapping
from typing import Annotated, Any, get_args, get_origin

from headrace.core.errors import ArgumentError
from headrace.executors.context import Context


class Injected:
    """The default of a parameter that the worker fills in."""

    def __repr__(self) -> str:
        return "injected"


injected: Any = Injected()

type Resource[T] = Annotated[T, Injected]


def is_injected(annotation: Any) -> bool:
    return annotation is Context or get_origin(annotation) is Resource or annotation is Resource


def find_injected(name: str, parameter: str, annotation: Any, *, context: Any, resources: Mapping[str, Any]) -> Any:
    """What a parameter of the task `name` is given."""
    if annotation is Context:
        return context
    if parameter in resources:
        return resources[parameter]
    wanted = get_args(annotation)[0] if get_args(annotation) else object
    wanted = get_origin(wanted) or wanted
    if inspect.isclass(wanted) and wanted is not object:
        found = [value for value in resources.values() if isinstance(value, wanted)]
        if len(found) == 1:
            return found[0]
        if found:
            raise ArgumentError(
                f"task {name}: {len(found)} resources are a {wanted.__qualname__}; name the parameter like one of "
                f"{', '.join(resources)} instead of {parameter!r}"
            )
    have = ", ".join(resources) or "none"
    raise ArgumentError(f"task {name}: no resource for the parameter {parameter!r}; @app.lifespan yields {have}")
