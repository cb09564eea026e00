"""Takes the pictures of README and docs: ``python docs/tools/screenshots.py page.html`` (needs chromium).

The page comes from ``textbench leaderboard leaderboards --html page.html``.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

DESKTOP, PHONE = (1200, 860), (390, 844)
REPLAY = "#replay?scenario=snake&a=tiny&b=tiny-msgrpo-snake&seed=40012&step=5"
PICTURES = {
    "leaderboard": ("#leaderboard", "light", DESKTOP),
    "leaderboard-phone": ("#leaderboard", "light", PHONE),
    "scenario": ("#leaderboard?scenario=frozen-lake-slippery", "light", DESKTOP),
    "compare": ("#compare?a=greedy&b=tiny-msgrpo-snake", "light", DESKTOP),
    "replay": (REPLAY, "dark", DESKTOP),
    "replay-phone": ("#replay?scenario=frozen-lake&a=tiny&step=2", "light", PHONE),
}


def main(page: str) -> int:
    """Write ``docs/images/NAME.png`` for every picture."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("chromium is missing: apt-get install chromium", file=sys.stderr)
        return 2
    folder = Path(__file__).parents[1] / "images"
    folder.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--headless=new", "--no-sandbox", "--disable-gpu"]
        )
        for name, (address, scheme, (width, height)) in PICTURES.items():
            tab = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
            tab.goto(Path(page).resolve().as_uri() + address)
            tab.locator("main table >> visible=true").first.wait_for()
            tab.wait_for_timeout(500)  # the plot is drawn once the scores are unpacked
            tab.screenshot(path=folder / f"{name}.png")
            tab.close()
        browser.close()
    return 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
