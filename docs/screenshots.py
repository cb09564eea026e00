"""Takes the README's pictures of a page: ``python docs/screenshots.py page.html`` (needs Debian's chromium).

The page comes from ``textbench leaderboard RUN --html page.html``.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

PICTURES = {
    "leaderboard": ("#leaderboard", "light"),
    "replay": ("#replay?scenario=snake&a=tiny&b=tiny-msgrpo-snake&seed=40012&step=5", "dark"),
}


def main(page: str) -> int:
    """Write ``docs/images/NAME.png`` for every picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is missing: apt-get install chromium", file=sys.stderr)
        return 2
    folder = Path(__file__).parent / "images"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--headless=new", "--no-sandbox", "--disable-gpu"]
        )
        for name, (address, scheme) in PICTURES.items():
            tab = browser.new_page(viewport={"width": 1200, "height": 860}, color_scheme=scheme)
            tab.goto(Path(page).resolve().as_uri() + address)
            tab.locator("table >> visible=true").first.wait_for()
            tab.screenshot(path=folder / f"{name}.png")
            tab.close()
        browser.close()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
