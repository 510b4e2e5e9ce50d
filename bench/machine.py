"""What the figures were taken on: hardware and versions, and nothing that names the machine."""

import os
import platform
import re
import shutil
import sqlite3
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

from bench.processes import ROOT
from bench.services import Services, file_system

_PACKAGES = (
    "headrace", "pgqueuer", "procrastinate", "chancy", "dramatiq", "celery", "huey", "asyncpg", "psycopg", "redis",
    "uvloop",
)  # fmt: skip


def machine() -> dict[str, str]:
    described = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    return {
        "processor": described.group(1).strip() if described else platform.machine(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": platform.freedesktop_os_release().get("PRETTY_NAME", platform.system()),
        "SQLite files on": file_system(ROOT),
    }


def versions(services: Services) -> dict[str, str]:
    found = {"Python": platform.python_version(), "SQLite": sqlite3.sqlite_version}
    if services.postgres is not None:
        with services.postgres.connect() as connection:
            row = connection.execute("SHOW server_version").fetchone()
        found["PostgreSQL"] = str(row[0]).split()[0] if row else "?"
    if program := shutil.which("redis-server"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
        found["Redis"] = next(iter(re.findall(r"v=(\S+)", said)), "?")
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
