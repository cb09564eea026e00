"""Tiny language models: sight of a board, lossless tokens, a demonstrator as good as its style, training."""

import json
import re
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import PromptMap, TurnRequest
from agents.models.local.loading.card import PLAIN_TEMPLATE, Card, read_card
from agents.prompt import as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.data import demonstrations, scenarios_of
from agents.tiny.demonstrator import Demonstrator, Sight, StyleShares
from agents.tiny.recipe import Recipe
from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS
from textgames.snake import Snake
from textgames.solving.value_iteration import ValueIteration

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

DEMONSTRATED = [name for name, one in SCENARIOS.items() if one.env_id in ("TextFrozenLake-v0", "TextSnake-v0")]
"""The scenarios that the demonstrator can play."""

# ------------------------------------------------------------------ what it sees


@pytest.mark.parametrize("name", DEMONSTRATED)
def test_sight_agrees_with_the_state(name):
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
def test_foresight_changes_what_is_said_and_nothing_that_is_done(name):
    made = [
        demonstrations(SCENARIOS[name], 80, StyleShares(), np.random.default_rng(1), foresight=foresight)
        for foresight in (1, 2, 3, 5)
    ]
    for shorter, longer in pairwise(made):
        for short, long in zip(shorter, longer, strict=True):
            assert long[:3] == short[:3]  # the same prompt, so the same moves were made before it
            assert long.response.split("</think>")[1] == short.response.split("</think>")[1]
            assert long.response.startswith(short.response.split("</think>")[0])
        assert sum(len(one.response) for one in longer) > 1.1 * sum(len(one.response) for one in shorter)


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
def test_foresight_names_every_cell_on_the_ways_to_the_goal_once(cell, foresight, told):
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


def test_sensible_is_optimal_on_ice_that_is_not_slippery_and_stays_alive_among_snakes():
    game = FrozenLake()
    solver = ValueIteration(game)
    states = [game.initial_state(np.random.default_rng(seed)) for seed in range(60)]
    reachable = np.mean([solver.value(state, 8, "player_0") for state in states])
    assert _play(game, StyleShares(1, 0), 60, 8)[0] == pytest.approx(reachable)
    eaten, alive = _play(Snake(), StyleShares(1, 0), 40, 8)
    assert alive > 0.9
    assert eaten > 0.3 + _play(Snake(), StyleShares(0, 1), 40, 8)[0]


def test_it_refuses_other_games_and_odd_shares():
    with pytest.raises(ValueError, match="foresight must be a whole number from 1 to 6"):
        Demonstrator(FrozenLake(), StyleShares(), foresight=7)
    with pytest.raises(ValueError, match="shares of 1"):
        Demonstrator(FrozenLake(), StyleShares(0.9, 0.2))
    with pytest.raises(ValueError, match="not of object"):
        Demonstrator(object(), StyleShares())  # type: ignore[arg-type]


# ------------------------------------------------------------------ data


@pytest.mark.parametrize("prompts", ["default", "without-clock"])
def test_examples_are_prompts_of_the_real_prompt_map_on_training_layouts(prompts):
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


def test_shares_of_the_scenarios():
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
        ({"steps": 0}, "steps must be a whole number of at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be a finite number above 0"),
        ({"hidden_size": 32}, "multiple of twice the heads"),
        ({"heads": 4, "hidden_size": 64, "kv_heads": 3}, "kv_heads divides heads"),
        ({"modes": ("shout",)}, "modes are think and direct"),
        ({"games": ()}, "games is empty"),
        ({"style": StyleShares(2, 0)}, "shares of 1"),
        ({"foresight": 7}, "foresight must be a whole number from 1 to 6, got 7"),
        ({"prompts": "no-such-file"}, "can't read the prompt file 'no-such-file'"),
    ],
)
def test_recipes_refuse_what_can_not_be(change, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**change)


# ------------------------------------------------------------------ tokenizer

SMALL: dict[str, Any] = {
    "examples": 700, "hidden_size": 16, "intermediate_size": 32, "layers": 1, "heads": 2, "batch_size": 16, "steps": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    from agents.tiny.imitation import demonstrate, make_tokenizer

    return make_tokenizer(demonstrate(Recipe(**SMALL)))


PIECES = ["<think>", "</action>", "(1, 2)", "(12, 3)", " _", "\n", "_ _ _ _ _ _", "12", ", ", "goal is ", "é", "none"]


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(text=st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map("".join)))
def test_any_text_is_decoded_to_itself(tokenizer, text):
    text = text.encode("utf-8", "replace").decode()  # half a surrogate pair isn't text
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text


@pytest.mark.parametrize("name", DEMONSTRATED)
@pytest.mark.parametrize("mode", ["think", "direct"])
def test_prompts_are_few_tokens(tokenizer, name, mode):
    game = SCENARIOS[name].game()
    for seed in range(10):
        state = game.initial_state(np.random.default_rng(seed))
        observation, instructions = game.observe(state, "player_0"), game.instructions("player_0")
        text = as_text(PromptMap(mode=mode)(TurnRequest(observation, instructions, game.actions, steps_left=8)))
        ids = tokenizer(text)["input_ids"]
        assert tokenizer.decode(ids) == text
        assert len(ids) <= (45 if name in ("frozen-lake", "frozen-lake-slippery") else 110)


def test_numbers_and_coordinates_have_one_form_each(tokenizer):
    def pieces(text: str) -> list[str]:
        return [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]

    assert pieces("(3, 7)") == ["(3, 7)"]
    assert pieces("Holes: (3, 7), (0, 9)")[-3:] == ["(3, 7)", ", ", "(0, 9)"]
    assert pieces("2048")[-4:] == list("2048")
    assert pieces("right is ice, down is hole") == ["right", " is", " ice", ", ", "down", " is", " hole"]
    assert pieces("<think></think><plan></plan><action></action>")[-1] == "</action>"
    assert pieces("P _ _ O\n_ _ _ _")[:8] == ["P", " _", " _", " O", "\n", "_", " _", " _"]


# ------------------------------------------------------------------ training


def test_the_loss_is_that_of_the_response_tokens_alone(tokenizer):
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
def test_training_is_deterministic_learns_and_is_saved(tmp_path):
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
    assert TransformersModel.from_pretrained(tmp_path).settings["forward"] == "lean"


@pytest.mark.slow
def test_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path):
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
