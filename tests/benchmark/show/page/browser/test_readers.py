"""Every reader: narrow screens, dark rooms, keyboards, screen readers, empty pages."""

import itertools

import pytest

pytestmark = pytest.mark.browser

VIEWS = ("#leaderboard", "#compare", "#replay", "#replay?scenario=frozen-lake&b={b}")


WIDTHS = [("long names", width) for width in (320, 700, 1000, 1200)]  # one for each breakpoint
WIDTHS += [(name, 320) for name in ("hostile", "empty", "not played")]


@pytest.mark.parametrize(("name", "width"), WIDTHS)
def test_no_width_scrolls_sideways(visit, documents, name, width):
    page = visit(name, viewport={"width": width, "height": 740})
    last = documents[name]["agents"][-1]["name"] if documents[name]["agents"] else ""
    query = page.go("#compare").evaluate("name => encodeURIComponent(name)", last)
    for view in VIEWS:
        tab = page.go(view.format(b=query), f"#view-{view[1:].partition('?')[0]} h2")
        # what scrolls inside its own box is no matter; nothing else may stick out
        assert tab.evaluate("document.documentElement.scrollWidth") <= width, view
        outside = tab.evaluate(
            """width => [...document.querySelectorAll('main *, header *')].filter((node) => {
                const box = node.getBoundingClientRect();
                const inside = node.closest('pre, .moves-box, .matrix-box, .wide, .unseen, caption');
                return box.width && box.right > width + 1 && !inside;
            }).map((node) => node.outerHTML.slice(0, 120))""",
            width,
        )
        assert outside == [], view


def test_a_phone_has_short_tables_that_a_list_sorts_and_no_hints_for_keys(visit):
    page = visit("usual", viewport={"width": 360, "height": 740})
    tab = page.go("#replay?scenario=snake&a=random", ".panel")
    assert not tab.locator(".keys").is_visible()
    tab = page.go("#leaderboard?scenario=snake", ".sortable")
    row = tab.locator('[data-table="snake"] tbody tr').first
    assert row.locator("> :visible").count() == 3  # rank, name and one figure
    bar = tab.locator('.sort-by:has(+ table[data-table="snake"])')
    bar.locator("select").select_option("length")
    assert row.locator("> :visible").count() == 3
    assert page.texts('[data-table="snake"] thead th:visible')[2].startswith("Length")
    assert page.column("snake", "length") == sorted(page.column("snake", "length"), key=lambda value: value or 0)
    bar.locator("button").click()
    assert page.column("snake", "length") == sorted(page.column("snake", "length"), key=lambda value: -(value or 0))


CONTRAST = """() => {
  const parse = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (v) => (v <= 10 ? v / 3294 : ((v / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const found = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim());
    if (!own || !node.checkVisibility() || node.closest("script, style, .unseen, caption, option")) continue;
    if (node.closest(":disabled, [aria-disabled=true]")) continue;
    const style = getComputedStyle(node);
    const inSvg = node.namespaceURI.endsWith("svg");
    let colour = parse(inSvg ? style.fill : style.color);
    let behind = null;
    if (inSvg && node.classList.contains("glyph")) behind = parse(getComputedStyle(node.previousSibling).fill);
    for (let up = node; up && !behind; up = up.parentElement) {
      const value = parse(getComputedStyle(up).backgroundColor);
      if (value.length === 3 || value[3] > 0) behind = value;
    }
    const [a, b] = [light(colour), light(behind)].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 100)]);
  }
  return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(visit, scheme):
    page = visit("usual", color_scheme=scheme)
    for address in (
        "#leaderboard",
        "#compare?a=thinker-7b",
        "#replay?scenario=snake&a=thinker-7b&b=random&seed=40002&step=1",
    ):
        tab = page.go(address, "table")
        tab.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")
        found = tab.evaluate(CONTRAST)
        assert len(found) > 50
        assert [one for one in found if one[0] < 4.5] == []


@pytest.mark.parametrize("width", [1200, 360])
def test_screen_readers_find_landmarks_and_names(visit, width):
    """Checks Chromium's own accessibility tree, which is what a screen reader is given."""
    page = visit("usual", viewport={"width": width, "height": 800})
    for address in ("#leaderboard", "#compare", "#replay?scenario=snake&a=thinker-7b&b=random"):
        tab = page.go(address, "table")
        session = page.context.new_cdp_session(tab)
        nodes = [node for node in session.send("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
        roles = [node["role"]["value"] for node in nodes]
        assert [roles.count(role) for role in ("banner", "navigation", "main", "contentinfo", "status")] == [1] * 5
        assert all(node.get("name", {}).get("value") for node in nodes if node["role"]["value"] in NAMED_ROLES)
        headings = "[...document.querySelectorAll('h1, h2, h3, h4')].filter((one) => one.checkVisibility())"
        levels = tab.evaluate(f"{headings}.map((one) => Number(one.tagName[1]))")
        assert levels[0] == 1
        assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
        identifiers = tab.evaluate("[...document.querySelectorAll('[id]')].map((node) => node.id)")
        assert len(identifiers) == len(set(identifiers))
        assert tab.evaluate("[...document.querySelectorAll('table')].filter((table) => !table.caption).length") == 0
        assert tab.locator("thead th:not([scope]), tbody th:not([scope])").count() == 0


NAMED_ROLES = {"button", "link", "combobox", "slider", "table", "image", "region", "navigation", "columnheader"}


def test_keyboard_skips_to_the_content_and_shows_where_it_is(visit):
    tab = visit("usual").go("#replay?scenario=snake&a=thinker-7b&b=random", ".panel")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Skip to the content"
    tab.keyboard.press("Enter")
    assert tab.evaluate("document.activeElement.id") == "main"
    assert tab.evaluate("location.hash").startswith("#replay")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.id") == "replay-scenario"
    assert tab.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
