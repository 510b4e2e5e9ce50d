"""Pages as somebody sees them. Whatever a page complains of is kept, and fails its test unless that expects it."""

import re
from dataclasses import dataclass, field
from typing import Literal

from tests.browser.driver import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    Request,
    Response,
    expect,
)
from tests.browser.stage import Stage

PATIENCE = 20_000.0  # milliseconds
WIDE = (1280, 900)
NARROW = (390, 844)
ZONE = "Asia/Tokyo"  # neither UTC nor that of a developer's machine, so that what is shown in the wrong one is seen

type Scheme = Literal["light", "dark"]


@dataclass  # without slots: Playwright keeps a note on whose methods listen to it
class Complaints:
    """Of every page of one test."""

    heard: list[str] = field(default_factory=list[str])
    _forgiven: list[re.Pattern[str]] = field(default_factory=list[re.Pattern[str]])

    def forgive(self, pattern: str) -> None:
        """What the test itself brings about: `forgive("status of 401")`."""
        self._forgiven.append(re.compile(pattern))

    @property
    def left(self) -> list[str]:
        return [each for each in self.heard if not any(pattern.search(each) for pattern in self._forgiven)]

    def listen(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.heard.append(f"{page.url}: uncaught: {error}"))
        page.on("requestfailed", self._request_failed)
        page.on("response", self._response)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location.get("url", "")
            self.heard.append(f"console {message.type}: {message.text} ({place})")

    def _request_failed(self, request: Request) -> None:
        # A page that is left gives up what it had asked for.
        if request.failure != "net::ERR_ABORTED":
            self.heard.append(f"{request.method} {request.url}: {request.failure}")

    def _response(self, response: Response) -> None:
        if response.status >= 500:
            self.heard.append(f"{response.request.method} {response.url}: {response.status}")


class Browsing:
    def __init__(self, browser: Browser, stage: Stage) -> None:
        self._browser = browser
        self.stage = stage
        self.complaints = Complaints()
        self._contexts: list[BrowserContext] = []

    async def open(
        self,
        address: str = "/",
        person: str | None = "oskar",
        *,
        scheme: Scheme = "light",
        size: tuple[int, int] = WIDE,
        reduced_motion: bool = False,
    ) -> Page:
        """A page of a new visitor, who is logged in as this person, or as nobody."""
        context = await self._browser.new_context(
            base_url=self.stage.address,
            color_scheme=scheme,
            viewport={"width": size[0], "height": size[1]},
            timezone_id=ZONE,
            locale="en-GB",
            accept_downloads=True,
            reduced_motion="reduce" if reduced_motion else "no-preference",
        )
        self._contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.on("page", self.complaints.listen)
        await context.grant_permissions(["clipboard-read", "clipboard-write"])
        if person is not None:
            await context.add_cookies(self.stage.sessions.cookies(person))  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto(address)
        return page

    async def close(self) -> None:
        for context in self._contexts:
            try:
                await context.close()
            except Error:  # the browser itself is gone, and the test has failed of it
                continue
        self._contexts.clear()


async def settled(page: Page) -> None:
    """What was asked for is there, and is shown: no placeholder, no busy list, fonts loaded, two frames painted."""
    await expect(page.get_by_role("heading", level=1)).to_be_visible()
    await expect(page.locator("[aria-label=Reading], [aria-busy=true]")).to_have_count(0)
    await page.evaluate("() => document.fonts.ready.then(() => undefined)")
    await page.evaluate("() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")


def newest_row(lines: Locator) -> Locator:
    """The last line of `catalogue.load` that is drawn. Which one that is when it is looked at, nobody knows."""
    return lines.get_by_text(re.compile(r"row \d+ of the catalogue")).last


async def row_of(line: Locator) -> int:
    found = re.search(r"row (\d+) of", await line.inner_text())
    assert found is not None
    return int(found[1])


def heading(page: Page, text: str | re.Pattern[str]):
    return page.get_by_role("heading", level=1, name=text)
