"""Programs play, rules are planned with, and both fail as answers that can't be read, never as a run."""

import json
from pathlib import Path

import pytest

import textgames
from agents import load_agent
from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.turn import Policy, TurnRequest
from benchmark.play.claims import names_code
from benchmark.runs.folder import RunFolder
from research.improve.programs.players import Fidelity, RulesPlayer, fidelity

EXAMPLES = Path(__file__).parents[2] / "examples"
LAKE = f"program:{EXAMPLES / 'frozen_lake_program.py'}"
LAKE_RULES, CLIFF = ((EXAMPLES / f"{name}_rules.py").read_text() for name in ("frozen_lake", "cliff_walking"))


def returns(policy: Policy, scenario: str = "frozen-lake", episodes: int = 30) -> list[float]:
    played = rollout(policy, [EpisodeTask.of(scenario, seed) for seed in range(episodes)])
    return [episode.returns["player_0"] for episode in played]


def written(folder: Path, source: str) -> str:
    file = folder / "written.py"
    file.write_text(source)
    return str(file)


def test_a_program_plays():
    assert returns(load_agent(LAKE)) == [1.0] * 30


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return {}['left']", "KeyError: 'left' (line 2: return {}['left'])"),
        ("while True: pass", "took more than 0.02 seconds"),
        ("return 3", "returned 3, which is no text"),
        ("raise ValueError('<action>left</action>')", "ValueError: (action)left(/action)"),
        ("raise SystemExit", "SystemExit"),
    ],
)
def test_a_failure_is_an_answer_that_cant_be_read(body, told, tmp_path):
    file = written(tmp_path, f"def act(observation, legal):\n    {body}")
    player = load_agent(f"program:{file}", seconds=0.02)
    (episode,) = rollout(player, [EpisodeTask.of("frozen-lake", 1)])
    step = episode.steps[0]
    assert (step.valid, step.unreadable) == (False, "empty")
    assert told in step.turn.response


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("program:nowhere.py", "there is no file 'nowhere.py'"),
        ("program:", "write program:FILE"),
        ("program", "program:FILE"),
        ("masked(random)", "--set NAME.program=FILE"),
        ("rules:{}", "has no function actions(state) and no outcomes(state, action)"),
        ("program:{}", "has no function act(observation, legal_actions)"),
    ],
)
def test_what_cant_be_played_is_refused_in_a_sentence(spec, message, tmp_path):
    spec = spec.format(written(tmp_path, "def parse(text):\n    return text"))
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)")):
        load_agent(spec)


def test_programs_are_nobodys_code_to_trust_where_the_sandbox_holds_them(monkeypatch):
    assert not names_code(LAKE)
    assert not names_code(f"search({LAKE})")
    assert names_code("search(evil.py:Agent)")
    monkeypatch.setattr("platform.machine", lambda: "vax")
    assert names_code(LAKE)


def test_true_rules_play_as_the_planner():
    rules = load_agent(f"rules:{EXAMPLES / 'frozen_lake_rules.py'}")
    assert returns(rules) == returns(load_agent("planner"))


COUNT = """
def parse(observation): return int(observation)
def actions(state): return ["up", "down"]
def outcomes(state, action):
    if action == "down": return [(0.5, state, 0, False), (0.5, state, 1, True)]
    return [(1, state + 1, 0.3, state == 10**9)]
"""


@pytest.mark.parametrize(("steps", "best"), [(1, "down"), (2, "up"), (None, "up")])
def test_plans_look_as_far_as_there_are_steps_and_states(steps, best, tmp_path):
    """One step: 0.5 against 0.3; two: down 0.5 + 0.5 * 0.5 = 0.75, up 0.3 + 0.5 = 0.8; without a limit 50 states."""
    player = load_agent(f"rules:{written(tmp_path, COUNT)}", max_states=50)
    (turn,) = player.act([TurnRequest("0", legal_actions=("up", "down"), steps_left=steps)])
    assert turn.response == f"<action>{best}</action>"


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("(1, state", "(0.9, state"), "whose probabilities sum to 1, got 0.9 for 'up'"),
        (("0.3, state == 10**9", "0.3"), "(probability, next_state, reward, done), got [(1, 1, 0.3)] for 'up'"),
        (("int(observation)", "{1}"), "a state is what JSON can say"),
        (('["up", "down"]', '"up"'), "actions(state) returns a list of names"),
        (('["up", "down"]', '["sing"]'), "none of the legal actions up, down"),
        (("int(observation)", "int('x')"), "invalid literal for int()"),
    ],
)
def test_rules_of_another_form_say_what_is_wrong(change, told, tmp_path):
    player = load_agent(f"rules:{written(tmp_path, COUNT.replace(*change))}")
    (turn,) = player.act([TurnRequest("0", legal_actions=("up", "down"), steps_left=2)])
    assert told in turn.response


def measured(folder: Path, source: str, scenario: str) -> Fidelity:
    return fidelity(RulesPlayer(written(folder, source)), textgames.known_scenario(scenario), starts=8)


@pytest.mark.slow
@pytest.mark.parametrize(("source", "scenario"), [(LAKE_RULES, "frozen-lake"), (CLIFF, "cliff-walking-slippery")])
def test_true_rules_are_worth_the_optimum(source, scenario, tmp_path):
    found = measured(tmp_path, source, scenario)
    assert (found.share, found.faults) == (1.0, ())
    assert found.value == pytest.approx(found.optimum, abs=1e-9)


WRONG = {
    "holes are one to the left": ('place in state["holes"]', '[place[0] + 1, place[1]] in state["holes"]'),
    "the goal pays nothing": ('float(place == state["goal"])', "0.0"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_rules_are_counted_and_told(wrong, tmp_path):
    source = LAKE_RULES.replace(*WRONG[wrong])
    assert source != LAKE_RULES
    found = measured(tmp_path, source, "frozen-lake")
    assert 0 < found.share < 1
    assert "it says" in found.faults[0]
    assert found.value < found.optimum - 0.2


@pytest.mark.slow
def test_the_count_is_that_of_the_wrong_pairs(tmp_path):
    """Cliff walking has 37 cells to stand on; a rule that is wrong in one of them is wrong in its four pairs."""
    source = CLIFF.replace(
        "found = []\n", "found = []\n    if state == [5, 3]:\n        return [(1.0, state, 0.0, True)]\n"
    )
    found = measured(tmp_path, source, "cliff-walking-slippery")
    assert (found.states, found.pairs, found.right) == (37, 148, 144)


def test_actions_that_are_missing_not_legal_or_fail_are_wrong(tmp_path):
    source = LAKE_RULES.replace("return list(MOVES)", 'return ["left", "down", "right", "jump"]')
    source = source.replace("MOVES[action]", "MOVES.get(action, (0, 0))")
    found = measured(tmp_path, source, "frozen-lake")
    assert (found.right * 5, found.states) == (found.pairs * 3, found.states)
    assert any("isn't legal" in fault for fault in found.faults)
    failing = measured(tmp_path, LAKE_RULES.replace('lines["Player"]', 'lines["Hero"]'), "frozen-lake")
    assert failing.share == 0
    assert "KeyError: 'Hero'" in failing.faults[0]


@pytest.mark.parametrize(
    ("scenario", "message"),
    [("tic-tac-toe", "for one player"), ("guess-number", "hides something"), ("snake", "too many to compare")],
)
def test_games_that_cant_be_compared_are_refused(scenario, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        measured(tmp_path, LAKE_RULES, scenario)


@pytest.mark.slow
def test_rules_are_compared_with_the_game(textbench):
    inspect = ("inspect", f"rules:{EXAMPLES / 'frozen_lake_rules.py'}", "--samples", 1)
    assert "in 920 of 920 pairs" in textbench(*inspect).out
    rules = json.loads(textbench(*inspect, "--scenario", "frozen-lake-slippery", "--json").out)["rules"]
    assert rules["share"] == 0  # they know of no slipping
    assert rules["value"] < rules["optimum"] - 0.05


SAFE = "\ndef allowed(observation, legal):\n    return [act(observation, legal)]"


def test_a_perfect_mask_gains_and_a_useless_one_does_not(tmp_path):
    perfect = written(tmp_path, (EXAMPLES / "frozen_lake_program.py").read_text() + SAFE)
    alone = load_agent("random")
    assert returns(load_agent("masked(random)", program=perfect)) == [1.0] * 30
    useless = written(tmp_path, "def allowed(observation, legal):\n    return legal")
    assert returns(load_agent("masked(random)", program=useless)) == returns(alone)


def test_what_isnt_allowed_stands_in_the_record(tmp_path):
    request = TurnRequest("where", legal_actions=("left", "right"), seed=(1,))
    (said,) = load_agent("random").act([request])
    other = "left" if "<action>right" in said.response else "right"
    mask = written(tmp_path, f"def allowed(observation, legal):\n    return [{other!r}]")
    (turn,) = load_agent("masked(random)", program=mask).act([request])
    assert turn.response.endswith(f"</think><action>{other}</action>")
    assert "Any legal action is as good" in turn.response
    spelt = written(tmp_path, f"def allowed(observation, legal):\n    return [{other!r}, ' Left', 'RIGHT ']")
    (turn,) = load_agent("masked(random)", program=spelt).act([request])
    assert turn.response == said.response, "games read names so"
    failing = written(tmp_path, "def allowed(observation, legal):\n    return []")
    (turn,) = load_agent("masked(random)", program=failing).act([request])
    assert "returned [], which names no actions" in turn.response


DRAWING = "import random\ndef act(observation, legal):\n    return random.choice(legal)"


def drawn(policy: Policy) -> list[str]:
    requests = [TurnRequest("where", legal_actions=("left", "right", "up"), seed=(at, 0)) for at in range(30)]
    return [turn.response for turn in policy.act(requests)]


def test_randomness_follows_from_the_key(tmp_path):
    spec = f"program:{written(tmp_path, DRAWING)}"
    one = load_agent(spec)
    assert drawn(one) == drawn(one)
    assert drawn(one) != drawn(load_agent(spec))
    assert drawn(load_agent(spec, key="a")) == drawn(load_agent(spec, key="a")) != drawn(load_agent(spec, key="b"))


def test_a_run_draws_a_key_and_keeps_it_and_its_program(textbench, tmp_path):
    spec, out = f"p=program:{written(tmp_path, DRAWING)}", tmp_path / "run"
    command = ("run", "--agent", spec, "--scenario", "frozen-lake", "--quiet", "--out")
    assert textbench(*command, out, "--episodes", 2).code == 0
    key = json.loads((out / "manifest.json").read_text())["settings"]["agent_options"]["p"]["key"]
    assert len(key) == 32
    assert textbench(*command, out, "--episodes", 3).code == 0, "the same folder goes on with its own"
    assert textbench("resume", out, "--episodes", 4, "--quiet").code == 0
    assert textbench(*command, tmp_path / "other", "--episodes", 4).code == 0
    assert textbench(*command, tmp_path / "again", "--episodes", 4, "--set", f"p.key={key}").code == 0
    kept, others, same = (
        {record.seed: [step.turn.response for step in record.steps] for record in RunFolder.open(run).records()}
        for run in (out, tmp_path / "other", tmp_path / "again")
    )
    assert kept == same != others
    written(tmp_path, "def act(observation, legal):\n    return legal[0]")
    refused = textbench("resume", out, "--episodes", 5)
    assert (refused.code, "sha256" in refused.err) == (2, True)
