"""The machine and the place of the store, before anything is opened."""

import os
import sqlite3
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from headrace.cli.diagnosis.findings import Finding, fine, problem
from headrace.cli.target import shown_url
from headrace.core.errors import SettingsError
from headrace.store.connect import sqlite_path
from headrace.store.sqlite.mounts import NETWORK, file_system

OLDEST_PYTHON = (3, 12)
OLDEST_SQLITE = (3, 35)  # RETURNING

# (what asks for it, module, extra)
_EXTRAS = {
    "postgres": ("PostgreSQL", "asyncpg"),
    "metrics": ("--metrics-port", "prometheus_client"),
}


def versions(
    python: tuple[int, ...] = tuple(sys.version_info[:3]), sqlite: tuple[int, ...] = sqlite3.sqlite_version_info
) -> Iterator[Finding]:
    yield _version("python", "Python", python, OLDEST_PYTHON, "install a newer Python and make the environment anew")
    yield _version("sqlite", "SQLite", sqlite, OLDEST_SQLITE, "use a Python that was built with a newer SQLite")


def _version(check: str, what: str, found: tuple[int, ...], oldest: tuple[int, ...], mend: str) -> Finding:
    words = ".".join(map(str, found))
    if found >= oldest:
        return fine(check, f"{what} {words}")
    return problem(check, f"{what} {words} is older than {'.'.join(map(str, oldest))}", mend)


def extra(name: str) -> Finding:
    """Whether the package behind headrace[name] is there."""
    what, module = _EXTRAS[name]
    if find_spec(module) is not None:
        return fine("extras", f"{module} is installed, for {what}")
    return problem("extras", f"{what} needs {module}, which is not installed", f"pip install 'headrace[{name}]'")


def is_server(url: str) -> bool:
    """Whether the ledger is reached through a server, and not at its own place."""
    return url.partition("://")[0] in ("http", "https")


def place(url: str, mounts: str | None = None) -> Iterator[Finding]:
    """The URL, and where it leads: the file and its folder. A problem here means that nothing can be opened."""
    scheme = url.partition("://")[0].partition("+")[0] if "://" in url else ""
    if scheme in ("postgresql", "postgres"):
        yield fine("url", shown_url(url))
        yield extra("postgres")
    elif scheme == "sqlite":
        yield from _file(url, mounts)
    else:
        yield problem(
            "url",
            f"database URL {shown_url(url)!r} is not understood",
            "write sqlite:///headrace.db, postgresql://user@host/db, or https://host of a headrace server",
        )


def _file(url: str, mounts: str | None) -> Iterator[Finding]:
    try:
        path = sqlite_path(url)
    except SettingsError as error:
        yield problem(
            "url", str(error), "write sqlite:///headrace.db for a file here, sqlite:////folder/file.db elsewhere"
        )
        return
    if path == ":memory:":
        yield problem("url", "a store in memory is seen by its own process only", "name a file: sqlite:///headrace.db")
        return
    file = Path(path).absolute()
    yield fine("url", shown_url(url))
    if not file.parent.is_dir():
        yield problem("file", f"the folder {file.parent} does not exist", f"mkdir -p {file.parent}")
        return
    kind = file_system(file.parent.resolve(), mounts)
    if kind in NETWORK:
        yield problem(
            "mount",
            f"{file} lies on a network file system ({kind}), where SQLite's locks do not hold",
            "put it on a local disk, or use PostgreSQL",
        )
    if file.is_dir():
        yield problem("file", f"{file} is a folder", "name a file in it")
    elif not file.exists():
        yield problem("file", f"there is no {file}", "headrace db upgrade makes it; or name another with --database")
    else:
        yield from _rights(file)


def _rights(file: Path) -> Iterator[Finding]:
    user = os.geteuid()
    for path, wanted, words in (
        (file, os.R_OK | os.W_OK, "read and write"),
        (file.parent, os.W_OK | os.X_OK, "make files beside it in"),  # the write-ahead log
    ):
        if not os.access(path, wanted, effective_ids=os.access in os.supports_effective_ids):
            yield problem(
                "rights",
                f"user {user} may not {words} {path}",
                f"run as its owner (user {path.stat().st_uid}), or change the rights: chown, chmod",
            )
