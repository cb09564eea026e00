"""A model trained inside a player around it: an advisor and a router learn, where there is something to be gained."""

import re

import numpy as np
import pytest

from agents.msgrpo import ConfigError
from agents.msgrpo.__main__ import main
from agents.msgrpo.draws import Drawn
from agents.msgrpo.inside import Inside
from agents.msgrpo.trajectories import training_rows
from agents.turn import TurnRequest
from research.improve.tests.around.conftest import Lit, Scripted, late
from tests.agents.msgrpo.runs import Moving, same_weights, untimed
from tests.agents.msgrpo.test_trainer import BANDIT


class Follower(Scripted):
    """Presses the button that its advice names, with a chance of 0.8; else, and without advice, any."""

    follows = 0.8

    def __init__(self) -> None:
        super().__init__(self._choice)

    def _choice(self, request: TurnRequest) -> str:
        told = re.search(r"Advice: (red|green|blue)", request.observation)
        rng = np.random.default_rng([*request.seed, 5])
        return told[1] if told and rng.random() < self.follows else str(rng.choice(request.legal_actions))


class Deaf(Follower):
    """Presses any button, whatever it is told."""

    follows = 0.0


class Red(Scripted):
    def __init__(self) -> None:
        super().__init__(lambda request: "red")


class Mute(Scripted):
    """Answers nothing that can be read."""

    def __init__(self) -> None:
        super().__init__(lambda request: "?")


LIT, RED = f"{Lit.__module__}:Lit", f"{__name__}:Red"
ADVISED, DEAF = (f"advised({__name__}:{name}, learner)" for name in ("Follower", "Deaf"))
ROUTER = f"router({RED}, {LIT}, learner)"


@pytest.mark.slow
def test_an_advisor_learns_what_helps_a_player_that_heeds_it(make):
    """By chance a third is right; of a player that follows right advice in 80% and else chooses any, 87% is."""
    trainer = make(ADVISED, BANDIT, iterations=60)  # no penalty tells it what words are no advice
    assert late(trainer) > 0.75
    assert trainer.history[0]["return"] < 0.5
    assert trainer.evaluate()[0].mean_return > 0.7  # evaluations are played by the player around as well
    assert late(make(DEAF, BANDIT, iterations=60)) == pytest.approx(1 / 3, abs=0.1)


@pytest.mark.slow
def test_a_router_beats_every_mixture(make):
    """Paid 0.5 for each right button of the second, the best mixture has 0.5, and who asks it off red alone 2/3."""
    assert late(make(ROUTER, BANDIT, cost=0.5)) > 0.58


@pytest.mark.slow
@pytest.mark.parametrize(("second", "paid"), [(LIT, 1.0), (RED, 1 / 3)])
def test_a_router_buys_no_answers_that_it_can_do_without_if_calls_are_a_factor_of_its_reward(make, second, paid):
    """The second is right on all three lights, of which red needs it not; or it is never better than the first."""
    calls = {"reward": "otc", "method_settings": {"reward": {"otc": {"calls": "calls"}}}, "iterations": 60}
    trainer = make(f"router({RED}, {second}, learner)", BANDIT, **calls)
    trainer.train()
    assert np.mean([each["return"] for each in trainer.history[-5:]]) > 0.8 * paid
    bought = {light: list[int]() for light in ("red", "green", "blue")}
    for each in trainer.rollout().trajectories:
        bought[each.states[0].light] += each.bought
    assert np.mean(bought["red"]) < 0.1
    assert second.endswith("Red") or np.mean(bought["green"] + bought["blue"]) > 0.9


@pytest.mark.parametrize("around", [ADVISED, ROUTER])
def test_what_is_learnt_from_is_the_learners_own_turn(make, around):
    trainer = make(around, groups=4)
    batch = trainer.rollout().trajectories
    rows = training_rows(batch, Drawn.plain(np.arange(len(batch))), [np.ones(len(each)) for each in batch], 1500)
    assert len(rows) == len(batch) == 16
    below, names, at = ("", ("red", "green", "blue"), 1) if around == ADVISED else (ASKED, ("first", "second"), 2)
    for trajectory, row in zip(batch, rows, strict=True):
        seed = (trajectory.task.seed, *trajectory.task.noise, 0, 0, at)
        request = TurnRequest(
            f"The light is {trajectory.states[0].light}.{below}", "Press the button.", names, seed=seed
        )
        (own,) = trainer.policy.act([request])
        assert (row.prompt, row.response) == (own.prompt_ids, own.response_ids)
        assert row.logprobs == pytest.approx(own.logprobs, abs=1e-5)


ASKED = "\n\nWho is to answer here, the first player or the second?"


def test_an_answer_is_invalid_that_is_not_in_the_learners_own_form(make):
    """A router that names neither player pays the penalty and the first plays; an advisor may say anything."""
    routed = make(ROUTER, groups=4, format_penalty=0.5, cost=0.25).rollout().trajectories
    words = make(ADVISED, groups=4, format_penalty=0.5).rollout().trajectories
    mute = make(f"advised({__name__}:Mute, learner)", format_penalty=0.5).rollout().trajectories
    helped = make(f"advised(learner, {__name__}:Mute)", format_penalty=0.5, cost=0.25).rollout().trajectories
    for each in helped:  # an answer that came before the learner's own is paid as well
        assert each.rewards[0] == (each.actions[0] == each.states[0].light) - 0.25 - 0.5 * (not each.valid[0])
    assert 0 < sum(~each.valid[0] for each in routed) < len(routed)
    for each in routed:
        pressed, right = each.actions[0], each.states[0].light
        assert each.valid[0] or pressed == "red"
        bought = pressed != "red"  # who presses another button than red is the second
        if not each.valid[0] or bought:
            assert each.rewards[0] == (pressed == right) - 0.25 * bought - 0.5 * (not each.valid[0])
    assert all(each.valid[0] and each.rewards[0] in (0, 1) for each in words)
    assert all(each.valid[0] and each.rewards[0] == (each.states[0].light == "red") for each in mute)


@pytest.mark.slow
def test_a_resumed_run_is_equal_bit_for_bit(make, tmp_path):
    settings = {"cost": 0.25, "format_penalty": 0.5, "iterations": 2}
    whole = make(ROUTER, out=str(tmp_path / "whole"), **settings)
    whole.train()
    make(ROUTER, out=str(tmp_path / "part"), **settings | {"iterations": 1}).train()
    resumed = make(ROUTER, out=str(tmp_path / "part"), **settings)
    resumed.resume(tmp_path / "part")
    resumed.train()
    assert untimed(whole.history) == untimed(resumed.history)
    assert same_weights(whole, resumed)


class Asking(Moving):
    asks_alone = True


@pytest.mark.parametrize(
    ("around", "settings", "message"),
    [
        ("tiny", {}, "is no player around the model; accepted: .* such as advised"),
        ("advised(tiny, planner)", {}, "is no player around the model"),
        ("advised(random, search(learner))", {}, "is no player around the model"),
        ("advised(learner)", {}, r"is not of the form advised\(AGENT, AGENT\)"),
        ("advised(rndom, learner)", {}, "did you mean 'random'"),
        ("search(learner)", {}, "asks the learner 8 times at once"),
        (
            "router(random, learner)",
            {"around_options": {"route_by": "share", "share": 0.0}},
            "asks the learner 0 times",
        ),
        ("router(random, random, learner)", {"around_options": {"route_by": "loss"}}, "its only one"),
        ("advised(random, learner)", {"cost": 0.1}, "has none but the learner"),
        ("advised(random, learner)", {"credit": f"{__name__}:Asking"}, "asks the model for moves of its own"),
        ("advised(random, learner)", {"eval_regret_episodes": 2}, "asks the model for moves of its own"),
        ("", {"cost": 0.1}, "without a player around the model"),
    ],
)
def test_what_cannot_be_trained_is_refused(make, around, settings, message):
    with pytest.raises(ConfigError, match=message):
        make(around, **settings).rollout()


def test_an_engine_that_plays_elsewhere_is_refused(make):
    trainer = make(ADVISED)
    trainer.engine.plays_elsewhere = True
    with pytest.raises(ConfigError, match="plays whole episodes in other places"):
        Inside(trainer.config, trainer.engine, trainer.games)


def test_the_command_says_it_before_a_model_is_loaded(capsys):
    sets = ["around=search(tiny)", "model=no-such-folder", 'scenarios=["frozen-lake"]']
    arguments = [each for one in sets for each in ("--set", one)]
    assert main(["--config", "tiny-frozen-lake", *arguments]) == 2
    assert "is no player around the model" in capsys.readouterr().err
