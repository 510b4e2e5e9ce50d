"""The tasks of the servers that are tested here."""

from headrace import App


def make_app(url: str) -> App:
    app = App(url)

    @app.task(name="add")
    async def add(a: int, b: int) -> int:
        return a + b

    @app.task(name="fail")
    async def fail() -> None:
        raise ValueError("as it was told to")

    return app
