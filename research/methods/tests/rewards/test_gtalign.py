"""GTAlign's payments in a dilemma by hand."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.msgrpo import ConfigError, MSGRPOTrainer
from agents.msgrpo.rewards import REWARDS
from agents.turn import Turn
from research.methods.rewards.gtalign import stated
from tests.agents.msgrpo.conftest import make_llama, prompt_file
from tests.agents.msgrpo.hand_made import batch
from tests.agents.msgrpo.played import iteration_of
from tests.agents.msgrpo.test_trainer import BANDIT
from tests.tiny_models import word_tokenizer

__all__ = ["make_llama", "prompt_file"]  # fixtures


class Stating:
    """Plays one action in each seat and states payoffs, of which one of four is wrong."""

    name, history_turns = "stating", None
    payoffs = "cooperate, cooperate: 3, 3; cooperate, defect: 0, 5; defect, cooperate: 5, 0; defect, defect: 2, 1"

    def act(self, requests: Any) -> list[Turn]:
        chosen = {"player_0": "cooperate", "player_1": "defect"}
        told = f"<payoffs>{self.payoffs}</payoffs>"
        return [Turn(f"{told if r.player == 'player_0' else ''}<action>{chosen[r.player]}</action>") for r in requests]


def test_both_players_welfare_and_the_payoffs_that_an_answer_states_rightly():
    """A dilemma's rounds pay 0 and 5: the geometric mean is 0 to both, whom the game pays 0 and 50."""
    iteration = iteration_of("prisoners-dilemma", Stating())
    played = batch(*iteration.play([EpisodeTask.of("prisoners-dilemma", 3)]))
    rule = REWARDS.make("gtalign", {"matrix_weight": 2.0})
    paid = {each.player: own.tolist() for each, own in zip(played.trajectories, rule.pay(played), strict=True)}
    assert paid == {"player_0": [1.5] * 10, "player_1": [0.0] * 10}
    assert rule.metrics == {"payoffs_right": 0.375}
    assert stated(played.trajectories[0], 0)["defect", "defect"] == (2.0, 1.0)
    first = played.trajectories[0]
    asked_first = replace(  # a question in the first round, before its answer
        first,
        rewards=np.insert(first.rewards, 0, -1.0),
        states=(first.states[0], *first.states),
        responses=("", *first.responses),
        rounds=(0, *first.rounds),
    )
    assert rule.pay(batch(asked_first, played.trajectories[1]))[0].tolist() == [0.0, *[1.5] * 10]
    rule.check(EpisodeTask.of("prisoners-dilemma", 0))
    for game in ("kuhn-poker", "werewolf-5"):  # one moves at a time; two of five act at first
        with pytest.raises(ConfigError, match=f"gtalign' takes a game of two players that act at once.*{game} isn't"):
            rule.check(EpisodeTask.of(game, 0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("reward", "paid"), [("gtalign", 3.0), ("game", 1.0)])
def test_two_seats_come_to_mutual_welfare_by_it_and_to_defection_by_their_own_payoffs(
    make_llama, prompt_file, reward, paid, seed
):
    """In a dilemma of one round both get 3 if they cooperate, 1 if they defect, and 2.25 by chance."""
    tokenizer = word_tokenizer(("cooperate", "defect", "\n"), gaps=True)
    settings: dict[str, Any] = {"game": {"rounds": 1}, "invalid_action": "random", "prompt_file": prompt_file}
    if reward == "gtalign":
        settings["method_settings"] = {"reward": {"gtalign": {"matrix_weight": 0.0}}}
    config = replace(BANDIT, seed=seed, reward=reward, iterations=20, stop_after=0, **settings)
    model = make_llama(len(tokenizer), seed=seed, initializer_range=0.15)
    trainer = MSGRPOTrainer(model, tokenizer, "prisoners-dilemma", config, quiet=True)
    history = trainer.train()
    assert sum(each["game_return"] for each in history[-5:]) / 5 == pytest.approx(paid, abs=0.2)
