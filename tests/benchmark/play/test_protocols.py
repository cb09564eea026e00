"""What an unreadable response leads to in a run, and whether prompts list the moves: from the command to the boards."""

import csv
import json
import shutil
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
from benchmark.runs.record import canonical_lines
from benchmark.runs.replay import ReplayError, replay, requests_of, shows_what_was_seen
from tests.benchmark.helpers import change_manifest
from tests.benchmark.stubborn_players import Hesitant, Mute
from textgames import SCENARIOS

PLAYERS = Path(__file__).parents[1] / "stubborn_players.py"
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


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_protocol_from_the_command_to_the_replay(textbench, protocol):
    document = run(textbench, protocol, "--protocol", protocol, episodes=2)
    assert {(row["protocol"], row["moves"]) for row in document["scores"]} == {(protocol, "listed")}
    assert read_manifest(Path(protocol))["settings"]["protocol"] == protocol
    for record, _ in played_again(protocol):
        for player, agent in record.agents.items():
            steps = record.steps_of(player)
            if agent != "mute":
                assert all(step.valid for step in steps)
                continue
            assert not any(step.valid for step in steps)
            if protocol in ("forfeit", "retry"):
                assert len(steps) <= 1  # none where the other one has ended the game before
                assert not any(step.action for step in steps)
            assert {len(step.turns) for step in steps} <= {3 if protocol == "retry" else 1}
    shares = {row["agent"]: row["invalid_rate"]["value"] for row in document["scores"]}
    assert shares == {"mute": 1.0, "random": 0.0}
    assert {row["agent"]: row["invalid_rate"] for row in document["overall"]} == shares


@pytest.mark.slow
def test_what_each_protocol_pays_a_player_who_says_nothing(textbench):
    means = {}
    for protocol in PROTOCOLS:
        rows = run(textbench, protocol, "--protocol", protocol, agents=MUTE[:2], games=GAMES[:3])["scores"]
        means[protocol] = {row["scenario"]: row["mean_return"]["value"] for row in rows}
    rounds = SCENARIOS["cliff-walking"].horizon
    assert means["default"]["cliff-walking"] == -rounds  # the first action, up, which was worth more than random play
    assert means["random"]["cliff-walking"] < -rounds
    assert means["forfeit"] == means["retry"]
    assert means["forfeit"]["cliff-walking"] == -100.0 * rounds
    assert means["forfeit"]["snake"] == -1.0
    assert means["forfeit"]["frozen-lake"] == 0.0


def test_random_is_what_a_plain_run_and_evaluate_play(textbench):
    assert {row["protocol"] for row in run(textbench, "r", agents=MUTE[:2], games=GAMES[:1])["scores"]} == {"random"}
    results = evaluate(Mute(), scenarios="frozen-lake", episodes=2, quiet=True)
    assert [(row["protocol"], row["moves"]) for row in results.leaderboard().scores] == [("random", "listed")]
    results = evaluate(Mute(), scenarios="frozen-lake", episodes=2, protocol="retry:1", moves="unlisted", quiet=True)
    assert [(row["protocol"], row["moves"]) for row in results.leaderboard().scores] == [("retry:1", "unlisted")]
    with pytest.raises(UsageError, match="did you mean 'forfeit'"):
        evaluate(Mute(), scenarios="frozen-lake", episodes=2, protocol="forfit", quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["blackjack", "nim", "frozen-lake-slippery", "snake", "taxi"])
def test_a_mute_player_is_the_random_player(name):
    """Its returns are those of random play in distribution: the means differ by chance alone."""
    results = evaluate({"mute": Mute(), "random": "random"}, scenarios=name, episodes=150, quiet=True)
    rows = {row["agent"]: row["mean_return"] for row in results.leaderboard().scores}
    if name == "nim":  # they meet each other
        assert rows["mute"]["low"] < 0 < rows["mute"]["high"]
        return
    half = {agent: (row["high"] - row["low"]) / 2 for agent, row in rows.items()}
    assert abs(rows["mute"]["value"] - rows["random"]["value"]) < 1.6 * max(half.values())


@pytest.mark.slow
def test_its_moves_are_drawn_from_the_episodes_own_stream(textbench):
    """Every legal action equally often, and the same ones again in another run, whatever else is in the batch."""
    drawn = Counter()
    run(textbench, "one", agents=MUTE[:2], games=("frozen-lake", "snake"), episodes=20)
    run(textbench, "two", "--max-concurrency", 3, agents=MUTE[:2], games=("frozen-lake", "snake"), episodes=20)
    for record, _ in played_again("one"):
        drawn.update(step.action for step in record.steps)
    total = sum(drawn.values())
    assert set(drawn) == {"left", "down", "right", "up"}
    assert all(abs(count / total - 0.25) < 0.08 for count in drawn.values())
    one, two = (canonical_lines(RunFolder.open(Path(path)).records()) for path in ("one", "two"))
    assert list(one) == list(two)


HESITANT = ("--agent", f"hesitant={PLAYERS}:Hesitant")


def test_a_retry_tells_what_was_wrong_and_counts_every_token(textbench):
    document = run(textbench, "r", "--protocol", "retry", agents=HESITANT, games=("frozen-lake", "snake"), episodes=6)
    seen, lost, tokens, answers = Counter(), 0, Counter(), Counter()
    for record, replayed in played_again("r"):
        for step, again in zip(record.steps, replayed.steps, strict=True):
            reasons = [each.unreadable for each in step.refused]
            assert reasons == ["empty", "unknown_name"][: len(reasons)]
            assert [each.unreadable for each in again.refused] == reasons
            seen[len(reasons), step.valid] += 1
            lost += not step.valid
            tokens[record.scenario] += sum(sum(turn.usage[:2]) for turn in step.turns)
            answers[record.scenario, "invalid"] += len(reasons) + (not step.valid)
            answers[record.scenario, "all"] += 1 + len(reasons)
    assert {(0, True), (1, True), (2, True), (2, False)} == set(seen)  # the third refusal loses
    assert lost
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
    whole, part = (canonical_lines(RunFolder.open(Path(path)).records()) for path in ("whole", "part"))
    assert list(whole) == list(part)
    settings = read_manifest(Path("part"))["settings"]
    assert (settings["protocol"], settings["moves"]) == ("retry", "unlisted")
    assert len(list(played_again("part"))) == 12


def test_a_folder_goes_on_with_its_own_protocol_alone(textbench):
    run(textbench, "r", "--protocol", "forfeit", agents=MUTE[:2], games=("frozen-lake",))
    done = textbench("run", *MUTE[:2], "--scenario", "frozen-lake", "--episodes", 4, "--out", "r", "--quiet")
    assert (done.code, "protocol = 'forfeit', now it is 'random'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        (
            ("--protocol", "ranodm"),
            "--protocol: protocol must be one of random, default, forfeit, retry, legal-only, tools or retry:K",
        ),
        (("--protocol", "retry:0"), "gives 1 to 20 more answers, got 'retry:0'"),
        (("--protocol", "default:2"), "got 'default:2'"),
        (("--moves", "hidden"), "--moves: moves must be listed or unlisted, got 'hidden'"),
    ],
)
def test_other_words_are_refused_before_anything_is_played(textbench, option, sentence):
    done = textbench("run", "--agent", "random", "--scenario", "frozen-lake", "--out", "r", *option)
    assert (done.code, sentence in done.err, Path("r").exists()) == (2, True, False)


def test_a_dry_run_counts_every_further_answer(textbench):
    counts = {}
    for protocol in ("random", "retry", "retry:4"):
        done = textbench("run", *MUTE[:2], "--scenario", "snake", "--protocol", protocol, "--dry-run", "--json")
        counts[protocol] = json.loads(done.out)["requests_at_most"]
    assert counts["retry"] == 3 * counts["random"]
    assert counts["retry:4"] == 5 * counts["random"]


# ---------------------------------------------------------------- boards


@pytest.fixture(scope="module")
def several_once(tmp_path_factory):
    """Where the runs of ``several`` are kept for all tests, once the first of them has played them."""
    return tmp_path_factory.mktemp("several") / "runs"


@pytest.fixture
def several(textbench, several_once):
    """Runs of the same two agents by three protocols, and one without listed moves."""
    protocols = {
        "random": (),
        "default": ("--protocol", "default"),
        "retry": ("--protocol", "retry:2"),
        "unlisted": ("--moves", "unlisted"),
    }
    if not several_once.exists():
        for name, options in protocols.items():
            run(textbench, name, *options, games=("frozen-lake", "cliff-walking", "tic-tac-toe"), episodes=5)
        shutil.copytree(".", several_once)
    else:
        shutil.copytree(several_once, ".", dirs_exist_ok=True)
    return tuple(protocols)


@pytest.mark.slow
def test_boards_never_rank_protocols_together(textbench, several):
    document = json.loads(textbench("leaderboard", *several, "--json").out)
    groups = {}
    for row in document["scores"]:
        groups.setdefault(row["scenario"], set()).add((row["protocol"], row["moves"]))
    assert all(len(rules) == 1 for rules in groups.values())
    assert groups["frozen-lake"] == {("random", "listed")}
    assert groups["frozen-lake (default)"] == {("default", "listed")}
    assert groups["frozen-lake (retry)"] == {("retry", "listed")}
    assert groups["frozen-lake (unlisted)"] == {("random", "unlisted")}
    for name in groups:
        ranks = [row["rank"] for row in document["scores"] if row["scenario"] == name]
        assert len(ranks) == 2
        assert min(ranks) == 1
    assert set(document["overall_scenarios"]) == {"frozen-lake", "cliff-walking"}  # a plain run's
    ranked = {row["agent"] for row in document["overall"] if row["rank"] is not None}
    assert ranked == {"mute", "random"}
    for row in document["ratings"]:
        assert row["games"] == 10  # of its own protocol


@pytest.mark.slow
def test_agents_of_different_protocols_are_not_compared(textbench, several):
    done = textbench("compare", "random", "default", "--json")
    pairs = {(row["a"], row["b"]) for row in json.loads(done.out)["comparisons"]}
    assert pairs == {("mute", "random"), ("default/mute", "default/random")}
    done = textbench(
        "compare", "mute", "default/mute", "--in", "random", "--in", "default", "--scenario", "cliff-walking"
    )
    assert (done.code, "played by the same protocol" in done.err) == (2, True)


def test_runs_of_different_protocols_are_not_merged(textbench, several):
    for other, what in (("default", "protocol default"), ("unlisted", "moves unlisted")):
        done = textbench("merge", "random", other, "--out", "merged")
        assert done.code == 2
        assert f"was played with {what}" in done.err
    again = textbench("merge", "retry", "--out", "merged")
    assert again.code == 0, again.err
    assert read_manifest(Path("merged"))["settings"]["protocol"] == "retry"
    assert len(list(played_again("merged"))) == 2 * 5 * 2 + 10


@pytest.mark.slow
def test_boards_say_what_was_played(textbench, several):
    one = textbench("leaderboard", "retry", "--stats").out
    assert "is given again, up to 2 times, and then loses the episode" in one
    assert "don't list the legal moves" in textbench("leaderboard", "unlisted").out
    assert "unreadable response" not in textbench("leaderboard", "random", "--stats").out
    assert textbench("leaderboard", *several, "--html", "page.html", "--quiet").code == 0
    page = Path("page.html").read_text()
    assert "executes a random legal action" in page
    assert "frozen-lake (default)" in page


def test_a_folder_of_before_is_read_as_what_it_was(textbench):
    run(textbench, "old", "--protocol", "default", agents=MUTE[:2], games=("frozen-lake", "cliff-walking"))
    change_manifest("old", lambda m: (m["settings"].pop("protocol"), m["settings"].pop("moves")))
    scores = json.loads(textbench("leaderboard", "old", "--json").out)["scores"]
    assert {(row["protocol"], row["moves"]) for row in scores} == {("default", "listed")}
    assert len(list(played_again("old"))) == 8
    assert textbench("resume", "old", "--episodes", 6, "--quiet").code == 0
    assert len(list(played_again("old"))) == 12
    change_manifest("old", lambda m: m["settings"].update(protocol="mine"))  # a stranger's word is one sentence
    for command in ("leaderboard", "replay", "resume"):
        done = textbench(command, "old")
        assert (done.code, "protocol must be one of" in done.err) == (2, True)


# ---------------------------------------------------------------- prompts and data


def test_a_random_stand_in_is_nobodys_decision(textbench):
    """Training data hold what agents decided, with the conversation that they decided in."""
    run(textbench, "mute", agents=MUTE[:2], games=("frozen-lake",))
    assert textbench("export", "mute", "--sft", "mute.jsonl", "--mode", "direct").code in (0, 1, 2)
    assert not Path("mute.jsonl").exists() or not Path("mute.jsonl").read_text()
    run(textbench, "r", "--protocol", "retry", agents=HESITANT, games=("frozen-lake",), episodes=6)
    assert textbench("export", "r", "--sft", "told.jsonl", "--mode", "direct").code == 0
    lines = [json.loads(line) for line in Path("told.jsonl").read_text().splitlines()]
    taken = [step for record, _ in played_again("r") for step in record.steps if step.valid]
    assert [line["action"] for line in lines] == [step.action for step in taken]
    for line, step in zip(lines, taken, strict=True):
        said = [message["content"] for message in line["prompt"] if message["role"] == "assistant"]
        assert said == [each.turn.response for each in step.refused]
        assert line["completion"][0]["content"] == f"<action>{step.action}</action>"


def test_requests_of_a_replay_are_those_of_the_run(textbench):
    asked = []

    class Watched(Hesitant):
        name = "watched"

        def answer(self, request):
            asked.append(request)
            return super().answer(request)

    results = evaluate(
        {"watched": Watched()}, scenarios="snake", episodes=1, protocol="retry", moves="unlisted", out="r", quiet=True
    )
    assert results.complete
    ((_, replayed),) = played_again("r")
    final = [request for step, request in requests_of(replayed)]
    last = {request.observation + str(request.steps_left): request for request in asked}
    assert len(final) == len(last)
    for request, was in zip(final, last.values(), strict=True):
        assert (request.observation, request.legal_actions) == (was.observation, was.legal_actions)
        assert not request.moves_listed
        assert not was.moves_listed
        texts = ([(each.turn.response, each.unreadable) for each in one.refused] for one in (request, was))
        assert next(texts) == next(texts)
