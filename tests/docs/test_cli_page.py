"""The reference of the commands is generated from them, and says so truthfully."""

import subprocess
import sys
from pathlib import Path

from headrace.cli.failures import EXIT_CODES

ROOT = Path(__file__).resolve().parents[2]


def test_the_page_is_what_the_commands_generate():
    check = subprocess.run([sys.executable, "tools/cli_reference.py", "--check"], cwd=ROOT, check=False, timeout=100)
    assert check.returncode == 0, "docs/reference/cli.md is stale: run python tools/cli_reference.py"


def test_the_guide_has_every_exit_code():
    guide = (ROOT / "docs" / "howto" / "command-line.md").read_text()
    assert [code for code in EXIT_CODES if f"\n| {code} | " not in guide] == []
