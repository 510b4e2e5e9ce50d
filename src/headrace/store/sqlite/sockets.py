"""The datagram sockets of a file's listeners: one folder for each file, there for as long as somebody listens in it."""

import errno
import hashlib
import itertools
import os
import socket
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PREFIX = "headrace"
_NUMBERS = itertools.count()
_TRIES = 100
_DATAGRAMS = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC


def socket_folder(path: str) -> Path:
    """Where the listeners of a database file have their sockets; short, as a socket's path must be."""
    token = hashlib.sha256(os.path.realpath(path).encode()).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"{_PREFIX}-{os.getuid()}-{token}"


def addresses(folder: Path) -> list[str]:
    """Of whoever listens there."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if entry.name.endswith(".sock")]
    except OSError:
        return []


def send(folder: Path, messages: Iterable[str]) -> None:
    """To every listener of the folder, after a commit; from any thread. Never blocks and never fails."""
    listening = addresses(folder)
    if not listening:
        return
    # Its own socket each time (6 µs): one that were kept would be shared by threads, and by a process and its forks.
    with suppress(OSError), socket.socket(socket.AF_UNIX, _DATAGRAMS) as sender:
        for message in messages:
            for address in listening:
                _send_one(sender, message.encode(errors="replace"), address)


def _send_one(sender: socket.socket, message: bytes, address: str) -> None:
    try:
        sender.sendto(message, address)
    except OSError as error:
        # Nobody reads there any more. A full buffer is as good as delivered: its reader has enough to wake up for.
        if is_refusal(error):
            remove(address)


def bound(folder: Path) -> socket.socket | None:
    """A socket of one's own in the folder; None where that cannot be had, and polling has to do."""
    for _ in range(_TRIES):
        receiver = socket.socket(socket.AF_UNIX, _DATAGRAMS)
        try:
            with suppress(FileExistsError):
                folder.mkdir(mode=0o700)
            if _is_own(folder):
                address = folder / f"{os.getpid()}-{next(_NUMBERS)}.sock"
                # A process of the same number may have died here.
                address.unlink(missing_ok=True)
                receiver.bind(str(address))
                return receiver
        except FileNotFoundError:  # the last of the others left at this moment, and took the folder along
            receiver.close()
            continue
        except OSError:
            pass
        receiver.close()
        return None
    return None


def unbound(receiver: socket.socket) -> None:
    """Close it, and leave nothing behind: the last one takes the folder along."""
    address = receiver.getsockname()
    receiver.close()
    remove(address)


def remove(address: str) -> None:
    with suppress(OSError):
        os.unlink(address)
    with suppress(OSError):  # not empty: others listen there
        os.rmdir(os.path.dirname(address))


def remove_forgotten() -> None:
    """What listeners of this user left behind that were killed: of any file, which may be gone as well."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}-{os.getuid()}-*"):
        with suppress(OSError):
            if _is_own(folder):
                for address in addresses(folder):
                    if _is_dead(address):
                        remove(address)
                folder.rmdir()


def _is_dead(address: str) -> bool:
    with socket.socket(socket.AF_UNIX, _DATAGRAMS) as probe:
        try:
            probe.connect(address)
        except OSError as error:
            return is_refusal(error)
    return False


def is_refusal(error: OSError) -> bool:
    """It says that nobody reads at an address any more."""
    return error.errno == errno.ECONNREFUSED


def _is_own(folder: Path) -> bool:
    """It is trusted only if nobody else can write there."""
    status = folder.lstat()
    return status.st_uid == os.getuid() and status.st_mode & 0o170777 == 0o040700
