"""Weighs the pages, and times when they first show something and can be used, in Chromium.

    python -m benchmarks.pages http://127.0.0.1:8000 http://127.0.0.1:8001    # two versions beside each other

Bytes are what the page itself takes, compressed as sent, without what the API answers. Each visit has an empty cache;
visits of the addresses alternate, and of each figure the median is told. Times are of this machine.
"""

import asyncio
import shutil
import sys
from statistics import median

from playwright.async_api import Browser, async_playwright

VISITS = 5
PAGES = {"/": "#question", "/debug": "main form"}
"""Of each page what somebody waits for."""
FIGURES = """() => {
    const files = [...performance.getEntriesByType("navigation"), ...performance.getEntriesByType("resource")]
        .filter(({ name }) => !new URL(name).pathname.match(/^\\/(api|readyz)/));
    const [paint] = performance.getEntriesByName("first-contentful-paint");
    return [files.reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0), paint?.startTime ?? 0];
}"""


async def visit(browser: Browser, address: str, awaited: str) -> tuple[float, float, float]:
    """Return kilobytes, and the milliseconds until something is shown and until the page can be used."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(address, wait_until="commit")
    await page.wait_for_selector(awaited)
    usable = await page.evaluate("performance.now()")
    await page.wait_for_load_state("networkidle")
    size, painted = await page.evaluate(FIGURES)
    await context.close()
    return size / 1000, painted, usable


async def main(addresses: list[str]) -> None:
    """Print a line for each page of each address."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for path, awaited in PAGES.items():
            visits: dict[str, list[tuple[float, float, float]]] = {address: [] for address in addresses}
            for _ in range(VISITS):
                for address, seen in visits.items():
                    seen.append(await visit(browser, address + path, awaited))
            for address, seen in visits.items():
                size, painted, usable = map(median, zip(*seen, strict=True))
                print(f"{path:10} {address:24} {size:6.1f} kB  first paint {painted:5.0f} ms  usable {usable:5.0f} ms")
        await browser.close()


asyncio.run(main(sys.argv[1:]))
