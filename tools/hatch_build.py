"""Before a wheel or a source archive is made, the dashboard is built into it. An editable install never comes here."""

import os
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_BUILT = "src/headrace/server/static/index.html"
_REQUIRED = "HEADRACE_REQUIRE_DASHBOARD"


class DashboardHook(BuildHookInterface[Any]):
    """Where node cannot be had the rest is made without it, and says so; HEADRACE_REQUIRE_DASHBOARD=1 refuses."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        root = Path(self.root)
        done = subprocess.run(["sh", "tools/dashboard", "build"], cwd=root, capture_output=True, text=True, check=False)
        if (root / _BUILT).is_file() and done.returncode == 0:
            return
        if os.environ.get(_REQUIRED):
            raise RuntimeError(f"the dashboard could not be built:\n{done.stdout}{done.stderr}")
        self.app.display_warning(f"headrace is packed without its dashboard: {done.stderr.strip().splitlines()[:1]}")
