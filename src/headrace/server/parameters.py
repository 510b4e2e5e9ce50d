"""A query parameter that a route does not have is refused: what is misspelt would else be left out in silence."""

from collections.abc import Iterator

from fastapi.dependencies.models import Dependant
from fastapi.requests import HTTPConnection
from fastapi.routing import APIRoute

from headrace.server.fields import meant
from headrace.server.problems import Problem, phrase

_LISTED = 20  # that a refusal names


async def known_parameters(connection: HTTPConnection) -> None:
    """A dependency of every route. Problem(422) that names them."""
    if connection.scope["type"] != "http" or not connection.scope["query_string"]:
        return
    route: APIRoute = connection.scope["route"]
    known = frozenset(_of(route.dependant))
    unknown = [name for name in dict.fromkeys(connection.query_params) if name not in known]
    if unknown:
        there_are = f"there are {', '.join(sorted(known))}" if known else "it has none"
        wrong = [
            {
                "where": "query",
                "pointer": "/" + _plain(name)[:100],
                "detail": f"there is no such parameter; {meant(name, known)}{there_are}",
            }
            for name in unknown[:_LISTED]
        ]
        named = ", ".join(repr(_plain(name)[:60]) for name in unknown[:_LISTED])
        guess = meant(unknown[0], known)
        raise Problem(422, phrase(422), f"this route has no parameter {named}; {guess}{there_are}", errors=wrong)


def _of(dependant: Dependant) -> Iterator[str]:
    for parameter in dependant.query_params:
        yield parameter.alias
    for other in dependant.dependencies:
        yield from _of(other)


def _plain(text: str) -> str:
    """It comes from the request, and may hold what UTF-8 cannot carry."""
    return text.encode(errors="replace").decode()
