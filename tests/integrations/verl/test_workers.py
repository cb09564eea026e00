"""Batches of episodes by verl's own workers in Ray, and the advantages that verl's trainers make of them."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

from agents.msgrpo.credit.arithmetic import group_advantages
from tests.integrations.verl.serving import GROUP, read_starts, serve_tiny, trainer_config

pytestmark = [
    pytest.mark.adapters,
    pytest.mark.filterwarnings("ignore"),  # verl's and Ray's own
    pytest.mark.skipif(find_spec("verl") is None, reason="needs verl: .ci/adapters verl"),
]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(num_cpus=16, include_dashboard=False, log_to_driver=False)  # actors that wait want little of a core
    yield
    ray.shutdown()


def test_the_manager_plays_groups_whose_advantages_are_those_of_episodes(tmp_path):
    import ray
    from verl import DataProto
    from verl.experimental.agent_loop import AgentLoopManager
    from verl.trainer.ppo.ray_trainer import compute_advantage

    config = trainer_config(tmp_path, "one")
    client, server = serve_tiny(config)
    manager = AgentLoopManager.create(config, client)
    batch = DataProto.from_single_dict(read_starts(config))
    batch.non_tensor_batch["uid"] = np.array(["a", "b"], dtype=object)
    batch = batch.repeat(GROUP, interleave=True)
    played = manager.generate_sequences(batch)

    assert len(played) == 2 * GROUP
    assert played.batch["prompts"].shape == (2 * GROUP, config.data.max_prompt_length)
    assert ray.get(server.count.remote()) == played.non_tensor_batch["steps"].sum() > len(played)
    mask = played.batch["response_mask"]
    played.batch["token_level_rewards"] = played.batch["rm_scores"]  # as the trainer does, without a KL penalty
    data = compute_advantage(played.union(batch), config.algorithm.adv_estimator, config=config.algorithm)
    returns = played.batch["rm_scores"].sum(-1).numpy()
    expected = group_advantages(returns, batch.non_tensor_batch["uid"])
    assert np.ptp(returns) > 0
    assert data.batch["advantages"].numpy() == pytest.approx(expected[:, None] * mask.numpy(), abs=1e-5)


def test_the_trainer_gives_every_step_its_episodes_advantage(tmp_path):
    import transfer_queue as tq
    from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls

    config = trainer_config(
        tmp_path,
        "all",
        "algorithm.rollout_correction.bypass_mode=true",  # the sampler's probabilities: the trainer's model needs a GPU
        "transfer_queue.enable=true",
        "transfer_queue.backend.SimpleStorage.num_data_storage_units=1",
    )
    tq.init(config.transfer_queue)
    try:
        trainer = get_trainer_cls("sync")(config)
        trainer._init_tokenizer()
        trainer._init_dataloader()
        trainer.agent_loop_manager = AgentLoopManagerTQ.create(config, serve_tiny(config)[0])
        trainer.global_steps = 1
        trainer._add_batch_to_generate()
        batch, _ = trainer.replay_buffer.sample(global_steps=1, partition_id="train", batch_size=2)
        batch = trainer._compute_old_log_prob(batch, metrics={})
        batch = trainer._compute_advantage(batch, metrics={})
        data = tq.kv_batch_get(keys=batch.keys, partition_id="train")
    finally:
        tq.close()

    episode_of = [tuple(key.rsplit("_", 2)[:2]) for key in batch.keys]  # GROUP_EPISODE_STEP
    scores = [float(row.sum()) for row in data["rm_scores"]]
    returns = dict(zip(episode_of, scores, strict=True))
    assert len(returns) == 2 * GROUP < len(scores)
    assert scores == [returns[episode] for episode in episode_of]
    told = [row["reward_extra_info"] for row in data["extra_fields"]]
    assert [info["steps"] for info in told] == [episode_of.count(episode) for episode in episode_of]
    advantages = group_advantages(list(returns.values()), [group for group, _ in returns])
    expected = dict(zip(returns, advantages, strict=True))
    assert np.ptp(scores) > 0
    for episode, row in zip(episode_of, data["advantages"], strict=True):
        assert row.numpy() == pytest.approx(np.full(len(row), expected[episode]), abs=1e-5)
