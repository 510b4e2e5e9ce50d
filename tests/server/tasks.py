"""The tasks of the servers that are tested here."""

from typing import Any

from headrace import App


def make_app(url: str, **settings: Any) -> App:
    app = App(url, **settings)

    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(name="fail")
    async def fail() -> None:
        raise ValueError("as it was told to")

    return app
