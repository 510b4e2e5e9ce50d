"""Write the OpenAPI document of the server, as the dashboard's types are made of:   scripts/openapi.py FILE"""

import json
import sys
from pathlib import Path
from typing import Any

from headrace import App
from headrace.server.application import create_application
from headrace.server.options import ServerOptions


def document() -> str:
    return json.dumps(described(), indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def described() -> dict[str, Any]:
    """The same for the same routes: the version of the package is not part of the types."""
    made = create_application(App("sqlite:///unused.db"), ServerOptions(auth=False)).openapi()
    made["info"]["version"] = "0"
    for path in made["paths"].values():
        for operation in path.values():
            _join_problems(operation["responses"])
    return made


def _join_problems(responses: dict[str, Any]) -> None:
    """Every refusal has one shape: said once and not for each status, the types are a third as long."""
    refusals = [status for status in responses if status[0] in "45"]
    problem = next((responses[status]["content"] for status in refusals), None)
    for status in refusals:
        del responses[status]
    if problem is not None:
        responses["default"] = {"description": "A problem", "content": problem}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
