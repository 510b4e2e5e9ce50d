"""The tasks of the Compose example. The database comes from HEADRACE_DATABASE_URL."""

from headrace import App

app = App()


@app.task
async def welcome(user_id: int) -> str:
    return f"hello {user_id}"
