"""Tiny language models: true statements, lossless tokens, a demonstrator that is as good as its style, training."""

import json
import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import PromptMap, TurnRequest
from agents.models.local.loading.card import PLAIN_TEMPLATE, Card, read_card
from agents.prompt import PromptTexts, as_text
from agents.tiny.data import demonstrations, scenarios_of
from agents.tiny.demonstrator import Demonstrator, StyleShares
from agents.tiny.recipe import Recipe
from agents.tiny.statements import Sight, check, is_true
from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.frozen_lake.solver import FrozenLakeSolver
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS
from textgames.snake import Snake
from textgames.snake.rules import SnakeState

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

DEMONSTRATED = [name for name, one in SCENARIOS.items() if one.env_id in ("TextFrozenLake-v0", "TextSnake-v0")]
"""The scenarios that the demonstrator can play."""

# ------------------------------------------------------------------ statements

LAKE = FrozenLake().observe(FrozenLakeState(Lake.from_desc(["SFFF", "FHFF", "FFHF", "HFFG"]), 4), "player_0")
# the player is at (0, 2): ice above and below, a hole to the right, the edge to the left; the goal is 3 right, 2 down


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        ("goal is right and down", True),
        ("goal is down and right", True),
        ("the goal is right and down.", True),
        ("goal is right", False),
        ("goal is left and down", False),
        ("right is hole", True),
        ("right is ice", False),
        ("left is edge", True),
        ("left is ice", False),
        ("up is ice", True),
        ("down is ice", True),
        ("down is goal", False),
        ("right down is ice", True),
        ("down down is hole", True),
        ("down down is ice", False),
        ("right right is ice", True),
        ("left left is edge", True),
        ("up up is edge", True),
        ("apple is left", False),
    ],
)
def test_statements_about_a_lake(statement: str, true: bool) -> None:
    assert is_true(statement, LAKE) == float(true)


# 5 x 4 board; own snake (1, 1) head, body (0, 1); enemy head (1, 3), body (2, 3); apples (3, 1) and (1, 2); fire (2, 0)
SNAKE_GAME = Snake(width=5, height=4, num_apples=2, num_fires=1)
SNAKE = SNAKE_GAME.observe(SnakeState(((6, 5), (16, 17)), (8, 11), (), (2,)), "player_0")


@pytest.mark.parametrize(
    ("statement", "true"),
    [
        ("nearest apple is up", True),
        ("nearest apple is right", False),  # that one is two cells away
        ("nearest fire is right and down", True),
        ("nearest enemy is up", True),
        ("left is body", True),
        ("left is free", False),
        ("up is apple", True),
        ("right is free", True),
        ("down is free", True),
        ("down is wall", False),
        ("nearest banana is up", False),
        ("apple (1, 2) is up", True),
        ("apple (3, 1) is right", True),  # not the nearest one, but there it is
        ("apple (3, 1) is left", False),
        ("apple (3, 2) is right and up", False),  # nothing there
        ("fire (2, 0) is down and right", True),
        ("fire (2, 0) is right", False),
        ("wall (2, 0) is right", False),
        ("head (1, 1)", True),
        ("head (1, 2)", False),
    ],
)
def test_statements_about_snakes(statement: str, true: bool) -> None:
    assert is_true(statement, SNAKE) == float(true)


def test_a_reasoning_is_counted_part_by_part() -> None:
    response = "<think>goal is right and down; right is ice, I like ice</think><plan>up</plan><action>up</action>"
    assert check(response, LAKE) == (1, 1, 1)
    assert check("<think>apple (3, 1) is right; up is apple, down is wall</think>", SNAKE) == (2, 1, 0)
    assert is_true(response, LAKE) == pytest.approx(1 / 3)
    assert math.isnan(is_true("<action>up</action>", LAKE))
    assert math.isnan(is_true("", LAKE))
    with pytest.raises(ValueError, match="grid=True"):
        check("right is ice", FrozenLake(grid=False).observe(FrozenLakeState(Lake.from_desc(["SF", "FG"]), 0), ""))


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_sight_agrees_with_the_state(name: str) -> None:
    """Read from the text, the board is the game's own."""
    game = SCENARIOS[name].game()
    for seed in range(5):
        state = game.initial_state(np.random.default_rng(seed))
        sight = Sight.of(game.observe(state, "player_0"))
        board = game.board(state)
        assert (sight.width, sight.height) == (len(board[0]), len(board))
        x, y = sight.head
        assert board[sight.height - 1 - y][x] in "P1"
        marks = {"ice": "_", "hole": "O", "goal": "G", "free": "_", "body": "T", "apple": "A", "banana": "B"}
        for (cx, cy), kind in sight.kinds.items():
            assert board[sight.height - 1 - cy][cx] == marks.get(kind, "2")


# ------------------------------------------------------------------ the demonstrator


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_what_it_says_is_true_and_names_its_action(name: str) -> None:
    scenario = SCENARIOS[name]
    game = scenario.game()
    for example in demonstrations(scenario, 60, StyleShares(), np.random.default_rng(1)):
        truth = check(example.response, example.observation)
        assert truth.true
        assert (truth.false, truth.unreadable) == (0, 0)
        action = game.interpret(example.response, None, "player_0") if name != "" else None
        assert action in game.actions
        assert f"<plan>{action}</plan>" in example.response


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_foresight_changes_what_is_said_and_nothing_that_is_done(name: str) -> None:
    made = [
        demonstrations(SCENARIOS[name], 80, StyleShares(), np.random.default_rng(1), foresight=foresight)
        for foresight in (1, 2, 3, 5)
    ]
    for shorter, longer in pairwise(made):
        for short, long in zip(shorter, longer, strict=True):
            assert long[:3] == short[:3]  # the same prompt, so the same moves were made before it
            assert long.response.split("</think>")[1] == short.response.split("</think>")[1]
            assert long.response.startswith(short.response.split("</think>")[0])
            truth = check(long.response, long.observation)
            assert (truth.false, truth.unreadable) == (0, 0)
        assert sum(len(one.response) for one in longer) > 1.1 * sum(len(one.response) for one in shorter)
    with pytest.raises(ValueError, match="foresight is 1"):
        Demonstrator(SCENARIOS[name].game(), StyleShares(), foresight=7)


@pytest.mark.parametrize(
    ("cell", "foresight", "told"),
    [
        # at (2, 3): right of it ice and below it ice; behind them the edge, the ice at (3, 2) and the hole at (2, 1)
        (2, 2, "; right right is edge, right down is ice, down down is hole</think>"),
        # from (3, 2), which both ways lead to, on: the edge and the ice at (3, 1)
        (2, 3, "down down is hole; right down right is edge, right down down is ice</think>"),
        # at (0, 2): right of it a hole, so the way down alone: to (0, 1), and from there to (1, 1) and the hole (0, 0)
        (4, 2, "down is ice; down right is ice, down down is hole</think>"),
        (4, 3, "down down is hole; down right right is hole, down right down is ice</think>"),
        # and on to the goal, and to the edge below the cell before it
        (4, 5, "; down right down right right is goal, down right down right down is edge</think>"),
    ],
)
def test_foresight_names_every_cell_on_the_ways_to_the_goal_once(cell: int, foresight: int, told: str) -> None:
    game = FrozenLake(desc=["SFFF", "FHFF", "FFHF", "HFFG"])
    state = FrozenLakeState(Lake.from_desc(["SFFF", "FHFF", "FFHF", "HFFG"]), cell)
    demonstrator = Demonstrator(game, StyleShares(0, 1), foresight=foresight)  # only towards the goal
    assert (
        demonstrator(state, game.observe(state, "player_0"), np.random.default_rng(0))
        .think.split("<plan>")[0]
        .endswith(told)
    )


def _play(game: Any, style: StyleShares, episodes: int, horizon: int) -> tuple[float, float]:
    demonstrator = Demonstrator(game, style)
    returns, successes = [], []
    for seed in range(episodes):
        rng = np.random.default_rng([seed, 9])
        state, total = game.initial_state(np.random.default_rng(seed)), 0.0
        for _ in range(horizon):
            action = demonstrator(state, game.observe(state, "player_0"), rng).action
            state, rewards, over = game.transition(state, {"player_0": action}, rng)
            total += rewards["player_0"]
            if over:
                break
        returns.append(total)
        successes.append(game.succeeded(state, "player_0"))
    return float(np.mean(returns)), float(np.mean(successes))


def test_sensible_is_optimal_on_ice_that_is_not_slippery() -> None:
    game = FrozenLake()
    solver = FrozenLakeSolver(game)
    states = [game.initial_state(np.random.default_rng(seed)) for seed in range(60)]
    reachable = np.mean([solver.value(state, 8, "player_0") for state in states])
    assert _play(game, StyleShares(1, 0), 60, 8)[0] == pytest.approx(reachable)


@pytest.mark.slow
def test_styles_are_as_good_as_they_sound() -> None:
    for game, horizon in ((FrozenLake(), 8), (Snake(), 8)):
        sensible, hasty, random = (
            _play(game, style, 60, horizon)[0] for style in (StyleShares(1, 0), StyleShares(0, 1), StyleShares(0, 0))
        )
        assert sensible > hasty + 0.3 > random + 0.5
    assert _play(Snake(), StyleShares(1, 0), 60, 8)[1] > 0.95  # it stays alive


def test_it_refuses_other_games_and_odd_shares() -> None:
    with pytest.raises(ValueError, match="shares of 1"):
        Demonstrator(FrozenLake(), StyleShares(0.9, 0.2))
    with pytest.raises(ValueError, match="not of object"):
        Demonstrator(object(), StyleShares())  # type: ignore[arg-type]


# ------------------------------------------------------------------ data


@pytest.mark.parametrize("prompts", ["default", "without-clock"])
def test_examples_are_prompts_of_the_real_prompt_map_on_training_layouts(prompts: str) -> None:
    scenario = SCENARIOS["frozen-lake"]
    game = scenario.game()
    layouts = {game.initial_state(np.random.default_rng(seed)).lake for seed in TRAINING_SEEDS}
    from textgames.frozen_lake.text import read_observation

    rng, texts, clocks = np.random.default_rng(3), PromptTexts.from_file(prompts), []
    for example in demonstrations(scenario, 40, StyleShares(), rng, modes=("think", "direct"), texts=texts):
        mode = "think" if "<think>" in example.response else "direct"
        said = re.search(r"this one included: (\d+)\.", example.after)
        clocks.append(int(said[1]) if said else None)
        request = TurnRequest(example.observation, game.instructions("player_0"), game.actions, steps_left=clocks[-1])
        assert example.prompt == as_text(PromptMap(mode=mode, texts=texts)(request))
        tiles = read_observation(example.observation).lake.tiles.replace("S", "F")
        assert any(lake.tiles.replace("S", "F") == tiles for lake in layouts)
    if prompts == "without-clock":
        assert set(clocks) == {None}
    else:  # one move fewer at every decision of an episode, from the scenario's limit
        assert clocks[0] == scenario.horizon
        assert all(now in (before - 1, scenario.horizon) for before, now in pairwise(clocks))


def test_shares_of_the_scenarios() -> None:
    shares = scenarios_of(["frozen-lake", "snake"])
    assert set(shares) == set(DEMONSTRATED)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["frozen-lake"] == pytest.approx(0.25)
    assert scenarios_of(["snake-training", "snake-poison"]) == {"snake": 0.5, "snake-poison": 0.5}
    with pytest.raises(ValueError, match="no game or scenario 'chess'"):
        scenarios_of(["chess"])
    with pytest.raises(ValueError, match="snake-poison-training"):
        scenarios_of(["snake-poison-training"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps is a whole number"),
        ({"learning_rate": 0.0}, "learning_rate is above 0"),
        ({"hidden_size": 32}, "multiple of twice the heads"),
        ({"heads": 4, "hidden_size": 64, "kv_heads": 3}, "kv_heads divides heads"),
        ({"modes": ("shout",)}, "modes are think and direct"),
        ({"games": ()}, "games is empty"),
        ({"style": StyleShares(2, 0)}, "shares of 1"),
        ({"foresight": 7}, "foresight is 1 to 6, got 7"),
        ({"prompts": "no-such-file"}, "can't read the prompt file 'no-such-file'"),
    ],
)
def test_recipes_refuse_what_can_not_be(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(**change)


# ------------------------------------------------------------------ tokenizer

SMALL: dict[str, Any] = {
    "examples": 700, "hidden_size": 16, "intermediate_size": 32, "layers": 1, "heads": 2, "batch_size": 16, "steps": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    from agents.tiny.imitation import demonstrate, make_tokenizer

    return make_tokenizer(demonstrate(Recipe(**SMALL)))


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(
    text=st.one_of(
        st.text(),
        st.lists(
            st.sampled_from(
                [
                    "<think>",
                    "</action>",
                    "(1, 2)",
                    "(12, 3)",
                    " _",
                    "\n",
                    "_ _ _ _ _ _",
                    "12",
                    ", ",
                    "goal is ",
                    "é",
                    "none",
                ]
            )
        ).map("".join),
    )
)
def test_any_text_is_decoded_to_itself(tokenizer: Any, text: str) -> None:
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair isn't text
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize("name", DEMONSTRATED)
@pytest.mark.parametrize("mode", ["think", "direct"])
def test_prompts_are_few_tokens(tokenizer: Any, name: str, mode: str) -> None:
    game = SCENARIOS[name].game()
    for seed in range(10):
        state = game.initial_state(np.random.default_rng(seed))
        observation, instructions = game.observe(state, "player_0"), game.instructions("player_0")
        text = as_text(PromptMap(mode=mode)(TurnRequest(observation, instructions, game.actions, steps_left=8)))
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids) == text
        assert len(ids) <= (45 if name in ("frozen-lake", "frozen-lake-slippery") else 110)


def test_numbers_and_coordinates_have_one_form_each(tokenizer: Any) -> None:
    def pieces(text: str) -> list[str]:
        return [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]

    assert pieces("(3, 7)") == ["(3, 7)"]
    assert pieces("Holes: (3, 7), (0, 9)")[-3:] == ["(3, 7)", ", ", "(0, 9)"]
    assert pieces("2048")[-4:] == list("2048")
    assert pieces("right is ice, down is hole") == ["right", " is", " ice", ", ", "down", " is", " hole"]
    assert pieces("<think></think><plan></plan><action></action>")[-1] == "</action>"
    assert pieces("P _ _ O\n_ _ _ _")[:8] == ["P", " _", " _", " O", "\n", "_", " _", " _"]


# ------------------------------------------------------------------ training


def test_the_loss_is_that_of_the_response_tokens_alone(tokenizer: Any) -> None:
    """Against the model's own forward, one example at a time, with prompts masked out of the labels."""
    from agents.tiny.imitation import demonstrate, imitation_loss, make_model, tokenize

    recipe = Recipe(**SMALL)
    data = tokenize(demonstrate(recipe)[::60], tokenizer)
    model = make_model(recipe, tokenizer)
    wanted = 0.0
    with torch.no_grad():
        for example in data:
            ids = torch.tensor([example.ids])
            labels = ids.clone()
            labels[:, : example.prompt_length] = -100
            predicted = len(example.ids) - example.prompt_length
            assert example.ids[-1] == tokenizer.eos_token_id
            wanted += model(input_ids=ids, labels=labels).loss.item() * predicted
        assert imitation_loss(model, data).item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.slow
def test_training_is_deterministic_learns_and_is_saved(tmp_path: Path) -> None:
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import pretrain, save

    recipe = Recipe(**SMALL | {"games": ("frozen-lake-training",), "seed": 4, "learning_rate": 1e-2})
    seen = []
    first = pretrain(recipe, on_progress=seen.append)
    second = pretrain(recipe)
    for a, b in zip(first.model.parameters(), second.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert first.losses[-1] < 0.6 * first.losses[0]
    assert [progress.step for progress in seen] == list(range(1, 21))

    save(first, tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(model).__name__ == "LlamaForCausalLM"
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("Player: (0, 3)\n")["input_ids"] == first.tokenizer("Player: (0, 3)\n")["input_ids"]
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert loaded.chat_template == PLAIN_TEMPLATE
    assert read_card(str(tmp_path)) == Card(recipe.modes, PromptTexts.default())
    assert json.loads((tmp_path / "recipe.json").read_text())["recipe"]["seed"] == 4
    card = (tmp_path / "README.md").read_text()
    assert "Limits" in card
    assert "frozen-lake 100.0%" in card
    assert TransformersModel.from_pretrained(tmp_path).settings["forward"] == "lean"


@pytest.mark.slow
def test_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path: Path) -> None:
    from agents.tiny import pretrain
    from agents.tiny.imitation import Progress

    class Stopped(Exception):
        pass

    def stop(progress: Progress) -> None:
        seen.append(progress.step)
        if progress.step == 14:
            raise Stopped

    seen: list[int] = []
    recipe = Recipe(**SMALL | {"games": ("frozen-lake-training",), "examples": 100})
    whole = pretrain(recipe)
    file = tmp_path / "state.pt"
    with pytest.raises(Stopped):
        pretrain(recipe, on_progress=stop, checkpoint=file)
    with pytest.raises(ValueError, match="another recipe"):
        pretrain(replace(recipe, seed=1), checkpoint=file)
    seen.clear()
    parts = pretrain(recipe, on_progress=lambda progress: seen.append(progress.step), checkpoint=file)
    assert seen == list(range(13, 21))  # from the last checkpoint on
    assert parts.losses == whole.losses
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not file.exists()
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="delete it"):
        pretrain(recipe, checkpoint=file)


def test_the_command_refuses_bad_input_without_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from agents.tiny.__main__ import main

    assert main(["--out", str(tmp_path / "x"), "--games", "chess"]) == 2
    assert "no game or scenario 'chess'" in capsys.readouterr().err
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "precious").write_text("")
    assert main(["--out", str(tmp_path / "full")]) == 2
    assert "--force" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "file")]) == 2
    assert "not a folder" in capsys.readouterr().err


def test_the_command_says_what_is_wrong_with_the_state_that_it_would_go_on_from(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from agents.tiny.__main__ import main

    (tmp_path / "model.partial").write_text("not a state")
    settings = ["--games", "frozen-lake-training", "--modes", "direct", "--examples", "40", "--steps", "1", "--quiet"]
    assert main(["--out", str(tmp_path / "model"), *settings, "--episodes", "0"]) == 2
    assert "model.partial is no checkpoint of a tiny model" in capsys.readouterr().err
    (tmp_path / "model.partial").unlink()
    assert main(["--out", str(tmp_path / "model"), *settings, "--episodes", "0"]) == 0
    assert not (tmp_path / "model.partial").exists()


@pytest.mark.slow
def test_the_command_makes_evaluates_and_describes_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from agents import load_agent
    from agents.tiny.__main__ import main

    out = tmp_path / "model"
    settings = ["--quick", "--steps", "4", "--examples", "120", "--episodes", "3", "--seed", "2"]
    assert main(["--out", str(out), *settings]) == 0
    said = capsys.readouterr()
    assert "this model, think" in said.out
    assert "saved" in said.err
    card = (out / "README.md").read_text()
    for row in ("| frozen-lake | this model, think | 3 |", "| frozen-lake | planner | 3 |", "--seed 2", "from commit"):
        assert row in card
    assert "--out DIR" in card
    assert str(tmp_path) not in card
    assert (out / "model.safetensors").stat().st_mode & 0o444 == 0o444
    turn = load_agent(f"hf:{out}", max_tokens=4).act(["Player: (0, 3)"])[0]
    assert len(turn.response_ids or ()) <= 4


def test_figures_are_those_of_the_played_episodes() -> None:
    from agents import load_agent
    from agents.tiny.evaluation import evaluate

    figures = evaluate(load_agent("planner"), "frozen-lake", 20)
    assert (figures.episodes, figures.agent) == (20, "planner")
    assert figures.success.low <= figures.success.value == figures.returned.value <= figures.success.high
    assert figures.success.value > 0.9
    assert figures.invalid == (0, 0, 0)
    assert math.isnan(figures.truth)


@pytest.mark.slow
def test_the_quick_recipe_learns_to_play_and_to_say_what_is_true() -> None:
    from agents import Decoding, LanguageAgentPolicy
    from agents.models.local.transformers import TransformersModel
    from agents.tiny import pretrain
    from agents.tiny.evaluation import evaluate

    made = pretrain(Recipe.quick(steps=500, examples=20_000))
    model = TransformersModel(made.model, made.tokenizer, name="quick")
    figures = evaluate(LanguageAgentPolicy(model, decoding=Decoding(max_tokens=48)), "frozen-lake", 200)
    assert figures.success.low > 0.1  # random: about 0.01
    assert figures.invalid.value < 0.02
    assert figures.truth > 0.9
