"""What must hold for every page, looked at from inside of it."""

from pathlib import Path
from typing import Any

from tests.browser.driver import Page

_LAYOUT = Path(__file__).with_name("layout.js").read_text()
# The rules of WCAG 2.2 AA, and what axe calls good practice (headings, landmarks).
EVERYTHING = {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# What another theme, and another width, can change: to look for the rest again would take long and find the same.
COLOURS = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}
SIZES = {"type": "rule", "values": ["target-size", "scrollable-region-focusable"]}


async def layout_faults(page: Page) -> list[str]:
    """What stands beyond the edge, and texts that stand on each other."""
    return await page.evaluate(_LAYOUT)


async def axe_violations(page: Page, axe: str, rules: dict[str, Any] = EVERYTHING) -> list[str]:
    """Serious and critical ones, with the elements. `axe` is the text of axe-core."""
    if not await page.evaluate("() => 'axe' in window"):
        await page.evaluate(axe)
    found: dict[str, Any] = await page.evaluate(
        "rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules
    )
    return [
        f"{violation['id']} ({violation['impact']}): {violation['help']}: {node['html'][:200]} {_why(node)}"
        for violation in found["violations"]
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


def _why(node: dict[str, Any]) -> str:
    return "; ".join(check["message"] for kind in ("any", "all", "none") for check in node[kind])[:300]
