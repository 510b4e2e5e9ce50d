"""An app whose tasks do a little of everything, a server on it, and a worker in this process: `adrain`."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from headrace import App, Retry, current
from headrace.contrib.summarize import register
from headrace.testing import override
from tests.server.serving import Serve, Serving


def make_app(url: str, **options: Any) -> App:
    app = App(url, **options)

    @app.task(name="add", retry=Retry(max_attempts=1))
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(name="greet", queue="mail", aliases=["hello"])
    async def greet(name: str, password: str = "", nested: dict[str, Any] | None = None) -> dict[str, Any]:
        current.log(f"greets {name}")
        current.log("token=abcdef0123456789 was used")
        current.progress(1, 2, f"half of {name}")
        return {"said": f"hello {name}", "api_key": "sk-result-secret", "deep": [{"session_token": "result-token"}]}

    @app.task(name="fail", retry=Retry(max_attempts=1, dead_letter=True))
    async def fail(why: str = "as it was told to") -> None:
        raise ValueError(why)

    @app.task(name="again", retry=Retry(max_attempts=2, base=0.01, cap=0.01))
    async def again() -> None:
        raise ConnectionError("never there")

    @app.task(name="total")
    async def total(parts: list[int]) -> int:
        return sum(parts)

    register(app)
    return app


@asynccontextmanager
async def routed(serve: Serve, app: App | None = None, **options: Any) -> AsyncGenerator[Serving]:
    made = make_app(serve.url) if app is None else app
    async with override(made, url=serve.url), serve(app=made, **options) as server:
        yield server
