"""The agent loop in verl's own classes; the model is the tiny one, in place of verl's server."""

import asyncio
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from agents.episode import Episode
from agents.models.base import Decoding
from textbench.integrations.verl import start_rows

needs_verl = pytest.mark.skipif(
    find_spec("verl") is None or find_spec("ray") is None, reason="needs verl: .ci/adapters verl"
)
quiet = pytest.mark.filterwarnings("ignore")  # verl's own imports


class TinyServer:
    """Answers as verl's client of its server does, by the tiny model in this process."""

    def __init__(self, model):
        self.model, self.prompts = model, []

    async def generate(self, request_id, prompt_ids, sampling_params):
        self.prompts.append(tuple(prompt_ids))
        decoding = Decoding(sampling_params["temperature"], max_tokens=64, stop=())
        (row,) = self.model.generate_ids([tuple(prompt_ids)], decoding, [(len(self.prompts),)])
        return SimpleNamespace(token_ids=list(row.ids), log_probs=list(row.logprobs))


def played(samples, row, server_class=TinyServer):
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap

    from agents.models.embedded import PROVIDER
    from textbench.integrations.verl.agent_loop import GameAgentLoop

    rollout = {"prompt_length": 512, "response_length": 64}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    model = PROVIDER.make("tiny")
    server = server_class(model)
    episodes: list[Episode] = []

    async def run():
        loop = GameAgentLoop(
            DictConfigWrap(config), server, model.tokenizer, None, object, DictConfigWrap(config.data), samples=samples
        )
        told = loop._rewarded
        loop._rewarded = lambda session, *rest: (episodes.append(session.episode), told(session, *rest))[1]
        return await loop.run({"temperature": 1.0}, **row)

    return asyncio.run(run()), server, episodes[0]


def test_rows_name_their_loop_and_start():
    rows = start_rows("tic-tac-toe", 2, first_seed=3)
    assert [(row["agent_name"], row["layout_seed"], row["seat"]) for row in rows[:2]] == [
        ("textbench", 3, "player_0"),
        ("textbench", 3, "player_1"),
    ]


@needs_verl
@quiet
@pytest.mark.adapters
def test_every_step_is_a_sequence_with_the_return():
    (row,) = start_rows("frozen-lake", 1, first_seed=11)
    outputs, server, episode = played("all", row)
    assert len(outputs) == len(episode.steps) == len(server.prompts)
    for output, prompt in zip(outputs, server.prompts, strict=True):
        assert tuple(output.prompt_ids) == prompt
        assert len(output.response_ids) == len(output.response_mask) == len(output.response_logprobs)
        assert output.reward_score == episode.returns["player_0"]
        assert output.as_dict()["rm_scores"].sum().item() == output.reward_score
    lengths = [len(prompt) for prompt in server.prompts]
    assert max(lengths) - min(lengths) <= 2  # a prompt doesn't grow with its episode


@needs_verl
@quiet
@pytest.mark.adapters
def test_one_drawn_step_stands_for_an_episode():
    (row,) = start_rows("frozen-lake", 1, first_seed=12)
    output, server, episode = played("one", row)
    assert tuple(output.prompt_ids) in server.prompts
    assert output.reward_score == episode.returns["player_0"]
    assert output.extra_fields["reward_extra_info"]["steps"] == len(episode.steps)
