"""A page that follows a run: newer tables and episodes come without loading it again."""

import threading
from copy import deepcopy
from typing import Any

import pytest

from benchmark.score.document import ViewDocument
from benchmark.show.page import render_page
from benchmark.show.page.server import PageServer

pytestmark = pytest.mark.browser
expect = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright").expect

Documents = dict[str, ViewDocument]


def test_newer_figures_come_and_what_the_reader_chose_stays(browser: Any, documents: Documents) -> None:
    early, late = deepcopy(documents["usual"]), deepcopy(documents["usual"])
    early["episodes"] = early["episodes"][:5]
    early["episodes_total"], early["episodes_planned"] = 5, late["episodes_total"]
    late["episodes_planned"] = late["episodes_total"]
    row = next(row for row in early["scores"] if row["scenario"] == "snake")
    row["mean_return"] = {"value": -7.25, "low": -8.0, "high": -7.0}
    with PageServer(render_page(early, follow="v1"), version="v1") as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            tab = browser.new_page()
            faults: list[str] = []
            tab.on("console", lambda message: faults.append(message.text))
            tab.on("pageerror", lambda error: faults.append(str(error)))
            tab.goto(server.url + "#leaderboard?scenario=snake")
            table = tab.locator('table[data-table="snake"]')
            expect(table).to_contain_text("\u22127.250")
            expect(tab.locator("#following")).to_contain_text("5 of ")
            table.locator('thead [data-key="length"] button').click()
            tab.evaluate("window.samePage = true")
            server.show(render_page(late), "v2")
            expect(table).not_to_contain_text("\u22127.250", timeout=10_000)
            expect(tab.locator("#following")).to_contain_text("are played")
            assert tab.evaluate("window.samePage")  # nothing was loaded again
            assert table.locator('[data-key="length"]').first.get_attribute("aria-sort") == "ascending"
            assert tab.locator("#leaderboard-scenario").input_value() == "snake"
            tab.click('nav a[data-view="replay"]')
            expect(tab.locator("#replay-scenario option")).to_have_count(len(late["scenarios"]))
            assert faults == []
            tab.close()
        finally:
            server.shutdown()
            thread.join()
