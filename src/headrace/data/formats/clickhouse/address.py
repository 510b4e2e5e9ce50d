"""URL -> what to connect to. Pure; a password is in no message and no repr."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

from headrace.core.errors import SettingsError

_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_EXAMPLES = "chdb:///path/to/folder or clickhouse://user:password@host:8123/database (clickhouses:// with TLS)"
_SERVER_OPTIONS = ("ca_cert", "connect_timeout", "send_receive_timeout", "verify")
SCHEMES = ("chdb", "clickhouse", "clickhouses")


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """`path` is set for chDB, `host` for a server."""

    database: str
    path: str | None = None
    host: str | None = None
    port: int | None = None
    user: str = "default"
    password: str = field(default="", repr=False)
    secure: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def url(self) -> str:
        """For messages: without the password."""
        if self.path is not None:
            return f"chdb://{quote(self.path)}" + ("" if self.database == "headrace" else f"?database={self.database}")
        scheme = "clickhouses" if self.secure else "clickhouse"
        user = quote(self.user, safe="") + (":***" if self.password else "")
        host = f"[{self.host}]" if ":" in (self.host or "") else self.host
        return f"{scheme}://{user}@{host}:{self.port}/{self.database}"


def parse(url: str) -> Address:
    """SettingsError for a URL that is not understood."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        # The parser's own words may hold a piece of a password that was not percent-encoded.
        raise SettingsError(
            f"the ClickHouse URL has no valid host and port; write {_EXAMPLES}, and percent-encode what is not a "
            "letter or a digit in user and password"
        ) from None
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    match parts.scheme:
        case "chdb":
            return _embedded(parts, options)
        case "clickhouse" | "clickhouses":
            return _server(parts, port, options)
        case _:
            raise SettingsError(f"{parts.scheme}:// is no ClickHouse URL; write {_EXAMPLES}")


def _embedded(parts: SplitResult, options: dict[str, str]) -> Address:
    path = unquote(parts.path)
    if parts.netloc or path in ("", "/"):
        raise SettingsError("a chDB URL names a folder by its whole path, with three slashes: chdb:///path/to/folder")
    database = options.pop("database", "headrace")
    _refuse_unknown(options, ("database",))
    # The engine compares paths by their letters, and two spellings of one folder are one folder.
    return Address(path=str(Path(path).resolve()), database=_checked(database))


def _server(parts: SplitResult, port: int | None, options: dict[str, str]) -> Address:
    if not parts.hostname:
        raise SettingsError(f"the ClickHouse URL names no host; write {_EXAMPLES}")
    _refuse_unknown(options, _SERVER_OPTIONS)
    secure = parts.scheme == "clickhouses"
    return Address(
        host=parts.hostname,
        port=port or (8443 if secure else 8123),
        user=unquote(parts.username or "") or "default",
        password=unquote(parts.password or ""),
        database=_checked(unquote(parts.path.strip("/")) or "default"),
        secure=secure,
        options={name: _option(name, text) for name, text in options.items()},
    )


def _option(name: str, text: str) -> Any:
    match name:
        case "verify":
            if text.lower() not in ("true", "false"):
                raise SettingsError("verify in a ClickHouse URL is true or false")
            return text.lower() == "true"
        case "connect_timeout" | "send_receive_timeout":
            if not text.isdecimal() or not int(text):
                raise SettingsError(f"{name} in a ClickHouse URL is a number of seconds, at least 1")
            return int(text)
        case _:
            return text


def _refuse_unknown(options: Mapping[str, str], known: tuple[str, ...]) -> None:
    if unknown := sorted(set(options) - set(known)):
        raise SettingsError(f"unknown {', '.join(unknown)} in a ClickHouse URL; known: {', '.join(known)}")


def _checked(database: str) -> str:
    if not _DATABASE.fullmatch(database):
        raise SettingsError("the database in a ClickHouse URL is letters, digits and _, at most 64")
    return database
