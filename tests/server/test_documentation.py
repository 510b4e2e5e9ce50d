"""/api/docs is a page of this server's own: whole, safe, and without anything from elsewhere."""

import re
from html.parser import HTMLParser

from headrace.server.documentation import page_of
from tests.server.serving import Serve


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


async def test_it_works_offline(serve_sqlite: Serve):
    async with serve_sqlite() as server:
        answer = await server.nobody.get("/api/docs", headers={"Accept": "text/html"})
    assert answer.status_code == 200
    page = _Page(answer.text)
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "img", "iframe")]
    addresses = [attributes.get("href") or "" for tag, attributes in page.tags if tag == "a"]
    assert addresses
    assert all(address.startswith(("#", "/")) for address in addresses)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert re.search(r"style-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


async def test_it_has_every_operation_and_every_link_leads_somewhere(serve_sqlite: Serve):
    async with serve_sqlite() as server:
        text = (await server.nobody.get("/api/docs")).text
        document = server.api.openapi()
    for path, methods in document["paths"].items():
        for method in methods:
            assert f'<span class="method">{method.upper()}</span><span class="path">{path}</span>' in text
    page = _Page(text)
    places = {attributes.get("id") for _, attributes in page.tags}
    leads = {address[1:] for _, attributes in page.tags if (address := attributes.get("href") or "").startswith("#")}
    assert leads <= places
    assert leads > {"tasks", "shapes", "shape-TaskDetail"}
    assert "Needs the scope admin and the role admin." in text


def test_what_a_route_says_of_itself_is_text():
    operation = {
        "tags": ["t"],
        "summary": "<script>alert(1)</script>",
        "parameters": [{"name": "<b>", "in": "query", "schema": {"enum": ["<i>"]}, "description": '"<u>'}],
        "responses": {"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/A<p>"}}}}},
    }
    document = {
        "info": {"title": "<x>", "version": "1"},
        "tags": [{"name": "t", "description": "<em>"}],
        "paths": {"/<a>": {"get": operation}},
        "components": {"schemas": {"A<p>": {"properties": {"<hr>": {"type": "array", "items": {"const": "<br>"}}}}}},
    }
    found = {tag for tag, _ in _Page(page_of(document)).tags}
    assert not found & {"script", "b", "i", "u", "em", "hr", "br", "x"}
