"""The socket of a server. Standard library alone: whoever starts a server in another process binds here first."""

import errno
import socket

from headrace.core.errors import OptionError

_BACKLOG = 2048


def listen(host: str, port: int, *, share: bool = False) -> socket.socket:
    """`share`: another generation of the same server may listen beside this one, while it takes over.

    OptionError when it cannot be: the message says why, and what to do.
    """
    try:
        [(family, _, _, _, address), *_] = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        return socket.create_server(
            address, family=family, backlog=_BACKLOG, reuse_port=share and hasattr(socket, "SO_REUSEPORT")
        )
    except OSError as error:
        raise OptionError(_why(host, port, error)) from None


def url_of(listener: socket.socket) -> str:
    """As a browser on this machine would reach it."""
    host, port = listener.getsockname()[:2]
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{reached}:{port}"


def _why(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use: choose another with --port or HEADRACE_PORT; 0 takes a free one"
    if error.errno == errno.EACCES:
        return f"port {port} on {host} is not allowed to this user: choose one from 1024 on with --port"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"
