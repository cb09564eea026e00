"""Nash learning from a preference model: a language model that says which of two answers to a prompt does better.

``answers sampled in pairs -> outcomes of their meetings -> P(a beats b | prompt), learnt -> Nash-MD`` (Munos et al.,
arXiv 2312.00886). A copy of the model learns to name the winner of two answers of its own. ``reward`` fits a reward to
each answer of the same pairs instead (Bradley-Terry), by which nothing beats in a circle. Our reading: pairs are
sampled once, and answers to a prompt are the actions of a game in which both players move at once and only once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import PromptMap, TurnRequest, prefix_of
from agents.analysis import answer_after, score_actions
from benchmark import UsageError
from benchmark.play import RunOptions
from research.improve.agents import load_table
from research.improve.budget import Spent
from research.improve.methods.learning import said_as_usage, trained
from research.improve.task import ImprovementTask
from textgames import TSMG, Scenario
from textgames.solving import Floats

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig

PREFERENCES = ("table", "learned", "reward")  # of the solved game, of a preference model, of a reward of each answer


def check_pairs(game: TSMG[Any]) -> None:
    """Raise a UsageError if two answers to one prompt can't meet each other in this game."""
    start = game.initial_state(np.random.default_rng(0))
    moving = game.to_move(start)
    told = {(game.observe(start, one), game.instructions(one), game.legal_actions(start, one)) for one in moving}
    if len(moving) != 2 or len(told) != 1 or game.longest_episode != 1:
        raise UsageError(
            "preferences are learnt if two players read the same and move at once, once, which isn't so in "
            f"{type(game).__name__}: --set preferences=table, or --scenario research.worlds:RockPaperScissors-v0"
        )


def preferred(
    task: ImprovementTask,
    config: "MSGRPOConfig",
    scenario: Scenario,
    asked: list[TurnRequest],
    chances: Sequence[Mapping[str, float]],
    *,
    kind: str,
    pairs: int,
    pull: float,
    **descent: Any,
) -> list[dict[str, float]]:
    """Return the chances of answers at each prompt that are preferred, from pairs that the given chances draw."""
    wins = sampled_wins(scenario.game(), asked, chances, pairs, task.seed)
    begun = [np.array([*own.values()]) for own in chances]
    if kind == "reward":
        ends = [best_by_reward(own, start, pull=pull) for own, start in zip(wins, begun, strict=True)]
    else:
        model = learned(task, config, scenario, asked, wins)
        ends = [nash_md(own, start, pull=pull, **descent) for own, start in zip(model, begun, strict=True)]
    return [dict(zip(each.legal_actions, own.tolist(), strict=True)) for each, own in zip(asked, ends, strict=True)]


def sampled_wins(
    game: TSMG[Any], asked: Sequence[TurnRequest], chances: Sequence[Mapping[str, float]], pairs: int, seed: int
) -> list[Floats]:
    """Return, for each prompt, (A, A) counts of the pairs in which one answer beat another; a draw is half of one."""
    rng, places = np.random.default_rng(seed), {(each.player, each.observation): n for n, each in enumerate(asked)}
    wins = [np.zeros((len(each.legal_actions),) * 2) for each in asked]
    for _ in range(pairs):
        state = game.initial_state(rng)
        sets = [places[player, game.observe(state, player)] for player in game.players]
        one, other = (int(rng.choice(len(wins[n]), p=[*chances[n].values()])) for n in sets)
        actions = [asked[n].legal_actions[drawn] for n, drawn in zip(sets, (one, other), strict=True)]
        paid = game.transition(state, dict(zip(game.players, actions, strict=True)), rng)[1]
        won = 0.5 + 0.5 * np.sign(paid[game.players[0]] - paid[game.players[1]])
        for n in sets:
            wins[n][one, other] += won
            wins[n][other, one] += 1 - won
    return wins


def learned(
    task: ImprovementTask, config: "MSGRPOConfig", scenario: Scenario, asked: list[TurnRequest], wins: list[Floats]
) -> list[Floats]:
    """Teach a copy of the agent's model which of two answers won, and return its (A, A) ``P(a beats b)`` by prompt."""
    from agents.msgrpo.warmup import TaughtDecision, taught

    def question(n: int, a: int, b: int) -> TurnRequest:
        names, about = asked[n].legal_actions, f"{asked[n].observation}\nWhich of two answers does better?"
        return replace(asked[n], observation=about, legal_actions=(names[a], names[b]))

    pairs = [(n, *pair) for n, own in enumerate(wins) for pair in permutations(range(len(own)), 2)]

    def demonstrations(prompt_map: PromptMap) -> tuple[list[TaughtDecision], tuple[()]]:
        decisions = []
        for n, a, b in pairs:
            request, counts = question(n, a, b), np.array([wins[n][a, b], wins[n][b, a]])
            prefix = prefix_of(prompt := prompt_map(request))
            for name, share in zip(request.legal_actions, counts / max(1.0, counts.sum()), strict=True):
                decisions.append(TaughtDecision(prompt, prefix + answer_after(prefix, name), float(share)))
        return [each for each in decisions if each.weight], ()

    folder, source = str(task.out / "preferences"), {"method": "preferences", "wins": [own.tolist() for own in wins]}
    with said_as_usage():
        made = taught(replace(config, out=folder), source, demonstrations, task.say, mixed=True)
    task.meter.charge(Spent(seconds=made["seconds"]))
    policy: Any = load_table({**trained(task, folder), "temperature": 1.0}, RunOptions(), scenario)[0]
    found = [np.full(own.shape, 0.5) for own in wins]
    for n, a, b in pairs:  # a pair is asked in both orders
        request = question(n, a, b)
        first, second = (score_actions(policy, policy.prompt_map(request), "", request.legal_actions) or {}).values()
        found[n][a, b] += (first / (first + second) - 0.5) / 2
        found[n][b, a] += (second / (first + second) - 0.5) / 2
    return found


def nash_md(wins: Floats, reference: Floats, *, steps: int, rate: float, pull: float, follow: float = 0.0) -> Floats:
    """Return where Nash-MD from the reference ends, by (A, A) chances that one answer beats another.

    A step leads from ``m``, the geometric mixture of policy and reference with the share ``rate pull`` of the latter,
    to ``m(a) exp(rate P(a beats m))``. The rate falls to 0, as does ``follow``, by which the reference comes after.
    """
    policy = reference
    for left in np.linspace(1, 0, steps, endpoint=False):
        mixed = policy ** (1 - rate * left * pull) * reference ** (rate * left * pull)
        mixed /= mixed.sum()
        reference = (1 - follow * left) * reference + follow * left * policy
        policy = mixed * np.exp(rate * left * (wins @ mixed))
        policy /= policy.sum()
    return policy


def best_by_reward(wins: Floats, reference: Floats, *, pull: float) -> Floats:
    """Return ``reference exp(reward / pull)``, normalised: the optimum by a reward that explains the pairs.

    Rewards are those of Bradley and Terry, of most likelihood if each two answers had met once more, with a draw.
    """
    wins = (wins + 0.5) * (1 - np.eye(len(wins)))
    strength = np.ones(len(wins))
    for _ in range(1000):
        strength = wins.sum(axis=1) / ((wins + wins.T) / (strength[:, None] + strength)).sum(axis=1)
        strength /= strength.sum()
    scores = np.log(reference) + np.log(strength) / pull
    policy = np.exp(scores - scores.max())
    return np.asarray(policy / policy.sum())
