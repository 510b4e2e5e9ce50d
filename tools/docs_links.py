"""A hook of mkdocs. The pages are read in two places: in the repository and as a site, which differ in two things.

What a page links to outside docs/ (a test, a deploy file) leads nowhere on the site: there it is named by its path. And
a diagram in Mermaid's language is drawn by forges; the site would fetch a program from elsewhere for it, so there it is
text, folded.
"""

import html
import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>\.\./[^)\s#]+)(?:#[^)\s]*)?\)")
_MERMAID = re.compile(r"```mermaid\n(?P<code>.*)```\Z", re.DOTALL)
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    folder = posixpath.join("docs", posixpath.dirname(page.file.src_uri))

    def named(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link["target"]))
        if path.startswith("docs/"):
            return link[0]
        text = link["text"].strip("`")
        return f"`{path}`" if text in path else f"{link['text']} (`{path}`)"

    parts = _FENCE.split(markdown)
    return "".join(_folded(part) if part.startswith("```") else _LINK.sub(named, part) for part in parts)


def _folded(block: str) -> str:
    found = _MERMAID.match(block)
    if found is None:
        return block
    return f"<details><summary>For Mermaid</summary><pre>{html.escape(found['code'])}</pre></details>"
