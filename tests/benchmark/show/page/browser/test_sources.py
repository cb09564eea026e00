"""Where the page is read from, and how fast it opens."""

import json
import threading
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from benchmark.score.document import ViewDocument
from benchmark.show.page import render_page
from benchmark.show.page.server import PageServer

pytestmark = pytest.mark.browser

Documents = dict[str, ViewDocument]


def test_the_local_server_shows_the_same(browser: Any, documents: Documents) -> None:
    with PageServer(render_page(documents["usual"])) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            tab = browser.new_page()
            faults: list[str] = []
            tab.on("console", lambda message: faults.append(message.text))
            tab.goto(server.url + "#replay?scenario=snake&a=random")
            tab.wait_for_selector(".panel .board")
            tab.keyboard.press("ArrowRight")
            assert faults == []
            tab.close()
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow
def test_opens_with_five_thousand_episodes(
    visit: Any, documents: Documents, capsys: pytest.CaptureFixture[str]
) -> None:
    document = deepcopy(documents["usual"])
    originals = list(document["episodes"])
    for copy in range(1, 5000 // len(originals) + 1):
        for view in originals:
            # other seeds, and texts of their own, or the page would store them once
            steps: dict[str, Any] = dict(view["steps"])
            first = len(document["texts"])
            document["texts"] += [f"{document['texts'][place]} {copy}" for place in steps["response"]]
            steps["response"] = list(range(first, len(document["texts"])))
            document["episodes"].append(
                view | {"seed": view["seed"] + 100 * copy, "steps": steps, "id": len(document["episodes"])}
            )  # type: ignore[typeddict-item]
    document["episodes"] = document["episodes"][:5000]
    page = visit(document)
    tab = page.go("#replay?scenario=snake&a=random", ".panel")
    assert tab.locator("#replay-seed option").count() > 300
    timing = tab.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    with capsys.disabled():
        size = len(Path(tab.url.partition("#")[0].removeprefix("file://")).read_bytes())
        print(json.dumps({"episodes": 5000, "megabytes": round(size / 1e6, 2), "load_ms": round(timing)}))
