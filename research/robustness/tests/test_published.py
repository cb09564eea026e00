"""The card of published results on Frozen Lake and Sokoban."""

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from agents.common import to_toml
from research.robustness.published import settings as boards
from research.robustness.published.__main__ import BEGIN, END, main, table
from research.robustness.published.card import FILE, Card, episodes_to_tell, measure
from research.robustness.published.settings import Boards, Lakes, Position

PAGE, VALUES = (Path(__file__).parents[3] / "docs" / "research" / name for name in ("published.md", "published.json"))
DRY = {"size": 2, "ice": 1.0, "starts": "corner", "prompt": "", "source": ""}
# walls all around; the box is two pushes to the left of its target, and the player stands behind it
CORRIDOR = "######" "#PB_T#" "######" "######" "######" "######"  # fmt: skip


@pytest.fixture(scope="module")
def card():
    return Card.model_validate(tomllib.loads(FILE.read_text(encoding="utf-8")))


def test_the_page_is_made_of_the_files(card):
    page = PAGE.read_text(encoding="utf-8")
    assert page.split(BEGIN)[1].split(END)[0].strip().splitlines() == table(card, json.loads(VALUES.read_text("utf-8")))


def test_a_few_maps_and_boards_agree_with_the_stored_values(card):
    stored = json.loads(VALUES.read_text(encoding="utf-8"))
    known = {"sokoban-lmgame": {**stored["sokoban-lmgame"], "maps": 12}}  # its table takes a second
    for name, own in measure(card, 12, known).items():
        assert own["setting"] == stored[name]["setting"]
        for which in ("blind", "optimum") if name not in known else ():
            assert own[which]["low"] - 0.05 <= stored[name][which]["value"] <= own[which]["high"] + 0.05
    assert measure(card, stored["paper"]["maps"], stored) == stored  # nothing is computed again


@pytest.mark.parametrize(
    ("steps", "success", "optimum", "blind"),
    [
        (2, 1.0, 1.0, 0.5),  # right then down, or down then right: half of blind play's four pairs
        (1, 1.0, 0.0, 0.0),
        # the first move leaves the corner with 3/4; the second one goes right or down with 1/2 if it is meant to, and
        # with 3/8 if both are meant as often
        (2, 0.5, 0.375, 0.28125),
    ],
)
def test_values_of_two_by_two_by_hand(steps, success, optimum, blind):
    best, fixed = Lakes(steps=steps, success=success, **DRY).values("", maps=1)
    assert best[0] == pytest.approx(optimum)
    assert fixed[0] == pytest.approx(blind)


def test_values_of_a_corridor_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(boards, "FOLDER", tmp_path)
    boards.write("corridor", [CORRIDOR])
    setting = {"generator": "", "size": 6, "boxes": 1, "prompt": "", "source": ""}
    for steps, optimum, blind in ((1, 0, 0), (2, 1, 1)):  # the best blind play always goes right
        assert [float(each[0]) for each in Boards(steps=steps, **setting).values("corridor", 1)] == [optimum, blind]
    assert Position(CORRIDOR, 6).moves == 2
    # each move is right, or has no effect, in the even mixture of right and up: two of four
    chances = Position(CORRIDOR, 6).blind(2)
    assert sorted(np.unique(chances).tolist()) == [0, 1 / 16, 1 / 4, 9 / 16, 1]
    assert Position(CORRIDOR.replace("PB_T", "_PTB"), 6).moves == np.inf


@pytest.mark.skipif(find_spec("gym_sokoban") is None, reason="needs gym-sokoban: pip install --no-deps gym-sokoban")
def test_gym_sokoban_draws_the_stored_boards(card, tmp_path, monkeypatch):
    stored = boards.read("sokoban-vagen")[:50]
    monkeypatch.setattr(boards, "FOLDER", tmp_path)
    (folder,) = find_spec("gym_sokoban").submodule_search_locations
    card.sokoban["sokoban-vagen"].draw("sokoban-vagen", Path(folder) / "envs" / "room_utils.py", 50)
    assert boards.read("sokoban-vagen") == stored


def test_episodes_that_tell_a_rate_from_a_known_one():
    assert episodes_to_tell(1.0, 0.5) == 6  # of which none or all have a chance of 2 / 2^6, and 2 / 2^5 is more than 5%
    assert episodes_to_tell(0.0, 0.1) == 36  # 0.9^35 is more than 2.5%
    needed = episodes_to_tell(0.4, 0.5)
    won = np.random.default_rng(0).binomial(needed, 0.4, 4000).tolist()
    power = {each: binomtest(each, needed, 0.5).pvalue <= 0.05 for each in set(won)}
    assert abs(np.mean([power[each] for each in won]) - 0.8) < 0.02
    assert episodes_to_tell(0.3, 0.3) is None


def test_the_pages_p_values(card):
    blind = json.loads(VALUES.read_text(encoding="utf-8"))["sokoban-vagen-2025"]["blind"]["value"]
    p, results = binomtest(20, 128, blind).pvalue, sum(each.episodes is not None for each in card.results)
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert results == 7
    assert f"p is {p:.3f}, and {results * p:.2f} by Bonferroni's correction for the seven results" in page


REFUSED = {
    "needs the lines": ("a.json", "page.md"),
    "No such file": ("no/a.json", "page.md"),
    "takes a setting of Sokoban, sokoban-vagen-2025,": ("a.json", str(PAGE), "--draw", "paper", "f.py"),
    "isn't a file of Python with generate_room": ("a.json", str(PAGE), "--draw", "sokoban-gem", "no.py"),
}


ROW = {"lakes": {}, "sokoban": {}, "results": [{"setting": "x", "who": "", "success": 0.5, "source": ""}]}
BOARDS = {"generator": "", "size": 6, "boxes": 1, "steps": 9, "prompt": "", "source": ""}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        (ROW | {"results": [{**ROW["results"][0], "success": 17}]}, "rows.toml: results.0.success must be less than"),
        (ROW, "rows.toml: no setting 'x' of a result"),
        (ROW | {"sokoban": {"x": BOARDS}}, "no boards of x are kept; draw them: --draw x FILE"),
    ],
)
def test_a_row_that_cannot_be_is_refused_in_a_sentence(rows, why, monkeypatch, capsys, tmp_path):
    (tmp_path / "rows.toml").write_text("".join(f"{name} = {to_toml(value)}\n" for name, value in rows.items()))
    monkeypatch.setattr("research.robustness.published.__main__.FILE", tmp_path / "rows.toml")
    monkeypatch.setattr("sys.argv", ["published", str(tmp_path / "values.json"), str(PAGE)])
    for _ in range(2):  # a refusal leaves nothing that is in the way of the next command
        with pytest.raises(SystemExit, match="2"):
            main()
        assert why in capsys.readouterr().err


@pytest.mark.parametrize("why", REFUSED)
def test_what_cannot_be_used_is_refused_in_a_sentence(why, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.md").write_text("No table\n")
    monkeypatch.setattr("sys.argv", ["published", *REFUSED[why]])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert why in capsys.readouterr().err
