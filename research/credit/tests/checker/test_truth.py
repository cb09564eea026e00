"""``textbench check-credit --game``: advantages beside the true ones of a game whose chances are known."""

import json
import re
from typing import Any

import gymnasium
import numpy as np
import pytest

from agents import load_agent
from benchmark.cli import main
from research.credit.checker.rows import Dump, read
from research.credit.checker.truth import likenesses, true_advantages, truth_of
from research.credit.checker.writers.write_rows import write_episode
from research.credit.instrument.batches import Setting, play
from research.credit.tests.checker.test_small_trainers import Rows, grpo
from textgames import SCENARIOS


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    """Rows of random play from eight starts, credited by MS-GRPO's formula."""
    file, rng = tmp_path_factory.mktemp("truth") / "lakes.jsonl", np.random.default_rng(0)
    env = gymnasium.make("TextFrozenLake-v0")
    with file.open("w") as stream:
        for layout in range(8):
            episodes = []
            for member in range(40):
                observation, info = env.reset(seed=layout * 100 + member, options={"layout_seed": layout})
                turns: Rows = []
                while len(turns) < 8:
                    action = str(rng.choice(info["legal_actions"]))
                    turns.append({"response_ids": [1], "state": observation, "action": action, "layout": layout})
                    observation, reward, terminated, _, info = env.step(f"<action>{action}</action>")
                    turns[-1]["reward"] = float(reward)
                    if terminated:
                        break
                episodes.append(turns)
            credited = grpo([np.array([turn["reward"] for turn in turns]) for turns in episodes])
            for member, (turns, own) in enumerate(zip(episodes, credited, strict=True)):
                write_episode(stream, layout, f"{layout}.{member}", [
                    {**turn, "advantage": float(a)} for turn, a in zip(turns, own, strict=True)
                ])  # fmt: skip
    return file


def beside_the_truth(file, capsys, *options):
    capsys.readouterr()
    main(["check-credit", str(file), "--game", "frozen-lake", "--agent", "random", "--json", *options])
    truth = json.loads(capsys.readouterr().out)["truth"]
    return {each["turns"]: each for each in truth["likeness"]}, truth["methods"]


def test_the_true_advantages_are_those_of_the_instrument(lakes, capsys):
    assert main(["check-credit", str(lakes), "--game", "frozen-lake", "--agent", "random"]) == 0
    shown = capsys.readouterr().out
    assert "not computed, since random has no model in this process" in shown
    assert re.search(r"all +[\d,]+ +0\.\d\d \[.*\] +0\.\d\d \[", shown)
    like, methods = beside_the_truth(lakes, capsys)
    assert like["all"]["correlation"]["value"] == pytest.approx(methods["msgrpo"])
    assert 0.1 < methods["msgrpo"] < 0.7
    assert like["all"]["correlation"]["low"] > 0
    for part in ("turn ", "of "):
        assert sum(each["number"] for name, each in like.items() if name.startswith(part)) == like["all"]["number"]
    # an episode that goes on longer is worth something else
    assert beside_the_truth(lakes, capsys, "--max-steps", "30")[1]["msgrpo"] < methods["msgrpo"]


def test_the_truth_itself_is_like_the_truth_and_its_opposite_is_not(lakes, tmp_path, capsys):
    dump = read(lakes)
    truth = truth_of(dump, load_agent("random"), SCENARIOS["frozen-lake"])
    true = np.concatenate(true_advantages(dump, truth))
    for sign in (1, -1):
        added = [sign * float(a) + (row.turn == 0) for row, a in zip(dump.rows, true, strict=True)]
        rows = [row.model_copy(update={"advantage": a}) for row, a in zip(dump.rows, added, strict=True)]
        like = {each.turns: each for each in likenesses(Dump(rows), true_advantages(dump, truth))}
        assert like["turn 1"].right_sign.value == (sign == 1)
        assert like["turn 1"].correlation.value == pytest.approx(sign)
        assert like["turn 0"].offset.value > 0.5  # what was added to it


@pytest.mark.slow
def test_the_gradient_by_turn_has_the_share_that_its_advantages_give_it(tmp_path, capsys):
    policy: Any = load_agent("tiny", temperature=1.25)
    setting = Setting(SCENARIOS["frozen-lake"], groups=4, group_size=32)
    batch = play(policy, setting, 0)
    layouts = dict(zip(batch.groups, setting.layouts(), strict=True))
    file = tmp_path / "rows.jsonl"
    with file.open("w") as stream:
        for number, each in enumerate(batch.trajectories):
            turns = [
                {"prompt_ids": each.prompt_ids[t], "response_ids": each.response_ids[t], "layout": layouts[each.group],
                 "state": setting.game().observe(each.states[t], each.player), "reward": float(each.rewards[t]),
                 "advantage": 0.0, **({"action": each.actions[t]} if each.valid[t] else {})}
                for t in range(len(each))
            ]  # fmt: skip
            write_episode(stream, str(each.group), number, turns)
    dump = read(file)
    true = np.concatenate(true_advantages(dump, truth_of(dump, policy, SCENARIOS["frozen-lake"])))
    lines, advantages = [json.loads(line) for line in file.read_text().splitlines()], iter(true.tolist())
    for line in lines:  # the first turns count three times
        if "advantage" in line:
            line["advantage"] = next(advantages) * (1 if line["turn"] else 3)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    capsys.readouterr()
    command = ["check-credit", str(file), "--game", "frozen-lake", "--agent", "tiny", "--temperature", "1.25"]
    main(command)
    assert "share than is due, with an interval without 0: turn 0" in capsys.readouterr().out
    main([*command, "--json"])
    told = json.loads(capsys.readouterr().out)["truth"]
    assert told["gradient"]["true advantages"]["value"] > max(0.5, told["gradient"]["file"]["value"])
    for name in ("turn ", "of "):
        own = [part for part in told["gradient_parts"] if part["turns"].startswith(name)]
        assert sum(part["number"] for part in own) == len(dump.responses)
        assert sum(part["share"]["value"] for part in own) == pytest.approx(1)
        assert sum(part["bias"]["value"] for part in own) == pytest.approx(0, abs=1e-9)
    first = told["gradient_parts"][0]
    due = first["share"]["value"] - first["bias"]["value"]
    assert first["share"]["value"] == pytest.approx(3 * due / (1 + 2 * due))
    assert first["variance"]["value"] == pytest.approx((3 / (1 + 2 * due)) ** 2)
    assert first["bias"]["low"] > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"state": "elsewhere"}, "no state that can be reached"),
        ({"action": "fly"}, "the action 'fly' isn't legal, left, down, right, up are"),
        ({"turn": 8}, "the game is cut off after 8 rounds"),
        ({"layout": None}, "the truth takes layout of every response"),
        ({"advantage": None}, "the truth takes advantage of every response"),
    ],
)
def test_rows_of_another_game_are_refused(lakes, tmp_path, change, said, capsys):
    rows = [{**json.loads(line), **change} for line in lakes.read_text().splitlines()]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    capsys.readouterr()
    assert main(["check-credit", str(tmp_path / "rows.jsonl"), "--game", "frozen-lake", "--agent", "random"]) == 2
    assert said in capsys.readouterr().err
    assert main(["check-credit", str(lakes), "--game", "nim", "--agent", "random"]) == 2
    assert "players take turns in this game" in capsys.readouterr().err
