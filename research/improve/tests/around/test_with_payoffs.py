"""``with_payoffs(AGENT)``: a player that reasons by the payoffs that it reads aims at another outcome by other ones."""

import numpy as np
import pytest

from agents.episode import EpisodeTask
from agents.loop.rollout import rollout
from agents.msgrpo.rewards import REWARDS
from agents.msgrpo.trajectories import trajectories_of
from agents.prompt import PromptMap
from agents.turn import TurnRequest
from research.improve.around.with_payoffs import LINE, WithPayoffs, payoffs_in
from research.improve.tests.around.conftest import Scripted
from tests.agents.msgrpo.hand_made import batch

TOLD = "cooperate, cooperate: 1, 1; defect, defect: 4, 4"


def fair(request: TurnRequest) -> str:
    """State the payoffs of the rules, and take part in the outcome of the most mutual welfare."""
    cells = payoffs_in(LINE.sub(r"\1, \2: \3, \4;", request.instructions))
    mine, _ = max(cells, key=lambda pair: np.prod(cells[pair]))
    stated = "; ".join(f"{own}, {other}: {u:g}, {v:g}" for (own, other), (u, v) in cells.items())
    return f"<payoffs>{stated}</payoffs><action>{mine}</action>"


def blind(request: TurnRequest) -> str:
    return "<action>cooperate</action>"


def outcome(player, payoffs: str = TOLD) -> tuple[list[str], float, float]:
    """Return the actions of a dilemma's first round, the share of payoffs stated rightly, and a seat's return."""
    agent = WithPayoffs(Scripted(player), payoffs=payoffs) if payoffs else Scripted(player)
    tasks = [EpisodeTask.of("prisoners-dilemma", 3)]
    (episode,) = rollout(agent, tasks)
    rule = REWARDS.make("gtalign")
    rule.pay(batch(*trajectories_of([episode], tasks)))
    return [step.action for step in episode.steps[:2]], rule.metrics["payoffs_right"], episode.returns["player_0"]


def test_a_player_that_reads_payoffs_aims_at_the_outcome_that_is_best_by_those_it_is_told():
    assert outcome(fair, "") == (["cooperate"] * 2, 1.0, 30.0)
    # the game pays as before, by which two of the four cells that it states are right
    assert outcome(fair) == (["defect"] * 2, 0.5, 10.0)
    assert outcome(blind) == outcome(blind, "") == (["cooperate"] * 2, 0.0, 30.0)


@pytest.mark.parametrize(
    ("payoffs", "why"),
    [
        ("none", "payoffs is 'none'; accepted are cells"),
        ("cooperate, cooperate: 1, 1 defect, defect: 4, 4", "semicolons between them"),
        ("stag, hare: 1, 2", "payoffs has a cell stag, hare, and"),
    ],
)
def test_cells_that_there_are_not_are_refused(textbench, payoffs, why):
    told = ("--agent", "t=with_payoffs(random)", "--set", f"t.payoffs={payoffs}", "--scenario", "prisoners-dilemma")
    refused = textbench("run", *told, "--episodes", 1)
    assert refused.code == 2
    assert why in refused.err


def test_a_prompt_file_asks_for_the_payoffs():
    prompts = PromptMap.from_file("research/methods/rewards/payoffs.toml")
    *_, message = prompts(TurnRequest("where", "the rules", ("stag", "hare")))
    assert "<payoffs>YOURS, OTHER'S: YOUR PAYOFF, OTHER'S PAYOFF; and so on</payoffs>" in message.content
    assert "NAME is one of: stag, hare." in message.content
