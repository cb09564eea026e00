"""Self-play towards an equilibrium, computed in a table or learnt from preferences between answers."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from agents import PromptMap, TurnRequest, prefix_of
from agents.analysis import Exploitability, answer_after, behaviour_of, measure, requests_of, score_actions
from benchmark import UsageError
from benchmark.play import AgentTable, RunOptions
from benchmark.runs import find_scenario
from research.improve.agents import load_table
from research.improve.methods.learning import MODEL, config_of, mode_of, teach, trained
from research.improve.task import ImprovementTask
from textgames import TSMG, Scenario
from textgames.solving import (
    Behaviour,
    Floats,
    GameTree,
    expand,
    exploitability,
    normalised,
    realisation_plan,
    sequence_values,
)

if TYPE_CHECKING:
    from agents.msgrpo import MSGRPOConfig
    from agents.msgrpo.warmup import Demonstrations

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
    """Return the chances of answers at each prompt that are preferred, from pairs that the given chances draw.

    ``answers sampled in pairs -> outcomes of their meetings -> P(a beats b | prompt), learnt -> Nash-MD`` (Munos et
    al., arXiv 2312.00886). A copy of the model learns to name the winner of two answers of its own. ``reward`` fits a
    reward to each answer of the same pairs instead (Bradley-Terry), by which nothing beats in a circle. Our reading:
    pairs are sampled once, and answers to a prompt are the actions of a game in which both players move at once.
    """
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
    from agents.msgrpo.warmup import TaughtDecision

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
    teach(task, replace(config, out=folder), source, demonstrations, mixed=True)
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


STEPS = 10_000
"""Steps of mirror descent. In Leduc poker they take four seconds."""

SETS_PER_STEP = 128
"""Information sets that an optimiser step learns from, with all their answers. With 16, as in other imitations, the
noise of the last steps keeps a model from the table, in Leduc poker by 0.07."""


def improve(
    task: ImprovementTask,
    *,
    passes: int = 300,
    rate: float = 4.0,
    pull: float = 0.05,
    follow: float = 0.02,
    preferences: str = "table",
    pairs: int = 2000,
    rank: int = 16,
    learning_rate: float | None = None,
) -> AgentTable:
    """Train the agent's model towards an equilibrium of its game, computed, and not sampled.

    ``probabilities at all information sets -> magnetic mirror descent in a table of them -> imitation of where it
    ends``. The step is that of Sokota et al. (arXiv 2206.05825, equation 9). With a magnet that stands still it
    converges to a mixture of equilibrium and magnet; with one that follows the policy, as in Nash learning from human
    feedback (Munos et al., arXiv 2312.00886), to an equilibrium. The table begins as the model and plays itself without
    it: if every step starts from the model, what it hasn't learnt yet leads play astray.

    Args:
        task: the agent has a local model that answers with the action alone (``mode = "direct"``), and its scenario is
            a small zero-sum game of two.
        passes: how often it goes through all information sets and learns how the table plays there.
        rate: of mirror descent: how far the first step goes, if the most that a game pays is 1. It falls to 0.
        pull: towards the magnet, in such units per nat.
        follow: the share of the way that the magnet comes after the table in the first step, which falls likewise; with
            0 it stays where the model began.
        preferences: ``table`` solves the game; ``learned`` learns from pairs of its own answers which one wins, and
            goes to the equilibrium of that; ``reward`` learns a reward for each answer from them, and goes to the best.
        pairs: how many, if preferences are learnt.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
    """
    from agents.msgrpo.warmup import TaughtDecision

    if rate <= 0 or pull < 0 or not 0 <= follow <= 1:
        told = f"rate = {rate:g}, pull = {pull:g} and follow = {follow:g}"
        raise UsageError(f"rate is above 0, pull at least 0 and follow from 0 to 1, got {told}")
    if preferences not in PREFERENCES or (preferences != "table" and rate * pull > 1):
        told = f"preferences = {preferences!r}, rate = {rate:g} and pull = {pull:g}"
        raise UsageError(f"preferences is one of {', '.join(PREFERENCES)}, if learnt with rate * pull <= 1, got {told}")
    if len(task.scenarios) > 1:
        raise UsageError(f"an equilibrium is of one game, got {', '.join(task.scenarios)}: choose one")
    scenario = find_scenario(task.scenarios[0], "learn")
    if (mode := mode_of(task)) != "direct":
        raise UsageError(f"nash computes the chances of answers that are the action alone: --mode direct, not {mode!r}")
    if preferences != "table":
        check_pairs(scenario.game())
    task.meter.check()
    before = _measured(task.agent, scenario)
    task.say(f"exploitability {before.value:.4f} before, {before.uniform:.4f} of uniform play")
    game = scenario.game()
    tree = expand(game, scenario.horizon)
    asked = requests_of(tree, game, scenario.horizon)
    steps = max(1, len(asked) // SETS_PER_STEP)
    config = config_of(task, len(asked), rank=rank, learning_rate=learning_rate, passes=passes, minibatches=steps)

    def demonstrations(prompt_map: PromptMap) -> "Demonstrations":
        # how the model answers at temperature 1, as far as its answers are legal
        plain = {option: value for option, value in task.agent.items() if option != "legal_only"} | {"temperature": 1.0}
        policy: Any = load_table(plain, RunOptions(), scenario)[0]
        chances = [score_actions(policy, policy.prompt_map(each), "", each.legal_actions) or {} for each in asked]
        legal = [{action: chance / sum(own.values()) for action, chance in own.items()} for own in chances]
        begun, most = behaviour_of(tree, legal), float(np.abs(tree.payoffs).max())
        if preferences == "table":
            table = descended(tree, begun, steps=STEPS, rate=rate / most, pull=pull * most, follow=follow)
        else:
            how = {"rate": rate, "pull": pull, "follow": follow}
            found = preferred(task, config, scenario, asked, legal, kind=preferences, pairs=pairs, steps=STEPS, **how)
            table = behaviour_of(tree, found)
        task.say(f"exploitability {exploitability(tree, table):.4f} of the table, which is imitated")
        weights = iter(taught_weights(tree, table))
        decisions = []
        for request in asked:
            prompt = prompt_map(request)
            prefix = prefix_of(prompt)
            answers = [prefix + answer_after(prefix, action) for action in request.legal_actions]
            decisions += [TaughtDecision(prompt, answer, next(weights)) for answer in answers]
        return decisions, ()

    source = {"method": "nash", "rate": rate, "pull": pull, "follow": follow}
    source |= {} if preferences == "table" else {"preferences": preferences, "pairs": pairs}
    teach(task, config, source, demonstrations, mixed=True)
    better = {**trained(task, str(task.out / MODEL)), "temperature": 1.0}  # a mixture that is sharpened is another
    after = _measured(better, scenario, tree)
    task.say(f"exploitability {after.value:.4f} after, {before.value:.4f} before")
    return better if after.value < before.value else task.agent


def mirror_step(tree: GameTree, behaviour: Behaviour, magnet: Behaviour, *, rate: float, pull: float) -> Behaviour:
    """Return the next policy, in proportion to ``(pi(a) magnet(a)^(rate pull) exp(rate Q(a)))^(1 / (1 + rate pull))``.

    ``Q`` is the return that a player expects from an action while all follow the policy, and taken for equal if the
    others' play never leads there. The ``rate`` is per unit of return, the ``pull`` in units of return per nat.
    """
    following = []
    for decisions, own, held, values in zip(
        tree.decisions, behaviour, magnet, sequence_values(tree, behaviour), strict=True
    ):
        if not decisions.sets:
            following.append(own)
            continue
        with np.errstate(divide="ignore"):  # an action that is never played stays so
            magnetic = rate * pull * np.log(held) if pull else 0.0
            scores = (np.log(own) + rate * np.nan_to_num(values) + magnetic) / (1 + rate * pull)
        largest = np.maximum.reduceat(scores[1:], decisions.firsts - 1)[decisions.set_of]
        following.append(normalised(decisions, np.concatenate([[1.0], np.exp(scores[1:] - largest)])))
    return tuple(following)


def descended(
    tree: GameTree, behaviour: Behaviour, *, steps: int, rate: float, pull: float, follow: float
) -> Behaviour:
    """Return where so many steps from a policy end, with a magnet that begins there and comes after it.

    The ``rate`` of the first step falls to 0, and so does ``follow``, the magnet's share of the way to the policy at
    each decision.
    """
    magnet = behaviour
    for left in np.linspace(1, 0, steps, endpoint=False):
        before, share = behaviour, follow * left
        behaviour = mirror_step(tree, behaviour, magnet, rate=rate * left, pull=pull)
        magnet = tuple((1 - share) * own + share * other for own, other in zip(magnet, before, strict=True))
    return behaviour


def taught_weights(tree: GameTree, table: Behaviour) -> list[float]:
    """Return how much is learnt of every answer, in the order of ``tree.information_sets``; 1 of each set on average.

    It is the answer's chance times that of the player's own moves before.
    """
    plans = [realisation_plan(decisions, own)[1:] for decisions, own in zip(tree.decisions, table, strict=True)]
    weights = np.concatenate(plans)
    return [float(each) for each in weights * len(tree.information_sets) / weights.sum()]


def _measured(agent: AgentTable, scenario: Scenario, tree: GameTree | None = None) -> Exploitability:
    """Return how exploitable an agent is; a UsageError for another kind of game, or an agent that reads history."""
    policy, _ = load_table(agent, RunOptions(), scenario)
    try:
        return measure(policy, scenario.game(), horizon=scenario.horizon, tree=tree)
    except ValueError as error:
        raise UsageError(f"{scenario.name}: {error}") from None
