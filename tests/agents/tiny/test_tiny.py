"""Tiny language models: sight of a board, a demonstrator as good as its style, training, and those that ship."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from agents import EpisodeTask, PromptMap, TurnRequest, load_agent, request_in
from agents.baselines.random import RandomPlayer
from agents.loop.rollout import rollout
from agents.models.base import Decoding
from agents.models.embedded import CONTEXT_LENGTH, READS, embedded_agents
from agents.models.local.loading.card import PLAIN_TEMPLATE, Card, read_card
from agents.prompt import as_text
from agents.prompt_texts import PromptTexts
from agents.tiny.data import Recipe, demonstrations, legal_play, scenarios_of, whole_texts
from agents.tiny.demonstrator import Demonstrator, Sight, StyleShares
from agents.turn import Turn
from textgames.frozen_lake import FrozenLake, FrozenLakeState, Lake
from textgames.frozen_lake.text import read_observation
from textgames.rounds import rounds_of_play
from textgames.scenarios import SCENARIOS, TRAINING_SEEDS
from textgames.snake import Snake
from textgames.solving.value_iteration import ValueIteration

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from agents.models.local.transformers import TransformersModel  # noqa: E402
from agents.tiny import pretrain, save  # noqa: E402
from agents.tiny.imitation import demonstrate, imitation_loss, make_model, make_tokenizer, tokenize  # noqa: E402

MARKS = {"ice": "_", "hole": "O", "goal": "G", "free": "_", "body": "T", "apple": "A", "banana": "B"}


@pytest.mark.parametrize(
    ("cell", "foresight", "told"),
    [
        # at (2, 3): right of it ice and below it ice; behind them the edge, the ice at (3, 2) and the hole at (2, 1)
        (2, 2, "; right right is edge, right down is ice, down down is hole</think>"),
        # at (0, 2): right of it a hole, so the way down alone, on to the goal, and to the edge below the cell before it
        (4, 5, "; down right down right right is goal, down right down right down is edge</think>"),
    ],
)
def test_foresight_names_every_cell_on_the_ways_to_the_goal_once(cell, foresight, told):
    game = FrozenLake(desc=["SFFF", "FHFF", "FFHF", "HFFG"])
    state = FrozenLakeState(Lake.from_desc(["SFFF", "FHFF", "FFHF", "HFFG"]), cell)
    demonstrator = Demonstrator(game, StyleShares(0, 1), foresight=foresight)  # only towards the goal
    said = demonstrator(state, game.observe(state, "player_0"), np.random.default_rng(0))
    assert said.think.split("<plan>")[0].endswith(told)


def _play(game: Any, style: StyleShares, episodes: int = 30) -> tuple[float, float]:
    """The mean return in eight rounds, and the share of successes. What is seen in the text is the game's own board."""
    demonstrator, ends = Demonstrator(game, style), []
    for seed in range(episodes):
        rng, total = np.random.default_rng([seed, 9]), 0.0

        def choose(state: Any, player: str, rng: Any = rng) -> str:
            sight, board = Sight.of(game.observe(state, player)), game.board(state)[::-1]
            assert board[sight.head[1]][sight.head[0]] in "P1"
            assert all(board[y][x] == MARKS.get(kind, "2") for (x, y), kind in sight.kinds.items())
            return demonstrator(state, game.observe(state, player), rng).action

        for one in rounds_of_play(game, game.initial_state(np.random.default_rng(seed)), 8, rng, choose):
            total += one.rewards["player_0"]
        ends.append((total, game.succeeded(one.next_state, "player_0")))
    value, alive = np.mean(ends, axis=0)
    return float(value), float(alive)


def test_sensible_is_optimal_on_ice_that_is_not_slippery_and_stays_alive_among_snakes():
    game = FrozenLake()
    solver = ValueIteration(game)
    states = [game.initial_state(np.random.default_rng(seed)) for seed in range(30)]
    reachable = np.mean([solver.value(state, 8, "player_0") for state in states])
    assert _play(game, StyleShares(1, 0))[0] == pytest.approx(reachable)
    eaten, alive = _play(Snake(), StyleShares(1, 0))
    assert alive > 0.9
    assert eaten > 0.3 + _play(Snake(), StyleShares(0, 1))[0]


@pytest.mark.parametrize("prompts", ["default", "without-clock"])
def test_examples_are_prompts_of_the_real_prompt_map_on_training_layouts(prompts):
    scenario = SCENARIOS["frozen-lake"]
    game = scenario.game()
    layouts = {game.initial_state(np.random.default_rng(seed)).lake.tiles.replace("S", "F") for seed in TRAINING_SEEDS}
    rng, texts, clocks = np.random.default_rng(3), PromptTexts.from_file(prompts), []
    for example in demonstrations(scenario, 40, StyleShares(), rng, modes=("think", "direct"), texts=texts):
        mode = "think" if "<think>" in example.response else "direct"
        said = re.search(r"this one included: (\d+)\.", example.after)
        clocks.append(int(said[1]) if said else None)
        request = TurnRequest(example.observation, game.instructions("player_0"), game.actions, steps_left=clocks[-1])
        assert example.prompt == as_text(PromptMap(mode=mode, texts=texts)(request))
        assert read_observation(example.observation).lake.tiles.replace("S", "F") in layouts
    if prompts == "without-clock":
        assert set(clocks) == {None}
    else:  # one move fewer at every decision of an episode, from the scenario's limit
        assert clocks[0] == scenario.horizon
        assert all(now in (before - 1, scenario.horizon) for before, now in pairwise(clocks))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_size": 32}, "multiple of twice the heads"),
        ({"modes": ("shout",)}, "modes are think and direct"),
        ({"style": StyleShares(2, 0)}, "shares of 1"),
        ({"foresight": 7}, "foresight must be a whole number from 1 to 6, got 7"),
        ({"prompts": "no-such-file"}, "can't read the prompt file 'no-such-file'"),
    ],
)
def test_recipes_refuse_what_can_not_be(change, message):
    with pytest.raises(ValueError, match=message):
        Recipe(**change)


SMALL: dict[str, Any] = {
    "examples": 700, "hidden_size": 16, "intermediate_size": 32, "layers": 1, "heads": 2, "batch_size": 16, "steps": 20,
}  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer(demonstrate(Recipe(**SMALL)))


def test_prompts_are_few_tokens_and_numbers_and_coordinates_have_one_form_each(tokenizer):
    game = FrozenLake()
    for seed in range(5):
        request = request_in(game, game.initial_state(np.random.default_rng(seed)), "player_0", 8)
        assert len(tokenizer(as_text(PromptMap()(request)))["input_ids"]) <= 45

    def pieces(text: str) -> list[str]:
        return [tokenizer.decode([token]) for token in tokenizer(text)["input_ids"]]

    assert pieces("Holes: (3, 7), (0, 9)")[-3:] == ["(3, 7)", ", ", "(0, 9)"]
    assert pieces("2048")[-4:] == list("2048")
    assert pieces("right is ice, down is hole") == ["right", " is", " ice", ", ", "down", " is", " hole"]
    assert pieces("P _ _ O\n_ _ _ _")[:8] == ["P", " _", " _", " O", "\n", "_", " _", " _"]


def test_the_loss_is_that_of_the_response_tokens_alone(tokenizer):
    """Against the model's own forward, one example at a time, with prompts masked out of the labels."""
    recipe, wanted = Recipe(**SMALL), 0.0
    data = tokenize(demonstrate(recipe)[::60], tokenizer)
    model = make_model(recipe, tokenizer)
    for example in data:
        ids, predicted = torch.tensor([example.ids]), len(example.ids) - example.prompt_length
        labels = torch.where(torch.arange(ids.shape[1]) < example.prompt_length, -100, ids)
        assert example.ids[-1] == tokenizer.eos_token_id
        wanted += model(input_ids=ids, labels=labels).loss.item() * predicted
    assert imitation_loss(model, data).item() == pytest.approx(wanted, rel=1e-5)


@pytest.mark.slow
def test_training_learns_and_is_saved(tmp_path):
    recipe = Recipe(**SMALL | {"games": ("frozen-lake-training",), "seed": 4, "learning_rate": 1e-2})
    made = pretrain(recipe)
    assert made.losses[-1] < 0.6 * made.losses[0]
    save(made, tmp_path)
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path)
    assert type(model).__name__ == "LlamaForCausalLM"
    loaded = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert loaded("Player: (0, 3)\n")["input_ids"] == made.tokenizer("Player: (0, 3)\n")["input_ids"]
    assert json.loads((tmp_path / "tokenizer_config.json").read_text())["tokenizer_class"] == "PreTrainedTokenizerFast"
    assert loaded.chat_template == PLAIN_TEMPLATE
    assert read_card(str(tmp_path)) == Card(recipe.modes, PromptTexts.default())
    assert json.loads((tmp_path / "recipe.json").read_text())["recipe"]["seed"] == 4
    assert TransformersModel.from_pretrained(tmp_path).settings["forward"] == "lean"


@pytest.mark.slow
def test_training_that_was_stopped_goes_on_to_the_same_weights(tmp_path):
    def stop(progress: Any) -> None:
        if progress.step == 14:
            raise KeyboardInterrupt

    seen: list[int] = []
    recipe = Recipe(**SMALL | {"games": ("frozen-lake-training",), "examples": 100})
    whole = pretrain(recipe)
    file = tmp_path / "state.pt"
    with pytest.raises(KeyboardInterrupt):
        pretrain(recipe, on_progress=stop, checkpoint=file)
    with pytest.raises(ValueError, match="another recipe"):
        pretrain(replace(recipe, seed=1), checkpoint=file)
    parts = pretrain(recipe, on_progress=lambda progress: seen.append(progress.step), checkpoint=file)
    assert seen == list(range(13, 21))  # from the last checkpoint on
    assert parts.losses == whole.losses
    for a, b in zip(whole.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not file.exists()
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="delete it"):
        pretrain(recipe, checkpoint=file)


@pytest.mark.parametrize("name", ["nim", "kuhn-poker", "frozen-lake"])
def test_prompts_are_those_of_play_and_every_response_is_legal(name):
    game = SCENARIOS[name].game()
    examples, clocks = legal_play(SCENARIOS[name], 200, np.random.default_rng(0)), set()
    assert len(examples) == 200
    starts, seen = {game.instructions(player): player for player in game.players}, set()
    for example in examples:
        instructions = example.before.removesuffix("\n\n")
        legal = example.after.partition("NAME is one of: ")[2].partition(". Write")[0].split(", ")
        left = int(example.after.partition("this one included: ")[2].partition(".")[0])
        request = TurnRequest(example.observation, instructions, tuple(legal), steps_left=left)
        assert example.prompt == as_text(PromptMap("direct")(request))
        assert example.response in {f"<action>{action}</action>" for action in legal}
        seen.add(starts[instructions])
        clocks.add(left)
    assert seen == set(game.players)
    assert max(clocks) == SCENARIOS[name].horizon
    assert len(clocks) > 1


@pytest.mark.parametrize(("favourites", "beyond"), [(0.0, 26.1), (0.5, 24.3)])  # 0.1% of chi-square, 8 and 7 degrees
def test_a_favourite_has_its_share_and_the_other_moves_are_equally_likely(favourites, beyond):
    examples = legal_play(SCENARIOS["tic-tac-toe"], 12_000, np.random.default_rng(1), favourites=favourites)
    first = (example.response for example in examples if "X" not in example.observation.partition("Board")[2])
    (most, *others), n = (counts := Counter(first)).most_common(), counts.total()
    assert len(counts) == 9
    assert abs(most[1] / n - (favourites + (1 - favourites) / 9)) < 4 * (0.25 / n) ** 0.5
    rest = [count for _, count in (others if favourites else counts.items())]
    expected = sum(rest) / len(rest)
    assert sum((count - expected) ** 2 / expected for count in rest) < beyond


def test_only_what_never_changes_is_one_token():
    examples = legal_play(SCENARIOS["tic-tac-toe"], 400, np.random.default_rng(2))
    texts = whole_texts(examples)
    assert "Board (. is a free cell):\n" in texts
    assert not [text for text in texts if text.startswith("3 ")]  # a row of the board
    tokenizer = make_tokenizer(examples)
    boards = [example.observation.partition(":\n")[2].partition("\n  a b c")[0] for example in examples]
    # a cell of the board stands in the same place in every prompt
    assert {len(tokenizer(board)["input_ids"]) for board in boards} == {14}
    assert {len(tokenizer(example.response)["input_ids"]) for example in examples} == {3}
    assert all(tokenizer.decode(tokenizer(example.prompt)["input_ids"]) == example.prompt for example in examples)


def test_shares_of_the_scenarios_and_what_cannot_be_demonstrated():
    shares = scenarios_of(["frozen-lake", "snake"])
    assert (len(shares), sum(shares.values()), shares["frozen-lake"]) == (7, pytest.approx(1), pytest.approx(0.25))
    assert scenarios_of(["snake-training", "snake-poison"]) == {"snake": 0.5, "snake-poison": 0.5}
    with pytest.raises(ValueError, match="no game or scenario 'snake-poison-training'"):
        scenarios_of(["snake-poison-training"])
    with pytest.raises(ValueError, match="set modes to direct"):
        demonstrate(Recipe.quick(games=("nim",), examples=4))
    with pytest.raises(ValueError, match="doesn't list its actions"):
        legal_play(next(s for s in SCENARIOS.values() if not s.game().actions), 4, np.random.default_rng(0))


# ---------------------------------------------------------------- the models that ship

READERS = [(name, scenario) for name in embedded_agents() for scenario in READS[name]]


@pytest.mark.parametrize(("name", "scenario"), READERS)
def test_a_shipped_model_knows_the_wording_of_the_prompts(name, scenario):
    """Its tokenizer has whole blocks of prompts as tokens: if this fails, a text was changed and the models must be
    made anew.
    """
    policy: Any = load_agent(name)
    game = SCENARIOS[scenario].game()
    state = game.initial_state(np.random.default_rng(0))
    prompt = policy.prompt_map(request_in(game, state, "player_0", 8))
    (ids,) = policy.model.encode([prompt])
    assert policy.model.tokenizer.decode(ids) == as_text(prompt)
    assert len(ids) <= 110


@pytest.mark.slow
@pytest.mark.parametrize("name", embedded_agents())
def test_a_shipped_model_answers_in_form(name):
    scenario = "snake" if name.endswith("snake") else "frozen-lake"  # what it was trained on
    tasks = [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(episode)) for episode in range(20)]
    steps = [step for episode in rollout(load_agent(name), tasks) for step in episode.steps]
    assert sum(step.valid for step in steps) / len(steps) > 0.95


@pytest.fixture(scope="module")
def tiny() -> Any:
    return load_agent("tiny")


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_scenarios_prompts_fit_into_the_embedded_models(tiny, scenario):
    asked: list[TurnRequest] = []

    class Reading(RandomPlayer):
        def act(self, requests: Sequence[Any]) -> list[Turn]:
            asked.extend(requests)
            return super().act(requests)

    (episode,) = rollout(Reading(), [EpisodeTask.of(scenario, SCENARIOS[scenario].seed(0))])
    assert episode.error is None
    longest = max(map(PromptMap(), asked), key=lambda prompt: len(as_text(prompt)))
    assert len(tiny.model.encode([longest])[0]) + Decoding().max_tokens <= CONTEXT_LENGTH
