"""Playwright, where it is installed. Elsewhere the tests are still collected, so that they are counted as they skip."""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING or find_spec("playwright") is not None:
    from playwright.async_api import (
        Browser,
        BrowserContext,
        ConsoleMessage,
        Dialog,
        Download,
        Error,
        Locator,
        Page,
        Request,
        Response,
        WebSocket,
        async_playwright,
        expect,
    )

    # About ten times what a step takes on a machine that does nothing else.
    expect.set_options(timeout=20_000)
else:
    Browser = BrowserContext = ConsoleMessage = Dialog = Download = Locator = Any
    Page = Request = Response = WebSocket = Any
    Error = Exception
    async_playwright = expect = None

__all__ = [
    "Browser",
    "BrowserContext",
    "ConsoleMessage",
    "Dialog",
    "Download",
    "Error",
    "Locator",
    "Page",
    "Request",
    "Response",
    "WebSocket",
    "async_playwright",
    "expect",
]
