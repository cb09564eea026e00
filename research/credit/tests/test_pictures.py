"""Pictures of where on the board a method is wrong."""

import xml.etree.ElementTree as ElementTree

import pytest

from agents import load_agent
from research.credit.instrument.batches import Setting
from research.credit.instrument.instrument import Instrument, methods_of
from research.credit.instrument.show.pictures import board_picture
from textgames import SCENARIOS

SVG = "{http://www.w3.org/2000/svg}"


def drawn(game, methods, **settings):
    setting = Setting(SCENARIOS[game], groups=2, group_size=8, **settings)
    instrument = Instrument(load_agent("random"), setting, batches=2, gradient=False)
    instrument.measure(methods_of(methods, setting))
    return instrument, board_picture(instrument, [*methods, "oracle", "noise"])


@pytest.mark.parametrize("game", ["frozen-lake", "cliff-walking"])
def test_every_move_that_was_made_is_drawn_with_its_figures(game):
    instrument, picture = drawn(game, ["msgrpo"], max_steps=8)
    root = ElementTree.fromstring(picture)
    titles = [text.text or "" for text in root.iter(f"{SVG}text")]
    assert any(title.startswith("msgrpo, times") for title in titles)
    assert "oracle, times 1" in titles
    polygons = list(root.iter(f"{SVG}polygon"))
    assert len(polygons) % 9 == 0  # three methods with three panels of the same moves
    assert all("true" in (polygon.findtext(f"{SVG}title") or "") for polygon in polygons)
    # the last panel of the oracle: nothing is left of the difference, so all of it is white
    each = len(polygons) // 9
    assert {polygon.get("fill") for polygon in polygons[5 * each : 6 * each]} == {"#ffffff"}
    assert board_picture(instrument, ["msgrpo", "oracle", "noise"]) == picture


def test_wrong_signs_have_a_black_edge():
    _, picture = drawn("frozen-lake", ["msgrpo"])
    polygons = list(ElementTree.fromstring(picture).iter(f"{SVG}polygon"))
    each = len(polygons) // 9
    for polygon in polygons:
        told = polygon.findtext(f"{SVG}title") or ""
        true, assigned = [float(part.split()[1]) for part in told.split(": ")[1].split(", ")[:2]]
        if polygon.get("stroke") == "black":
            assert true * assigned <= 0
    assert not any(polygon.get("stroke") == "black" for polygon in polygons[3 * each : 6 * each])  # the oracle's
    assert any(polygon.get("stroke") == "black" for polygon in polygons[6 * each :])  # those of noise
