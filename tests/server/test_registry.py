"""What can be submitted: names, options and the schema of the arguments, for forms."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

import jsonschema_rs
from pydantic import BaseModel, Field

from headrace import App, Limit, Queue, Rate, Retry
from headrace.client.arguments import Arguments
from headrace.client.schemas import schema_of
from tests.server.serving import Serve


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Address(BaseModel):
    street: str
    number: Annotated[int, Field(ge=1)]


class Opaque:
    pass


def plain(user_id: int, greeting: str = "hello", *, loud: bool = False, ratio: float | None = None) -> None: ...


def rich(to: list[Address], colour: Colour, how: Literal["a", "b"] = "a", **more: int) -> None: ...


def rest(first: str, *args: int) -> None: ...


def callback(done: Callable[[], None], n: int) -> None: ...


def test_schemas_say_what_enqueue_takes() -> None:
    found = schema_of(Arguments(plain, name="plain"))
    assert found.complete
    assert found.schema["required"] == ["user_id"]
    assert found.schema["additionalProperties"] is False
    properties = found.schema["properties"]
    assert properties["user_id"] == {"type": "integer", "title": "User id"}
    assert properties["greeting"] == {"type": "string", "title": "Greeting", "default": "hello"}
    assert properties["ratio"]["default"] is None
    validator = jsonschema_rs.Draft202012Validator(found.schema)
    assert validator.is_valid({"user_id": 7})
    assert not validator.is_valid({"user": 7})


def test_models_and_enums_have_definitions() -> None:
    found = schema_of(Arguments(rich, name="rich"))
    assert found.complete
    assert set(found.schema["$defs"]) == {"Address"}
    assert found.schema["properties"]["colour"]["enum"] == ["red", "blue"]
    assert found.schema["additionalProperties"] is True
    good = {"to": [{"street": "Main", "number": 1}], "colour": "red", "more": 1}
    validator = jsonschema_rs.Draft202012Validator(found.schema)
    assert validator.is_valid(good)
    assert not validator.is_valid({**good, "colour": "green"})
    assert not validator.is_valid({**good, "to": [{"street": "Main", "number": 0}]})


def test_the_rest_is_a_list() -> None:
    assert schema_of(Arguments(rest, name="rest")).schema["properties"]["*"]["type"] == "array"


def test_a_type_without_a_schema_is_any_json() -> None:
    found = schema_of(Arguments(callback, name="callback"))
    assert not found.complete
    assert found.schema["properties"]["done"] == {"title": "Done"}
    assert found.schema["properties"]["n"]["type"] == "integer"


def test_annotations_that_cannot_be_read_are_free_json() -> None:
    def odd(x: Opaque) -> None: ...

    found = schema_of(Arguments(odd, name="odd"))
    assert (found.schema, found.complete) == ({"type": "object"}, False)


def make_app(url: str) -> App:
    app = App(url, queues={"parcels": Queue()})

    @app.task(
        name="mail.send", aliases=["mail.post"], queue="mail", priority=3, timeout=30, approval="operator",
        retry=Retry(max_attempts=7, dead_letter=True), limit=Limit(5), rate=Rate(100, 60), tags=["a"],
        metadata={"team": "post", "api_key": "sk-123"},
    )  # fmt: skip
    async def send(to: str, password: str = "hunter2") -> None:
        """Send a letter.

        It may take a while.
        """

    @app.task(name="odd")
    def odd(x: Any) -> None: ...

    return app


class Connection(BaseModel):
    host: str = "localhost"
    password: str = "hunter2"
    url: str = Field(default="amqp://app:hunter2@mq/x", examples=["amqp://app:hunter2@mq/y"])


@dataclass(frozen=True)
class Door:
    code: int = 7
    token: str = "hunter2"


async def test_no_secret_stands_in_a_default(serve_sqlite: Serve) -> None:
    """Neither in the text of the signature nor in the schema, however deep. What a form would take for a default is
    left out: it would send the mark."""
    app = App(serve_sqlite.url)

    @app.task(name="load")
    async def load(
        dsn: str = "postgresql://app:hunter2@db/x",
        to: Connection = Connection(),  # noqa: B008
        through: list[Connection] | None = None,
        door: Door = Door(),  # noqa: B008
        options: dict[str, str] = {"api_key": "hunter2", "region": "eu"},  # noqa: B006
        region: str = "eu",
    ) -> None: ...

    async with serve_sqlite(app=app) as server:
        answer = await server.viewer.get("/api/v1/registry/load")
        assert answer.status_code == 200
        assert "hunter2" not in answer.text
        found = answer.json()
        assert "dsn: str = 'postgresql://app:[redacted]@db/x'" in found["signature"]
        assert "region: str = 'eu'" in found["signature"]
        properties = found["schema"]["properties"]
        assert properties["region"]["default"] == "eu"
        assert properties["through"]["default"] is None
        assert not [name for name in ("dsn", "to", "door", "options") if "default" in properties[name]]
        model = found["schema"]["$defs"]["Connection"]["properties"]
        assert model["host"]["default"] == "localhost"
        assert "default" not in model["password"]
        assert not {"default", "examples"} & set(model["url"])
        assert "[redacted]" not in str(found["schema"])


async def test_what_a_caller_is_shown(serve_sqlite: Serve) -> None:
    async with serve_sqlite(app=make_app(serve_sqlite.url)) as server:
        answer = await server.user.get("/api/v1/registry")
        body = answer.json()
        assert [item["name"] for item in body["items"]] == ["mail.send", "odd"]
        # One that only the settings name as well.
        assert body["queues"] == ["default", "mail", "parcels"]
        assert (body["commands"], body["commands_need_approval"]) == (True, True)
        send, odd = body["items"]
        assert (send["summary"], send["doc"]) == ("Send a letter.", "Send a letter.\n\nIt may take a while.")
        assert (send["queue"], send["priority"], send["kind"], send["executor"]) == ("mail", 3, "async", "coroutine")
        assert send["aliases"] == ["mail.post"]
        assert send["options"] == {
            "timeout": 30.0, "soft_timeout": None, "max_age": None, "result_ttl": send["options"]["result_ttl"],
            "max_attempts": 7, "dead_letter": True, "unique": False, "ordered": False,
            "limits": ["5 at once", "100 in 60 s"], "critical": True, "tags": ["a"],
            "metadata": {"team": "post", "api_key": "[redacted]"}, "approval": "operator",
        }  # fmt: skip
        assert (send["can_submit"], send["needs_approval"]) == (True, True)
        assert send["secrets"] == ["password"]
        assert send["schema"]["properties"]["password"] == {"type": "string", "title": "Password", "writeOnly": True}
        assert send["signature"].startswith("(to: str, password: str = Ellipsis)")
        assert "hunter2" not in answer.text
        assert odd["schema"]["properties"]["x"] == {"title": "X"}
        assert odd["complete"]
        assert (await server.operator.get("/api/v1/registry")).json()["items"][0]["needs_approval"] is False
        viewer = (await server.viewer.get("/api/v1/registry")).json()
        assert (viewer["items"][0]["can_submit"], viewer["commands"]) == (False, False)
        assert (await server.user.get("/api/v1/registry/mail.post")).json() == send
        assert (await server.user.get("/api/v1/registry/nothing")).status_code == 404
