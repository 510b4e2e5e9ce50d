"""`headrace server`: the HTTP API, and the flags for it that `headrace up` takes, too."""

import socket
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headrace.cli.failures import CommandError
from headrace.cli.running import (
    Host,
    LogFormatFlag,
    LogLevelFlag,
    NoAuth,
    NoAuthForEveryone,
    Port,
    TrustProxy,
    log_options,
)
from headrace.cli.target import Target, load_app
from headrace.core.errors import OptionError
from headrace.core.memory import memory_bytes

if TYPE_CHECKING:
    from headrace.server.options import ServerOptions
    from headrace.settings import Settings

SecureCookies = Annotated[
    bool | None,
    typer.Option("--secure-cookies/--no-secure-cookies", help="Send cookies over HTTPS alone.", show_default="no"),
]
BodyLimit = Annotated[
    str | None,
    typer.Option("--body-limit", metavar="SIZE", help="Refuse larger requests, as 1MB.", show_default="1MiB"),
]
RateLimit = Annotated[
    int | None,
    typer.Option(
        "--rate-limit", min=0, help="Requests that each token may make in a minute; 0: no limit.", show_default="1200"
    ),
]
CorsOrigins = Annotated[
    list[str] | None,
    typer.Option(
        "--cors-origin",
        metavar="ORIGIN",
        help="Pages of this origin, as https://shop.example, may call the API; may be given several times.",
        show_default="none",
    ),
]
RedisUrl = Annotated[
    str | None,
    typer.Option(
        "--redis-url",
        help="Redis by which several servers tell each other what is new.",
        show_default="the database",
    ),
]
# From `headrace up`, which has bound the socket and is to be outlived by nobody: process, socket, generation.
Channel = Annotated[str | None, typer.Option("--up-channel", hidden=True, help="For headrace up alone.")]


def server(
    target: Target,
    host: Host = None,
    port: Port = None,
    no_auth: NoAuth = False,
    no_auth_for_everyone: NoAuthForEveryone = False,
    body_limit: BodyLimit = None,
    rate_limit: RateLimit = None,
    cors_origin: CorsOrigins = None,
    secure_cookies: SecureCookies = None,
    trust_proxy: TrustProxy = None,
    redis_url: RedisUrl = None,
    log_level: LogLevelFlag = None,
    log_format: LogFormatFlag = None,
    up_channel: Channel = None,
) -> None:
    """Serve the HTTP API of an App: tasks, jobs, queues, users, and what is shown live. Runs no tasks.

    The first start makes the user admin and prints its token once.
    """
    from headrace.telemetry.logs import configure, use_redaction

    number = 1
    given_socket: socket.socket | None = None
    if up_channel is not None:
        given_socket, number = _from_up(up_channel)
    configure(log_options(log_level, log_format))
    app = load_app(target)
    use_redaction(app)
    options = server_options(
        app.settings,
        host=host,
        port=port,
        auth=False if no_auth or no_auth_for_everyone else None,
        open_to_all=no_auth_for_everyone or None,
        body_limit=_bytes(body_limit),
        requests_per_minute=rate_limit,
        cors_origins=tuple(cors_origin) if cors_origin else None,
        secure_cookies=secure_cookies,
        trust_proxy=tuple(trust_proxy) if trust_proxy else None,
        redis_url=redis_url,
    )
    from headrace.server.listening import listen, url_of

    listener = given_socket or listening(options, listen)
    url = url_of(listener)
    # Imported here: nobody else needs a web framework.
    from headrace.server.dashboard import is_built
    from headrace.server.running import run

    def serving() -> None:
        if number == 1:
            open_door = "" if options.auth else ", without users"
            pages = f"the dashboard is on {url}/" if is_built() else "the dashboard is not built (make dashboard)"
            _say(f"headrace serves its API on {url}{open_door}; {pages}, what the API can do on {url}/api/docs")

    def made_admin(secret: str) -> None:
        _say(f"first run: made the user admin; its token is shown this once: {secret}")
        _say(f"it logs in to the dashboard, too; a password: headrace users password admin --database {target}")

    code = run(app, options, listener, made_admin=made_admin, serving=serving)
    raise typer.Exit(code)


def listening(options: "ServerOptions", listen: Any, *, share: bool = False) -> socket.socket:
    try:
        return listen(options.host, options.port, share=share)
    except OptionError as error:
        raise CommandError(str(error)) from None


def server_options(settings: "Settings", **flags: Any) -> "ServerOptions":
    """A flag wins over the app's settings, which hold what App(...) and the environment said."""
    from headrace.server.options import ServerOptions

    values: dict[str, Any] = {
        "host": settings.host,
        "port": settings.port,
        "auth": settings.auth,
        "body_limit": settings.body_limit,
        "requests_per_minute": settings.rate_limit,
        "cors_origins": settings.cors_origins,
        "secure_cookies": settings.secure_cookies,
        "trust_proxy": settings.trust_proxy,
        "redis_url": settings.redis_url,
    }
    values.update({name: value for name, value in flags.items() if value is not None})
    try:
        return ServerOptions(**values)
    except OptionError as error:
        raise CommandError(str(error)) from None


def _from_up(channel: str) -> tuple[socket.socket, int]:
    from headrace.runtime.parents import die_with_parent

    parent, descriptor, number = map(int, channel.split(","))
    die_with_parent(parent)
    return socket.socket(fileno=descriptor), number


def _bytes(amount: str | None) -> int | None:
    try:
        return None if amount is None else memory_bytes(amount, name="--body-limit")
    except OptionError as error:
        raise CommandError(str(error)) from None


def _say(line: str) -> None:
    """As it is, even into a pipe: no redaction, no wrapping, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
