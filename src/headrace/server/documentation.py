"""/api/docs: the OpenAPI document as a page to read. No script, and nothing from elsewhere: it works offline."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

router = APIRouter(include_in_schema=False)

type _Json = Mapping[str, Any]

_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 18%, transparent); }
body { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; font: 0.9rem/1.5 system-ui, sans-serif; }
code, .path { font-family: ui-monospace, monospace; font-size: 0.95em; overflow-wrap: anywhere; }
nav ul { display: flex; flex-wrap: wrap; gap: 0.2rem 1rem; padding: 0; list-style: none; }
h2 { margin: 2.5rem 0 0.5rem; }
details { border: 1px solid var(--line); border-radius: 6px; margin: 0.4rem 0; padding: 0 0.8rem; }
summary { display: flex; flex-wrap: wrap; gap: 0.2rem 0.8rem; align-items: baseline; padding: 0.45rem 0; }
summary { cursor: pointer; }
.method { min-width: 4rem; font-weight: 700; }
.words { flex: 1 1 16rem; }
table { width: 100%; margin: 0.4rem 0 1rem; border-collapse: collapse; }
th, td { padding: 0.25rem 0.6rem 0.25rem 0; border-bottom: 1px solid var(--line); }
th, td { text-align: left; vertical-align: top; }
th { font-weight: 600; }
p { margin: 0.4rem 0; white-space: pre-line; }
a { color: light-dark(#0a6670, #54c3cc); }
"""
_POLICY = (
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
)


@router.get("/api/docs")
async def documentation(request: Request) -> HTMLResponse:
    """What the API can do, to read."""
    return HTMLResponse(page_of(request.app.openapi()), headers={"Content-Security-Policy": _POLICY})


def page_of(document: _Json) -> str:
    info = document["info"]
    tags = _tags(document)
    schemas = document["components"]["schemas"]
    contents = "".join(f'<li><a href="#{_anchor(tag["name"])}">{escape(tag["name"])}</a></li>' for tag in tags)
    sections = "".join(_section(document, tag) for tag in tags)
    shapes = "".join(_shape(name, schemas[name]) for name in sorted(schemas))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(info['title'])} API</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{escape(info['title'])} API <small>{escape(info['version'])}</small></h1>"
        f"<p>{escape(info.get('description', ''))}</p>"
        '<p>The same for programs: <a href="/api/openapi.json">/api/openapi.json</a> (OpenAPI).</p>'
        f'<nav aria-label="Contents"><ul>{contents}<li><a href="#shapes">shapes</a></li></ul></nav>'
        f'{sections}<h2 id="shapes">shapes</h2>{shapes}</main></body></html>'
    )


def _tags(document: _Json) -> list[_Json]:
    """In the order of the document; those that it does not describe behind them."""
    described: dict[str, _Json] = {tag["name"]: tag for tag in document.get("tags", ())}
    used = {tag: None for methods in document["paths"].values() for each in methods.values() for tag in each["tags"]}
    known = [tag for name, tag in described.items() if name in used]
    return [*known, *({"name": name} for name in used if name not in described)]


def _operations(document: _Json, tag: str) -> Iterator[tuple[str, str, _Json]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if tag in operation.get("tags", ()):
                yield path, method.upper(), operation


def _section(document: _Json, tag: _Json) -> str:
    operations = "".join(_operation(*each) for each in _operations(document, tag["name"]))
    return (
        f'<h2 id="{_anchor(tag["name"])}">{escape(tag["name"])}</h2>'
        f"<p>{escape(tag.get('description', ''))}</p>{operations}"
    )


def _operation(path: str, method: str, operation: _Json) -> str:
    who = (
        f"Needs the scope {operation['x-scope']} and the role {operation['x-role']}."
        if "x-scope" in operation
        else "Anybody may call it."
    )
    parameters = "".join(
        _row(
            each["name"], each["in"], each.get("schema", {}), each.get("description", ""), required=each.get("required")
        )
        for each in operation.get("parameters", ())
    )
    given = _table("Name", "In", parameters)
    body = f"<p>Body: {_type(_content(operation['requestBody']))}</p>" if "requestBody" in operation else ""
    answers = "".join(
        f"<p>{escape(status)}: {_type(_content(answer))}</p>"
        for status, answer in operation["responses"].items()
        if status.startswith("2")
    )
    return (
        f'<details><summary><span class="method">{method}</span><span class="path">{escape(path)}</span>'
        f'<span class="words">{escape(operation.get("summary", ""))}</span></summary>'
        f"<p>{escape(operation.get('description', ''))}</p><p>{escape(who)}</p>{given}{body}{answers}</details>"
    )


def _content(answer: _Json) -> _Json:
    contents = cast("Mapping[str, _Json]", answer.get("content", {}))
    empty: _Json = {}
    return next((content.get("schema", empty) for content in contents.values()), empty)


def _shape(name: str, schema: _Json) -> str:
    required = schema.get("required", ())
    rows = "".join(
        _row(each, "", field, field.get("description", ""), required=each in required)
        for each, field in schema.get("properties", {}).items()
    )
    kind = "" if rows else f"<p>{_type(schema)}</p>"
    return (
        f'<details id="shape-{escape(name)}"><summary><span class="path">{escape(name)}</span></summary>'
        f"<p>{escape(schema.get('description', ''))}</p>{kind}{_table('Field', '', rows)}</details>"
    )


def _table(first: str, second: str, rows: str) -> str:
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{name}</th>' for name in (first, second, "Type", "Meaning") if name)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _row(name: str, place: str, schema: _Json, words: str, *, required: Any) -> str:
    where = f"<td>{escape(place)}</td>" if place else ""
    must = "" if required else " (may be left out)"
    return (
        f'<tr><th scope="row"><code>{escape(name)}</code></th>{where}<td>{_type(schema)}</td>'
        f"<td>{escape(words + must)}</td></tr>"
    )


def _type(schema: _Json) -> str:
    """A type in a few words; a shape as a link to it."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f'<a href="#shape-{escape(name)}"><code>{escape(name)}</code></a>'
    if "const" in schema:
        return f"<code>{escape(repr(schema['const']))}</code>"
    if "enum" in schema:
        return " | ".join(f"<code>{escape(str(each))}</code>" for each in schema["enum"])
    for joined in ("anyOf", "oneOf", "allOf"):
        if joined in schema:
            return " | ".join(_type(each) for each in schema[joined])
    kind = schema.get("type", "anything")
    if kind == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if kind == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"object of {_type(schema['additionalProperties'])}"
    shown = f"{kind}, {schema['format']}" if "format" in schema else str(kind)
    return escape(shown)


def _anchor(name: str) -> str:
    return escape(name.replace(" ", "-"))
