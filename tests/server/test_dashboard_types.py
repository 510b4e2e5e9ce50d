"""The dashboard's types are made of the OpenAPI document that is committed beside them: the one of this server."""

import re
import runpy
from pathlib import Path

_DASHBOARD = Path(__file__).parents[2] / "dashboard"
_ANEW = "run `npm run types` in dashboard/, and commit src/api"


def test_the_committed_document_is_the_one_that_the_server_gives():
    made = runpy.run_path(str(_DASHBOARD / "scripts/openapi.py"))["document"]()
    assert (_DASHBOARD / "src/api/openapi.json").read_text(encoding="utf-8") == made, _ANEW


def test_the_types_are_of_that_document():
    """What the generator writes needs node; that every path and every schema is there does not."""
    document = runpy.run_path(str(_DASHBOARD / "scripts/openapi.py"))["described"]()
    types = (_DASHBOARD / "src/api/schema.ts").read_text(encoding="utf-8")
    paths = set(re.findall(r'^    "(/[^"]*)": \{$', types, re.MULTILINE))
    assert paths == set(document["paths"]), _ANEW
    schemas = set(re.findall(r"^export type \w+ = components\['schemas'\]\['([^']+)'\];$", types, re.MULTILINE))
    assert schemas == set(document["components"]["schemas"]), _ANEW
