"""The OpenAPI document says who may call, and that every refusal is a problem."""

from fastapi.routing import APIRoute

from headrace.server.openapi import permission_of, routes_of
from tests.server.serving import Serve


async def test_every_operation_says_who_may_call_and_how_it_refuses(serve_sqlite: Serve) -> None:
    async with serve_sqlite() as server:
        document = (await server.nobody.get("/api/openapi.json")).json()
        page = await server.nobody.get("/api/docs")
        routes = list(routes_of(server.api))
    assert page.status_code == 200
    assert set(document["components"]["securitySchemes"]) == {"token", "session"}
    operations = [
        (path, method, operation) for path, each in document["paths"].items() for method, operation in each.items()
    ]
    assert len(operations) >= 9
    for path, method, operation in operations:
        assert "security" in operation, (path, method)
        assert operation["tags"], (path, method)
        assert operation["summary"], (path, method)
        for status in ("400", "401", "403", "404", "409", "413", "422", "429", "503"):
            [kind] = operation["responses"][status]["content"]
            assert kind == "application/problem+json", (path, method, status)
    assert document["paths"]["/api/v1/users"]["get"]["security"] == [{"token": []}, {"session": []}]
    assert document["paths"]["/api/v1/users"]["get"]["x-role"] == "admin"
    assert document["paths"]["/api/v1/session"]["post"]["security"] == []
    problem = document["components"]["schemas"]["ProblemDocument"]
    assert {"type", "title", "status"} <= set(problem["properties"])
    assert "HTTPValidationError" not in str(document)
    known = {(route.path_format, method.lower()) for route in routes for method in route.methods or ()}
    assert {(path, method) for path, method, _ in operations} <= known
    assert any(isinstance(getattr(route, "original_route", route), APIRoute) for route in routes)
    assert any(permission_of(route) is None for route in routes)
