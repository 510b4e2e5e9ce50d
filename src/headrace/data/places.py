"""From a URL to a backend. A library is imported only when its URL is used."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from headrace.core.errors import MissingExtra, SettingsError
from headrace.data.backend import Backend
from headrace.store.connect import masked_url

if TYPE_CHECKING:
    from headrace.data.formats.fsspec import FsspecFiles

_CLICKHOUSE = ("chdb", "clickhouse", "clickhouses")
_EXAMPLES = "file:///folder, s3://bucket/folder, chdb:///folder or clickhouse://user@host/database"


def open_backend(url: str) -> Backend:
    """The backend of this URL. SettingsError for one that nothing understands, MissingExtra for a library."""
    scheme = urlsplit(url).scheme if "://" in url else ""
    if scheme in _CLICKHOUSE:
        try:
            module = import_module("headrace.data.formats.clickhouse.backend")
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "headrace":
                raise
            raise MissingExtra(f"{scheme}:// needs ClickHouse: pip install 'headrace[clickhouse]'") from error
        return module.ClickHouseBackend(url)
    try:
        from headrace.data.formats.arrow import ArrowBackend
        from headrace.data.formats.files import LocalFiles
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise MissingExtra("tables need pyarrow, which is not installed: pip install 'headrace[data]'") from error
    if not is_remote(url):
        return ArrowBackend(LocalFiles(local_path(url)))
    return ArrowBackend(fsspec_files(url))


def is_remote(url: str) -> bool:
    """Anything but a folder of this machine."""
    return "://" in url and not url.startswith("file://")


def local_path(url: str) -> Path:
    """`file:///folder` or a bare path; a relative one belongs to the working directory of now."""
    if "://" not in url:
        if not url:
            raise SettingsError(f"the data URL is empty; write {_EXAMPLES}")
        return Path(url).absolute()
    parts = urlsplit(url)
    if parts.netloc or parts.query or not parts.path.strip("/"):
        raise SettingsError(f"data URL {url!r} is no folder of this machine; write {_EXAMPLES}")
    return Path(unquote(parts.path))


def fsspec_files(url: str) -> "FsspecFiles":
    try:
        from headrace.data.formats.fsspec import FsspecFiles
    except ModuleNotFoundError as error:
        if error.name != "fsspec":
            raise
        raise MissingExtra(
            f"{masked_url(url)} needs fsspec, which is not installed: pip install 'headrace[data]'"
        ) from error
    return FsspecFiles(url)
