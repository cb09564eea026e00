"""Visits to the page in real headless Chromium (``pytest -m browser``; needs Debian's chromium)."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from benchmark.score.document import ViewDocument
from benchmark.show.page import write_page

ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",  # containers have no user namespaces to build the sandbox of
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

Documents = dict[str, ViewDocument]


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    sync_api = pytest.importorskip("playwright.sync_api", reason="these tests drive chromium with playwright")
    assert path, "these tests need chromium: apt-get install chromium"
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


class Visit:
    """A tab on one page; it notes every error, dialog and request that isn't the page itself."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **context})
        self.context.set_default_timeout(10_000)
        self.tab = self.context.new_page()
        self.url = path.as_uri()
        self.faults: list[str] = []
        self.tab.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        self.tab.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        self.tab.on("dialog", lambda dialog: (self.faults.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self.tab.on("request", lambda request: self._note_request(request.url))

    def _note_request(self, url: str) -> None:
        if url.partition("#")[0] != self.url:
            self.faults.append(f"request: {url}")

    def go(self, address: str = "", wait: str = "main") -> Any:
        self.tab.goto("about:blank")
        self.tab.goto(self.url + address)
        self.tab.wait_for_selector(f"{wait} >> visible=true")
        return self.tab

    def text(self, selector: str) -> str:
        return str(self.tab.locator(selector).first.text_content())

    def texts(self, selector: str) -> list[str]:
        return list(self.tab.locator(selector).all_text_contents())

    def column(self, table: str, key: str) -> list[float | None]:
        """What a column's cells sort by, from the top."""
        values = self.tab.locator(f'table[data-table="{table}"]').evaluate(
            """(table, key) => {
                const place = [...table.tHead.rows[0].cells].findIndex((head) => head.dataset.key === key);
                return [...table.tBodies[0].rows].map((row) => row.cells[place].dataset.sort ?? null);
            }""",
            key,
        )
        return [None if value is None else float(value) for value in values]

    @staticmethod
    def shown_as(text: str) -> str:
        """What the page makes of control characters and line separators."""
        text = re.sub("[\0-\x08\x0b\x0c\x0e-\x1f]", lambda match: chr(0x2400 + ord(match[0])), text)
        text = re.sub("[\u202a-\u202e\u2066-\u2069]", lambda match: f"[U+{ord(match[0]):04X}]", text)
        return re.sub("[\u2028\u2029]", "\u21b5\n", text.replace("\x7f", "\u2421"))

    @staticmethod
    def steps_of(document: ViewDocument, scenario: str, agent: str, seed: int) -> list[dict[str, Any]]:
        """The steps of an episode of a scenario with one player."""
        view = next(
            view
            for view in document["episodes"]
            if (view["scenario"], view["agents"].get("player_0"), view["seed"]) == (scenario, agent, seed)
        )
        columns: dict[str, Any] = {**view["steps"], "happened": [fate or "" for fate in view["steps"]["happened"]]}
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    @staticmethod
    def typeset(value: float, form: str = ".2f") -> str:
        """Write a number as the page does: with a real minus sign, and none before zero."""
        text = format(value, form)
        return text.lstrip("-+") if float(text) == 0 else text.replace("-", "\u2212")

    def points(self, value: float) -> str:
        return self.typeset(round(value, 3), "g")


@pytest.fixture
def visit(browser, documents, tmp_path):
    visits = []

    def open_page(name: str | ViewDocument, **context: Any) -> Visit:
        path = tmp_path / "page.html"
        write_page(documents[name] if isinstance(name, str) else name, path)
        visits.append(Visit(browser, path, **context))
        return visits[-1]

    yield open_page
    for one in visits:
        one.context.close()
        assert [fault for fault in one.faults if "about:blank" not in fault] == []
