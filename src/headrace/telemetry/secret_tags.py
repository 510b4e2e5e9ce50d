"""Secrets between the tags of XML: `<password>…</password>`, whatever is inside. Pure, and linear in the text."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

# Begins at a `<` and never reads past the next one.
_TAG = re.compile(r"<(?P<slash>/?)(?P<name>[^\W\d][\w.:-]{0,199}+)(?:\s[^<>]*+)?(?P<alone>(?<=/)|/)?>")


def without_tagged(
    text: str, *, is_secret: Callable[[str], bool], is_shown: Callable[[str, str], bool], mark: str
) -> str:
    """`is_shown(inside, name)`: it is no secret, although its name is one's."""
    pieces: list[str] = []
    done = looked = 0
    for start, end, name in sorted(_elements(text)):
        if start < looked or not is_secret(name):
            continue
        looked = end
        if not is_shown(text[start:end].strip(), name):
            pieces += [text[done:start], mark]
            done = end
    return "".join([*pieces, text[done:]]) if pieces else text


def _elements(text: str) -> Iterator[tuple[int, int, str]]:
    """Where the inside of each element is. What is never closed, as `<key>` in a line of help, is none."""
    opened: list[tuple[str, int]] = []
    waiting: Counter[str] = Counter()
    for tag in _TAG.finditer(text):
        name = tag["name"]
        if not tag["slash"]:
            if tag["alone"] is None:
                opened.append((name, tag.end()))
                waiting[name] += 1
            continue
        while waiting[name]:
            last, start = opened.pop()
            waiting[last] -= 1
            if last == name:
                yield start, tag.start(), name
                break
