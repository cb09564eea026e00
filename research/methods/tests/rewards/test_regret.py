"""The regret loss: payments by hand, what models learn by it, and the learning rule that attention becomes."""

import numpy as np
import pytest
import torch

from agents import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.rewards import REWARDS
from research.methods.regret_loss import hedge, main, measured, regret_loss, sequences
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.tiny_models import word_tokenizer
from textgames.exploration.online_learning import OnlineState


def driven(losses, chosen, group):
    """An episode of two roads, by the losses of each day and the road that was taken."""
    *states, end = [OnlineState(losses, chosen[:t]) for t in range(len(chosen) + 1)]
    task = EpisodeTask.of("online-iid", 0)
    return trajectory([0.0] * len(chosen), states, end_state=end, task=task, group=group)


def test_steps_pay_what_they_add_to_the_loss_of_regret():
    """Roads cost 1 and 3, then 4 and 0, then 2 and 2: the first one all along has regrets 0, 2, 2 after the days, the
    second one 2, 0, 0. In another group a day costs 1 more than it had to."""
    days = ((1.0, 3.0), (4.0, 0.0), (2.0, 2.0))
    first, second, other = driven(days, (0, 0, 0), 0), driven(days, (1, 1, 1), 0), driven(((0.0, 1.0),), (1,), 1)

    def paid(*episodes, **settings):
        return [each.tolist() for each in REWARDS.make("regret", settings).pay(batch(*episodes))]

    assert paid(first, second, other, h="linear") == [[0, -2, 0], [-2, 2, 0], [-1]]
    assert paid(first, second, other) == [[0, -4, 0], [-4, 4, 0], [-1]]
    assert paid(first, other, focus=1.0) == [pytest.approx([0, -4 * 4 / 3, 0]), pytest.approx([-2 / 3])]
    assert paid(second, other, focus=1.0) == [[0, 0, 0], [-2]]  # without regret at the end it weighs nothing
    rule = REWARDS.make("regret")
    rule.pay(batch(first, second, other))
    assert rule.metrics == {"external_regret": 1.0}


def test_the_loss_of_chances_by_hand():
    """Even chances lose 2.5 of 3 and 7 in two days and have regret 1 for the second road, or 0 for equal roads."""
    losses = torch.tensor([[[1.0, 2.0], [5.0, 2.0]], [[1.0, 1.0], [1.0, 1.0]]])
    even = torch.full_like(losses, 0.5)
    assert regret_loss(even, losses) == 0.5
    assert regret_loss(even, losses, focus=1.0) == 1.0
    assert hedge(losses, np.log(2))[0].tolist() == [[0.5, 0.5], pytest.approx([2 / 3, 1 / 3])]


def test_attention_becomes_hedge_where_there_is_something_to_learn(capsys):
    """Losses lie around a mean of each action; uniform ones, which nothing foresees, leave it no better than even."""
    found = measured(sequences("gaussian", 3, 15, 64, 0), sequences("gaussian", 3, 15, 128, 1), 0)
    assert found["trained"] < 0.4 * min(found["untrained"], found["even"])
    assert found["trained"] == pytest.approx(found["hedge"], rel=0.1)
    assert found["apart"] < 0.08
    main(["--pattern", "uniform", "--rounds", "5", "--seeds", "0", "1"])
    told = {name: float(value) for name, value, *_ in map(str.split, capsys.readouterr().out.splitlines())}
    assert told["trained"] > 0.9 * told["even"]
    with pytest.raises(SystemExit, match="2"):
        main(["--pattern", "uniformly"])
    assert "pattern must be one of" in capsys.readouterr().err


def test_a_game_without_regret_is_refused():
    with pytest.raises(ConfigError, match="metric = 'external_regret' is none of the metrics of bandit"):
        REWARDS.make("regret").check(EpisodeTask.of("bandit", 0))
    REWARDS.make("regret", {"metric": "regret"}).check(EpisodeTask.of("bandit", 0))


@pytest.mark.slow
def test_a_model_trained_by_regret_defects_where_the_game_pays_cooperation(prompt_file, make_llama):
    """Against tit for tat cooperation earns most, but the other's play held fixed, defection has no regret."""
    seen = {}
    for name, weight in (("regret", 1.0), ("game", 0.0)):
        tokenizer = word_tokenizer(("cooperate", "defect"), gaps=True)
        config = MSGRPOConfig.preset(
            "regret", groups=2, group_size=16, iterations=8, response_mode="direct", max_response_tokens=1,
            temperature=1.0, format_penalty=2.0, learning_rate=5e-3, minibatches=1, eval_every=0, samples_every=0,
            min_valid_share=0, stop_after=0, preflight_episodes=0, prompt_file=prompt_file, game={"rounds": 4},
            reward_weight=weight, reward_mode="replace" if weight else "add",
        )  # fmt: skip
        model = make_llama(len(tokenizer), initializer_range=0.15)
        trainer = MSGRPOTrainer(model, tokenizer, "prisoners-dilemma-tft", config, quiet=True)
        history = trainer.train()
        seen[name] = [[one[key] for one in (history[0], history[-1])] for key in ("external_regret", "game_return")]
    assert seen["regret"][0][0] == seen["game"][0][0]
    assert seen["regret"][0][1] < 0.5 * seen["game"][0][1]
    assert seen["regret"][1][1] < seen["game"][1][1]
