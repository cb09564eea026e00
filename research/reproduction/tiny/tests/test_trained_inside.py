"""What the small players learn from that are trained inside others: it is what they are asked when they play."""

import re
from collections.abc import Sequence

import numpy as np

from agents.baselines.search import search_player_of
from agents.episode import EpisodeTask
from agents.load import load_agent
from agents.loop.rollout import rollout
from agents.policy import as_requests
from agents.prompt import PromptMap, as_text
from agents.tiny import Recipe
from agents.turn import Turn, TurnRequest
from research.improve.around.reading import AdvisedPolicy
from research.improve.around.routing import RouterPolicy
from research.reproduction.tiny.inside import LAKE, choosing, heeding


class Reads:
    def __init__(self, mode: str) -> None:
        self.name, self.prompts, self._map, self._random = "reads", set[str](), PromptMap(mode), load_agent("random")

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        self.prompts |= {as_text(self._map(request)) for request in as_requests(requests)}
        return self._random.act(requests)


def without_board(prompt: str) -> str:
    """What is the same in all prompts: the layout and the words that differ are left out."""
    prompt = re.sub(r"Player: .*?(?=\n\n)", "", prompt, flags=re.DOTALL)
    return re.sub(r"Advice: \w+|included: \d", "", prompt)


def test_the_player_learns_to_heed_advice_that_is_mostly_right():
    examples = heeding(np.random.default_rng(0), Recipe.quick(modes=("direct",), examples=1500))
    told = [re.search(r"Advice: (\w+)", one.observation) for one in examples]
    right = [match[1] in one.response for match, one in zip(told, examples, strict=True) if match]
    assert 0.72 < len(right) / len(examples) < 0.78
    assert 0.66 < np.mean(right) < 0.74
    reader = search_player_of(game := LAKE.game())
    for one in examples[:50]:
        values = reader.values(TurnRequest(one.observation.partition("\n\nAdvice")[0], game=game, steps_left=24))
        assert values[one.response.removeprefix("<action>").removesuffix("</action>")] == max(values.values())
    player = Reads("direct")
    tasks = [EpisodeTask.of(LAKE, seed) for seed in range(20)]
    list(rollout(AdvisedPolicy(player, load_agent("planner")), tasks))
    assert {without_board(one) for one in player.prompts} == {
        without_board(one.prompt) for match, one in zip(told, examples, strict=True) if match
    }


def test_a_router_learns_to_be_asked_and_to_choose_by_chance():
    examples = choosing(np.random.default_rng(0), Recipe.quick(modes=("direct",), examples=1500))
    asked, moves = examples[::2], examples[1::2]
    assert 0.45 < np.mean([one.response.endswith("<action>second</action>") for one in asked]) < 0.55
    assert not any("second" in one.prompt + one.response for one in moves)
    chooser, random = Reads("direct"), load_agent("random")
    list(rollout(RouterPolicy(random, random, chooser), [EpisodeTask.of(LAKE, seed) for seed in range(20)]))
    assert {without_board(one) for one in chooser.prompts} == {without_board(one.prompt) for one in asked}
