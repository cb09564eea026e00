"""Self-play towards an equilibrium, pulled towards a moving average of the player; computed, and not sampled.

``probabilities at all information sets -> magnetic mirror descent in a table of them -> imitation of where it ends``.
The step is that of Sokota et al. (arXiv 2206.05825, equation 9). With a magnet that stands still it converges to a
mixture of equilibrium and magnet; with one that follows the policy, as in Nash learning from human feedback (Munos et
al., arXiv 2312.00886), to an equilibrium. The table begins as the model and plays itself without it: if
every step starts from the model, what it hasn't learnt yet leads play astray, far from an equilibrium of Leduc poker.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from agents import PromptMap, prefix_of
from agents.analysis import Exploitability, answer_after, behaviour_of, measure, requests_of, score_actions
from benchmark import UsageError
from benchmark.play import AgentTable, RunOptions
from benchmark.runs import find_scenario
from research.improve.agents import load_table
from research.improve.budget import Spent
from research.improve.methods.learning import MODEL, config_of, mode_of, said_as_usage, trained
from research.improve.methods.preferring.preference_model import PREFERENCES, check_pairs, preferred
from research.improve.task import ImprovementTask
from textgames import Scenario
from textgames.solving import (
    Behaviour,
    GameTree,
    expand,
    exploitability,
    normalised,
    realisation_plan,
    sequence_values,
)

if TYPE_CHECKING:
    from agents.msgrpo.warmup import Demonstrations

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
    """Train the agent's model towards an equilibrium of its game.

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
    from agents.msgrpo.warmup import TaughtDecision, taught

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
    with said_as_usage():
        made = taught(config, source, demonstrations, task.say, mixed=True)
    task.meter.charge(Spent(seconds=made["seconds"]))
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
