"""The looks themselves: each finds what it is for, and leaves alone what is meant."""

import pytest

from tests.browser.driver import Browser
from tests.browser.looking import axe_violations, layout_faults
from tests.support.browser import need_axe

_PAGE = "<!doctype html><html lang=en><title>t</title><meta name=viewport content='width=device-width'><body>{}"


async def _faults(browser: Browser, body: str) -> list[str]:
    page = await browser.new_page(viewport={"width": 390, "height": 800})
    try:
        await page.set_content(_PAGE.format(body))
        return await layout_faults(page)
    finally:
        await page.close()


@pytest.mark.parametrize(
    "body",
    [
        "<p style='position:absolute;top:20px'>first words</p><p style='position:absolute;top:24px'>other words</p>",
        "<div style='display:flex'><span style='width:40px;white-space:nowrap'>a long text</span><b>beside</b></div>",
        "<svg width=200 height=40><text x=10 y=20>first</text><text x=20 y=22>other</text></svg>",
    ],
)
async def test_texts_on_each_other_are_found(browser: Browser, body: str):
    (fault,) = await _faults(browser, body)
    assert "stand on each other" in fault


@pytest.mark.parametrize(
    "body",
    [
        "<div style='width:600px'>wide</div>",
        "<p style='white-space:nowrap'>" + "one line that does not end where the window does " * 4,
        "<div style='overflow:clip'><p style='position:fixed;left:350px;white-space:nowrap'>beyond the edge</p></div>",
    ],
)
async def test_what_stands_beyond_the_edge_is_found(browser: Browser, body: str):
    faults = await _faults(browser, body)
    assert faults, body
    assert any("px" in fault for fault in faults)


@pytest.mark.parametrize("above", ["", "<div style='height:3000px'></div>"])
async def test_a_text_below_something_is_found(browser: Browser, above: str):
    card = "<div style='position:relative;background:white;margin-top:-40px'>a card<br>of two lines</div>"
    (fault,) = await _faults(browser, f"{above}<p>a text that nobody reads</p>{card}")
    assert fault == "<p> “a text that nobody reads” is covered by <div> “a cardof two lines”"


@pytest.mark.parametrize(
    "body",
    [
        "<p>one</p><p>two</p><ul style='line-height:1'><li>three<li>four</ul>",
        # What scrolls by itself, what is cut on purpose, and what only others hear.
        "<div style='overflow-x:auto;width:200px'><div style='width:900px'>"
        + "a table of many columns " * 9
        + "</div></div>",
        "<p style='overflow:hidden;text-overflow:ellipsis;white-space:nowrap;width:90px'>a long name that is cut</p>",
        "<b style='position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden'>heard</b><p>seen</p>",
        "<details><summary>more</summary><p style='position:absolute;top:0'>folded away</p></details>",
        # A bar that covers what is below it.
        "<header style='position:fixed;top:0;left:0;right:0;height:40px;background:white'>bar</header><p>below it</p>",
    ],
)
async def test_what_is_meant_is_left_alone(browser: Browser, body: str):
    assert await _faults(browser, body) == []


async def test_axe_finds_what_cannot_be_read_and_what_has_no_name(browser: Browser):
    page = await browser.new_page()
    await page.set_content(_PAGE.format("<p style='color:#bbb;background:#fff'>pale</p><button></button>"))
    found = await axe_violations(page, need_axe())
    await page.close()
    assert {each.partition(" ")[0] for each in found} == {"color-contrast", "button-name"}
