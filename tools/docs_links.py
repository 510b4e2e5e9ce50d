"""A hook of mkdocs: what a page links to outside docs/ (a test, a deploy file) is named by its path.

The pages are read in two places: in the repository, where such a link works, and as a site, where it leads nowhere.
"""

import posixpath
import re
from typing import Any

_LINK = re.compile(r"\[(?P<text>[^\]]+)\]\((?P<target>\.\./[^)\s#]+)(?:#[^)\s]*)?\)")
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
    return "".join(part if part.startswith("```") else _LINK.sub(named, part) for part in parts)
