"""Which file system a path lies on: SQLite's locks do not hold on a network file system."""

from pathlib import Path

# 9p and overlay are what containers see of their host's disk; their locks work within one machine.
NETWORK = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "fuse.sshfs"})

_MOUNTS = Path("/proc/mounts")


def file_system(path: Path, mounts: str | None = None) -> str | None:
    """The type of the file system that holds `path`, None where nothing says so. `mounts` as in /proc/mounts."""
    if mounts is None:
        try:
            mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        point = Path(_unescaped(parts[1]))
        # A later mount on the same point hides the earlier one.
        if path.is_relative_to(point) and (found is None or len(point.parts) >= found[0]):
            found = (len(point.parts), parts[2])
    return found[1] if found else None


def _unescaped(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        text = text.replace(code, character)
    return text
