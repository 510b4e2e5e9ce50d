"""A server in a process of its own: `python -m tests.server.live.server_process URL PORT`."""

import socket
import sys

import uvicorn

from headrace import App
from headrace.server.application import create_application
from headrace.server.options import ServerOptions


def main() -> None:
    url, port = sys.argv[1], int(sys.argv[2])
    api = create_application(App(url), ServerOptions(auth=False, requests_per_minute=0))
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(2048)
    config = uvicorn.Config(
        api, ws="websockets-sansio", log_level="warning", access_log=False, ws_per_message_deflate=False
    )
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
