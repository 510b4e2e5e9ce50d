"""The dashboard, at every address that no route of the API has: built files, and the page that reads the address.

It stands where the router would say 404, so whatever the API answers stays as it is. The files are made by
`make dashboard`; a server without them says so on a plain page.
"""

import hashlib
import mimetypes
from collections.abc import Mapping
from html import escape
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from headrace.core.values import value

STATIC = Path(__file__).parent / "static"
_INDEX = "index.html"
# Below these is nothing for people: an address that is not there is a mistake of a program, or of us.
_NOT_PAGES = ("/api/", "/ws/", "/assets/")
# By the names of what is beside a file: the better one first.
_ENCODINGS = (("br", ".br"), ("gzip", ".gz"))
_HASHED = "assets/"  # whose names change with their content
_FOR_GOOD = "public, max-age=31536000, immutable"
_ASK_FIRST = "no-cache"
# No script and no style but our own files, and no connection but to this server.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)


@value
class BuiltFile:
    content: bytes
    kind: str
    tag: str
    cache: str
    encoded: Mapping[str, bytes]


class Dashboard:
    def __init__(self, otherwise: ASGIApp, folder: Path = STATIC) -> None:
        self._otherwise = otherwise
        self._folder = folder
        self._files: dict[str, BuiltFile] = {}
        self._seen: tuple[int, int] | None = None  # of the page: another build is another

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None if scope["type"] != "http" else self.answer(scope)
        await (answer or self._otherwise)(scope, receive, send)

    def answer(self, scope: Scope) -> Response | None:
        """None where there is nothing for a browser."""
        if scope["method"] not in ("GET", "HEAD"):
            return None
        headers, path = Headers(scope=scope), scope["path"]
        accepts = headers.get("accept", "*/*")
        # At the very root is nothing but pages: there also who takes anything is shown one.
        is_page = "text/html" in accepts or (path == "/" and "*/*" in accepts)
        is_page = is_page and not path.startswith(_NOT_PAGES) and path != "/api"
        self._look()
        found = self._files.get(path.removeprefix("/"))
        if found is None and is_page:
            found = self._files.get(_INDEX)
            if found is None:
                return _not_built()
        return None if found is None else _answered(found, headers)

    def _look(self) -> None:
        """Read again when it was built again: whoever works on it does not start the server anew for that."""
        try:
            stat = (self._folder / _INDEX).stat()
        except OSError:
            self._files, self._seen = {}, None
            return
        seen = (stat.st_mtime_ns, stat.st_ino)
        if seen != self._seen:
            self._files, self._seen = _read(self._folder), seen


def is_built(folder: Path = STATIC) -> bool:
    return (folder / _INDEX).is_file()


def _read(folder: Path) -> dict[str, BuiltFile]:
    """All of it, into memory: one megabyte or two, and nobody waits for a disk."""
    suffixes = tuple(suffix for _, suffix in _ENCODINGS)
    found: dict[str, BuiltFile] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if not path.is_file() or name.endswith(suffixes) or path.name.startswith("."):
            continue
        content = path.read_bytes()
        encoded = {encoding: Path(f"{path}{suffix}") for encoding, suffix in _ENCODINGS}
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        if kind in ("application/javascript", "application/x-javascript"):  # what some systems have for it
            kind = "text/javascript"
        found[name] = BuiltFile(
            content=content,
            kind=kind,
            tag=f'"{hashlib.sha256(content).hexdigest()[:20]}"',
            cache=_FOR_GOOD if name.startswith(_HASHED) else _ASK_FIRST,
            encoded={encoding: other.read_bytes() for encoding, other in encoded.items() if other.is_file()},
        )
    return found


def _answered(file: BuiltFile, asked: Headers) -> Response:
    headers = {"ETag": file.tag, "Cache-Control": file.cache, "Vary": "Accept-Encoding", "Accept-Ranges": "none"}
    if file.kind == "text/html":
        headers["Content-Security-Policy"] = POLICY
    if file.tag in asked.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    taken = {each.partition(";")[0].strip() for each in asked.get("accept-encoding", "").split(",")}
    encoding = next((each for each, _ in _ENCODINGS if each in taken and each in file.encoded), None)
    content = file.content if encoding is None else file.encoded[encoding]
    if encoding is not None:
        headers["Content-Encoding"] = encoding
    return Response(content, media_type=file.kind, headers=headers)


def _not_built() -> Response:
    text = (
        "The API of this server works, and the dashboard was not built. In a checkout of the project, "
        "<code>make dashboard</code> builds it (with the node of the machine, or one from PyPI), and this server shows "
        "it at the next reload. A wheel of a release has it inside."
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape('Headrace')}</title></head><body><h1>The dashboard is not built</h1><p>{text}</p>"
        '<p><a href="/api/docs">What the API can do</a></p></body></html>'
    )
    return HTMLResponse(page, status_code=404, headers={"Content-Security-Policy": POLICY, "Cache-Control": _ASK_FIRST})
