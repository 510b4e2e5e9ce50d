"""A ClickHouse server's HTTP interface over chDB, in a process of its own: the driver's way to a server, for real, on
machines where none can be installed. The engine is the same; what a server adds is not here: TLS, users, clusters.

Run as `python -m tests.support.clickhouse_bridge FOLDER USER PASSWORD`; it prints its port and ends with its input. The
user `cut_off`, with the same password, never gets the answer to an insert that was done, the first time.
"""

import base64
import os
import re
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import chdb

# What the interface takes itself and no engine knows.
_INTERFACE = {
    "buffer_size", "client_protocol_version", "compress", "decompress", "default_format", "enable_http_compression",
    "http_headers_progress_interval_ms", "query_id", "role", "send_progress_in_http_headers", "session_id",
    "wait_end_of_query",
}  # fmt: skip


class Bridge(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = user = password = ""
    wbufsize = 1 << 16  # an answer is one write: two small ones would wait for each other
    idle: ClassVar[dict[tuple[object, ...], list[Any]]] = {}
    seen: ClassVar[set[bytes]] = set()  # inserts of `cut_off` that were done

    def do_GET(self) -> None:
        if self.path == "/ping":
            self._answer(b"Ok.\n")
        else:
            self.do_POST()

    def do_POST(self) -> None:
        body = self._body()
        given = dict(parse_qsl(urlsplit(self.path).query, keep_blank_values=True))
        user = self._user()
        if user is None:
            return self._refuse(403, 516, "Authentication failed: password is incorrect, or there is no such user.")
        # A statement is a parameter or the body, and the rows of an insert follow it there.
        if "query" not in given and (insert := re.match(rb"INSERT INTO .*? FORMAT \w+\n", body, re.DOTALL)):
            given["query"], body = insert[0].decode(), body[insert.end() :]
        query, data = (given.pop("query"), body) if "query" in given else (body.decode(), b"")
        try:
            answer = self._run(query, data, given.pop("database", "default"), given)
        except Exception as error:
            found = re.search(r"Code: (\d+)", str(error))
            return self._refuse(404 if "UNKNOWN_" in str(error) else 500, int(found[1]) if found else 0, str(error))
        if data and user == "cut_off" and data not in self.seen:
            self.seen.add(data)
            self.close_connection = True
            return None
        return self._answer(answer)

    def _user(self) -> str | None:
        given = base64.b64decode(self.headers.get("Authorization", "").removeprefix("Basic ")).decode()
        user, _, password = given.partition(":")
        return user if user in (self.user, "cut_off") and password == self.password else None

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces: list[bytes] = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def _run(self, query: str, data: bytes, database: str, given: dict[str, str]) -> bytes:
        settings = {name: value for name, value in given.items() if name not in _INTERFACE and name[:6] != "param_"}
        idle = self.idle.setdefault((database, *settings.items()), [])  # both are kept by the handle
        try:
            handle = idle.pop()
        except IndexError:
            handle = chdb.connect(self.folder)
            handle.query(f"USE `{database}`")
            for name, value in settings.items():
                handle.query(f"SET {name} = '{value}'")
        try:
            params = {name[6:]: value for name, value in given.items() if name.startswith("param_")}
            if not data:
                return handle.query(query, given.get("default_format", "TabSeparated"), params=params).bytes() or b""
            with tempfile.NamedTemporaryFile() as file:
                file.write(data)
                file.flush()
                # A server reads the rows from the request, the engine alone from a file.
                target, _, format = query.rpartition("FORMAT")
                handle.query(f"{target} FROM INFILE '{file.name}' FORMAT{format}")
            return b""
        finally:
            idle.append(handle)

    def _refuse(self, status: int, code: int, words: str) -> None:
        body = (words if words.startswith("Code: ") else f"Code: {code}. DB::Exception: {words}").encode()
        self._answer(body, status, {"X-ClickHouse-Exception-Code": str(code)})

    def _answer(self, body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        always = {"X-ClickHouse-Summary": "{}", "X-ClickHouse-Timezone": "UTC", "Content-Length": str(len(body))}
        for name, value in {**always, **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def main(folder: str, user: str, password: str) -> None:
    Bridge.folder, Bridge.user, Bridge.password = folder, user, password
    keeper = chdb.connect(folder)  # the engine stays as long as somebody holds it
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bridge)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(server.server_port, flush=True)
    sys.stdin.read()  # the end of the tests' process, however it ends
    keeper.close()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
