"""What holds for every screen, in both themes and on a narrow one: it is there, nothing in it complains, nothing stands
beyond its edge or on something else, and axe finds nothing serious.
"""

import re
from pathlib import Path

import pytest

from tests.browser.browsing import NARROW, WIDE, Browsing, settled
from tests.browser.driver import expect
from tests.browser.looking import COLOURS, EVERYTHING, SIZES, axe_violations, layout_faults
from tests.browser.scene import Scene
from tests.browser.screens import SCREENS, Screen, show
from tests.support.browser import ROOT, need_axe

FORMS = {"light": ("light", WIDE, EVERYTHING), "dark": ("dark", WIDE, COLOURS), "narrow": ("dark", NARROW, SIZES)}


@pytest.fixture(scope="session")
def axe() -> str:
    return need_axe()


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.name)
async def test_a_screen_is_whole_readable_and_open_to_everybody(
    screen: Screen, browsing: Browsing, scene: Scene, axe: str
):
    """What a page complains of fails the test by itself (`browsing`)."""
    page = await show(browsing, screen, scene, size=WIDE)
    wrong: dict[str, list[str]] = {}
    for form, (scheme, (width, height), rules) in FORMS.items():
        await page.emulate_media(color_scheme=scheme)
        await expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        await page.set_viewport_size({"width": width, "height": height})
        await settled(page)
        faults = await layout_faults(page) + await axe_violations(page, axe, rules)
        if faults:
            wrong[form] = faults
    assert wrong == {}


def test_every_panel_has_its_screens():
    """A panel that is added is looked at as well: its folder, and each of its routes."""
    panels = {path.parent.name: path.read_text() for path in Path(ROOT, "dashboard/src/panels").glob("*/index.tsx")}
    anything = Scene(**dict.fromkeys(Scene.__slots__, "1"))
    addresses = [(screen.leads_to or screen.address(anything)).partition("?")[0] for screen in SCREENS]
    left_out: list[str] = []
    for name, text in panels.items():
        (path,) = re.findall(r'^  path: "([^"]*)"', text, re.MULTILINE)
        routes = re.findall(r'\{ (?:index: true|path: "([^"]+)"), lazy', text)
        assert routes, f"no routes were found in the index.tsx of {name}"
        for route in routes:
            below = "/".join(r"[^/]+" if part.startswith(":") else re.escape(part) for part in route.split("/") if part)
            wanted = "/" + "/".join(part for part in (path, below) if part)
            if not any(re.fullmatch(wanted, address) for address in addresses):
                left_out.append(f"{name}: {wanted}")
    assert left_out == []
