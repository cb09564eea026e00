"""What an unreadable response leads to in a run, and whether prompts list the moves: from the command to the boards."""

import csv
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from agents.protocol import PROTOCOLS
from agents.turn import Refused, Turn
from benchmark import evaluate
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import read_manifest
from benchmark.runs.plan import Plan
from benchmark.runs.replay import ReplayError, replay, shows_what_was_seen
from tests.benchmark.helpers import PLAYERS, change_manifest, counted
from tests.benchmark.players_for_tests import Mute
from textgames import SCENARIOS

GAMES = ("frozen-lake", "cliff-walking", "snake", "tic-tac-toe", "snake-duel", "guess-number")
MUTE = ("--agent", f"mute={PLAYERS}:Mute", "--agent", "random")


def run(textbench, out, *more, agents=MUTE, games=GAMES, episodes=4):
    scenarios = [word for game in games for word in ("--scenario", game)]
    done = textbench("run", *agents, *scenarios, "--episodes", episodes, "--out", out, "--json", "--quiet", *more)
    assert done.code == 0, done.err
    return json.loads(done.out)


def played_again(path):
    """Every record of a folder with its replay, which must say the same of every step."""
    folder = RunFolder.open(Path(path))
    plan = Plan.from_manifest(folder.manifest)
    for record in folder.records():
        replayed = replay(record, plan.scenarios[record.scenario])
        assert shows_what_was_seen(replayed, record)
        assert [step.action for step in record.steps] == [step.action for step in replayed.steps]
        assert [step.reward for step in record.steps] == [step.reward for step in replayed.steps]
        assert (record.returns, record.successes) == (replayed.episode.returns, replayed.episode.successes)
        yield record, replayed


ROUNDS = SCENARIOS["cliff-walking"].horizon
PAID = {  # what the lake, the cliff and the snake pay a player who says nothing; ``None`` is left to chance
    "default": (None, -ROUNDS, None),  # the first action, up, which is worth more than random play
    "forfeit": (0.0, -100 * ROUNDS, -1.0),
    "retry": (0.0, -100 * ROUNDS, -1.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_from_the_command_to_the_replay(textbench, protocol):
    document = run(textbench, protocol, "--protocol", protocol, episodes=2)
    assert {(row["protocol"], row["moves"]) for row in document["scores"]} == {(protocol, "listed")}
    assert read_manifest(Path(protocol))["settings"]["protocol"] == protocol
    for record, _ in played_again(protocol):
        for player, agent in record.agents.items():
            steps = record.steps_of(player)
            assert all(step.valid == (agent != "mute") for step in steps)
            if agent == "mute":
                if protocol in ("forfeit", "retry"):
                    assert len(steps) <= 1  # none where the other one has ended the game before
                    assert not any(step.action for step in steps)
                assert {len(step.turns) for step in steps} <= {3 if protocol == "retry" else 1}
    shares = {row["agent"]: row["invalid_rate"]["value"] for row in document["scores"]}
    assert shares == {"mute": 1.0, "random": 0.0}
    assert {row["agent"]: row["invalid_rate"] for row in document["overall"]} == shares
    means = {row["scenario"]: row["mean_return"]["value"] for row in document["scores"] if row["agent"] == "mute"}
    for name, paid in zip(GAMES, PAID.get(protocol, ()), strict=False):
        assert paid is None or means[name] == paid


def test_random_is_what_a_plain_run_and_evaluate_play(textbench):
    assert {row["protocol"] for row in run(textbench, "r", agents=MUTE[:2], games=GAMES[:1])["scores"]} == {"random"}
    results = evaluate(Mute(), scenarios="frozen-lake", episodes=2, quiet=True)
    assert [(row["protocol"], row["moves"]) for row in results.leaderboard().scores] == [("random", "listed")]
    results = evaluate(Mute(), scenarios="frozen-lake", episodes=2, protocol="retry:1", moves="unlisted", quiet=True)
    assert [(row["protocol"], row["moves"]) for row in results.leaderboard().scores] == [("retry:1", "unlisted")]
    with pytest.raises(UsageError, match="did you mean 'forfeit'"):
        evaluate(Mute(), scenarios="frozen-lake", episodes=2, protocol="forfit", quiet=True)


HESITANT = ("--agent", f"hesitant={PLAYERS}:Hesitant")


def test_a_retry_tells_what_was_wrong_counts_every_token_and_is_trained_on_with_its_conversation(textbench):
    document = run(textbench, "r", "--protocol", "retry", agents=HESITANT, games=("frozen-lake", "snake"), episodes=6)
    seen, tokens, answers, taken = Counter(), Counter(), Counter(), []
    for record, replayed in played_again("r"):
        for step, again in zip(record.steps, replayed.steps, strict=True):
            reasons = [each.unreadable for each in step.refused]
            assert reasons == ["empty", "unknown_name"][: len(reasons)]
            assert [each.unreadable for each in again.refused] == reasons
            seen[len(reasons), step.valid] += 1
            tokens[record.scenario] += sum(sum(turn.usage[:2]) for turn in step.turns)
            answers[record.scenario, "invalid"] += len(reasons) + (not step.valid)
            answers[record.scenario, "all"] += 1 + len(reasons)
            taken += [step] * step.valid
    assert {(0, True), (1, True), (2, True), (2, False)} == set(seen)  # the third refusal loses
    for row in document["scores"]:
        assert row["tokens"]["value"] * 6 == pytest.approx(tokens[row["scenario"]])
        share = answers[row["scenario"], "invalid"] / answers[row["scenario"], "all"]
        assert row["invalid_rate"]["value"] == pytest.approx(share)
        assert set(row["invalid_reasons"]) <= {"empty", "unknown_name", "no_tag"}
    for more in ((), ("--steps",)):
        rows = list(csv.DictReader(textbench("export", "r", "--csv", "-", *more).out.splitlines()))
        assert sum(int(row["prompt_tokens"]) + int(row["completion_tokens"]) for row in rows) == tokens.total()
    rows = list(csv.DictReader(textbench("export", "r", "--csv", "-").out.splitlines()))
    assert sum(int(row["invalid"]) for row in rows) == answers["frozen-lake", "invalid"] + answers["snake", "invalid"]
    assert textbench("export", "r", "--sft", "told.jsonl", "--mode", "direct").code == 0
    lines = [json.loads(line) for line in Path("told.jsonl").read_text().splitlines()]
    for line, step in zip(lines, taken, strict=True):
        said = [message["content"] for message in line["prompt"] if message["role"] == "assistant"]
        assert said == [each.turn.response for each in step.refused]
        assert line["action"] == step.action
        assert line["completion"][0]["content"] == f"<action>{step.action}</action>"


def test_a_replay_refuses_retries_that_cannot_have_been(textbench):
    run(textbench, "r", "--protocol", "retry", agents=HESITANT, games=("frozen-lake",), episodes=6)
    folder = RunFolder.open(Path("r"))
    scenario = Plan.from_manifest(folder.manifest).scenarios["frozen-lake"]
    record = next(record for record in folder.records() if any(step.refused for step in record.steps))
    (index, step) = next((i, step) for i, step in enumerate(record.steps) if step.refused)

    def changed(**fields):
        steps = (*record.steps[:index], replace(step, **fields), *record.steps[index + 1 :])
        return replace(record, steps=steps)

    with pytest.raises(ReplayError, match="can be read"):
        replay(changed(refused=(Refused(Turn("left"), "empty"),)), scenario)
    with pytest.raises(ReplayError, match="may give 3"):
        replay(changed(refused=(Refused(Turn(""), "empty"),) * 3), scenario)
    with pytest.raises(ReplayError, match="may give 3"):
        replay(changed(turn=Turn("?"), refused=()), scenario)
    with pytest.raises(ReplayError, match="may give 1"):
        replay(record, scenario._replace(protocol="random"))


def test_retries_of_a_resumed_run_are_those_of_a_whole_one(textbench):
    options = ("--protocol", "retry", "--moves", "unlisted")
    run(textbench, "whole", *options, agents=HESITANT, games=("snake", "snake-duel"), episodes=6)
    run(textbench, "part", *options, agents=HESITANT, games=("snake", "snake-duel"), episodes=3)
    lines = Path("part/episodes.jsonl").read_bytes().splitlines(keepends=True)
    Path("part/episodes.jsonl").write_bytes(b"".join(lines[:4]) + lines[4][:50])  # killed in the middle of a line
    done = textbench("resume", "part", "--episodes", 6, "--quiet")
    assert done.code == 0, done.err
    assert counted("whole") == counted("part")
    settings = read_manifest(Path("part"))["settings"]
    assert (settings["protocol"], settings["moves"]) == ("retry", "unlisted")
    assert len(list(played_again("part"))) == 12


@pytest.mark.slow
def test_boards_never_rank_protocols_together(textbench):
    """The same two agents by three protocols, and without listed moves."""
    options = {"random": (), "default": ("--protocol", "default"), "retry": ("--protocol", "retry:2")}
    options["unlisted"] = ("--moves", "unlisted")
    for name, words in options.items():
        run(textbench, name, *words, games=("frozen-lake", "cliff-walking", "tic-tac-toe"), episodes=5)
    document = json.loads(textbench("leaderboard", *options, "--json").out)
    groups = {}
    for row in document["scores"]:
        groups.setdefault(row["scenario"], []).append(row)
    assert {name: {(row["protocol"], row["moves"]) for row in rows} for name, rows in groups.items()} == {
        f"{game}{mark}": {rules}
        for game in ("frozen-lake", "cliff-walking", "tic-tac-toe")
        for mark, rules in (
            ("", ("random", "listed")),
            (" (default)", ("default", "listed")),
            (" (retry)", ("retry", "listed")),
            (" (unlisted)", ("random", "unlisted")),
        )
    }
    assert all(len(rows) == 2 and min(row["rank"] for row in rows) == 1 for rows in groups.values())
    assert set(document["overall_scenarios"]) == {"frozen-lake", "cliff-walking"}  # a plain run's
    assert {row["agent"] for row in document["overall"] if row["rank"] is not None} == {"mute", "random"}
    assert {row["games"] for row in document["ratings"]} == {10}  # of its own protocol
    done = textbench("compare", "random", "default", "--json")
    pairs = {(row["a"], row["b"]) for row in json.loads(done.out)["comparisons"]}
    assert pairs == {("mute", "random"), ("default/mute", "default/random")}
    assert "is given again, up to 2 times, and then loses" in textbench("leaderboard", "retry", "--stats").out
    assert "don't list the legal moves" in textbench("leaderboard", "unlisted").out


def test_runs_of_different_protocols_are_not_merged(textbench):
    for name, options in {"random": (), "retry": ("--protocol", "retry"), "unlisted": ("--moves", "unlisted")}.items():
        run(textbench, name, *options, agents=MUTE[:2], games=("frozen-lake",), episodes=2)
    for other, what in (("retry", "protocol retry"), ("unlisted", "moves unlisted")):
        done = textbench("merge", "random", other, "--out", "merged")
        assert (done.code, f"was played with {what}" in done.err) == (2, True)
    again = textbench("merge", "retry", "--out", "merged")
    assert again.code == 0, again.err
    assert read_manifest(Path("merged"))["settings"]["protocol"] == "retry"
    assert len(list(played_again("merged"))) == 2


def test_a_folder_of_before_is_read_as_what_it_was(textbench):
    run(textbench, "old", "--protocol", "default", agents=MUTE[:2], games=("frozen-lake", "cliff-walking"), episodes=2)
    change_manifest("old", lambda m: (m["settings"].pop("protocol"), m["settings"].pop("moves")))
    scores = json.loads(textbench("leaderboard", "old", "--json").out)["scores"]
    assert {(row["protocol"], row["moves"]) for row in scores} == {("default", "listed")}
    assert textbench("resume", "old", "--episodes", 3, "--quiet").code == 0
    assert len(list(played_again("old"))) == 6
    change_manifest("old", lambda m: m["settings"].update(protocol="mine"))  # a stranger's word is one sentence
    for command in ("leaderboard", "replay", "resume"):
        done = textbench(command, "old")
        assert (done.code, "protocol must be one of" in done.err) == (2, True)
