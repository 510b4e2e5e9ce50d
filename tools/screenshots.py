"""Writes docs/images/dashboard/*.png: the screens of the dashboard, light, dark, and on a narrow screen.

    .venv/bin/python tools/screenshots.py            # all of them
    .venv/bin/python tools/screenshots.py tasks jobs # those whose names begin so

The pages are those of the tests (tests/browser): a real server and a real worker, on a ledger with something in every
state. A page that complains, has something beyond its edge or texts on each other is named, and the exit code is 1.
Needs what the tests need: Chromium, headrace[browser], `make dashboard`.
"""

import asyncio
import base64
import re
import struct
import sys
import tempfile
import zlib
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.browser.browsing import NARROW, Browsing, Scheme, settled  # noqa: E402
from tests.browser.driver import Page, async_playwright, expect  # noqa: E402
from tests.browser.looking import layout_faults  # noqa: E402
from tests.browser.scene import GATE, Scene, set_up  # noqa: E402
from tests.browser.screens import SCREENS, Screen, show  # noqa: E402
from tests.browser.stage import Stage  # noqa: E402
from tests.support.browser import FLAGS, find_chromium  # noqa: E402

PICTURES = ROOT / "docs" / "images" / "dashboard"
WIDE = (1200, 800)
# Others are looked at in the tests alone: the same page for somebody else, and forms in front of a page that is here.
NOT_DRAWN = re.compile(r".*-(user|viewer|none|clear|add|edit|open|details|lists|command|new-user|new-token)|not-found")
FORMS: dict[str, tuple[Scheme, tuple[int, int]]] = {
    "light": ("light", WIDE),
    "dark": ("dark", WIDE),
    "narrow": ("light", NARROW),
}


# The 256 colours that are used most and differ; each pixel takes the nearest.
_PALETTE = """async (text) => {
  const image = await createImageBitmap(await (await fetch(`data:image/png;base64,${text}`)).blob());
  const { width, height } = image;
  const context = new OffscreenCanvas(width, height).getContext("2d");
  context.drawImage(image, 0, 0);
  const pixels = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer);
  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const apart = (one, other) => one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0);
  const palette = [];
  const places = new Map();
  for (const [pixel] of [...counts].sort((one, other) => other[1] - one[1])) {
    const colour = parts(pixel);
    let place = 0;
    for (let at = 1; at < palette.length; at++) {
      if (apart(palette[at], colour) < apart(palette[place], colour)) place = at;
    }
    if (palette.length < 256 && (palette.length === 0 || apart(palette[place], colour) > 8)) {
      place = palette.push(colour) - 1;
    }
    places.set(pixel, place);
  }
  const indices = Uint8Array.from(pixels, (pixel) => places.get(pixel));
  let written = "";
  const most = 32768; // arguments of one call
  for (let at = 0; at < indices.length; at += most) written += String.fromCharCode(...indices.subarray(at, at + most));
  return [width, height, palette.flat(), btoa(written)];
}"""


async def draw(browsing: Browsing, press: Page, screen: Screen, scene: Scene) -> list[str]:
    """Writes the pictures of one screen, and says what is wrong with it."""
    wrong: list[str] = []
    page = await show(browsing, screen, scene, size=WIDE)
    for form, (scheme, (width, height)) in FORMS.items():
        await page.emulate_media(color_scheme=scheme)
        await expect(page.locator("html")).to_have_attribute("data-theme", scheme)
        await page.set_viewport_size({"width": width, "height": height})
        await settled(page)
        wrong += [f"{screen.name}, {form}: {fault}" for fault in await layout_faults(page)]
        picture = await page.screenshot(scale="css", animations="disabled")
        (PICTURES / f"{screen.name}-{form}.png").write_bytes(await smaller(press, picture))
    await browsing.close()
    return wrong


async def smaller(press: Page, picture: bytes) -> bytes:
    """The same picture with a palette, which takes a third; its pixels are read by the browser."""
    width, height, colours, pixels = await press.evaluate(_PALETTE, base64.b64encode(picture).decode())
    palette, indices = bytes(colours), base64.b64decode(pixels)
    rows = b"".join(b"\0" + indices[row * width : (row + 1) * width] for row in range(height))
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)
    parts = ((b"IHDR", header), (b"PLTE", palette), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )


async def main(names: list[str]) -> int:
    drawn = [screen for screen in SCREENS if not NOT_DRAWN.fullmatch(screen.name)]
    chosen = [screen for screen in drawn if not names or screen.name.startswith(tuple(names))]
    chromium = find_chromium()
    if chromium is None or async_playwright is None or not chosen:
        print("needs Chromium, headrace[browser], and the name of a screen that exists", file=sys.stderr)
        return 2
    PICTURES.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="screenshots-") as folder:
        stage = Stage(Path(folder), f"sqlite:///{folder}/shop.db")
        await stage.app.aupgrade()
        async with async_playwright() as playwright, stage:
            scene = await set_up(stage)
            browser = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
            browsing, press = Browsing(browser, stage), await browser.new_page()
            for screen in chosen:
                wrong += await draw(browsing, press, screen, scene)
                print(screen.name)
            wrong += browsing.complaints.left
            stage.open_gate(GATE)
            await browser.close()
    print(*wrong, sep="\n", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
