"""The last resort: an error that nobody expected is logged, and answered without detail."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.server.problems import answer, problem_of, unexpected


class Unexpected:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            problem = problem_of(error) or unexpected(error)
            if started:
                raise  # half an answer is out: the connection is cut, which is how a client learns of it
            await answer(problem, scope)(scope, receive, send)
