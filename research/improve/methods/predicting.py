"""Improvers that learn a model beside the player: the value of its actions (``value``), or their consequences."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import spearmanr

from agents import Decoding, PromptMap, SearchPlayer, find_search_player, request_in
from agents.analysis import asked_after
from benchmark import UsageError
from benchmark.play import AgentTable, without_spec
from benchmark.runs import find_scenarios, num_players
from research.improve.methods.imitating import HELD_OUT, recorded
from research.improve.methods.learning import (
    MODEL,
    check_weights,
    compared_seeds,
    config_of,
    own_play,
    plays_better,
    said_as_usage,
    teach,
    value_in,
)
from research.improve.methods.weighing import RecordedEpisode
from research.improve.task import ImprovementTask
from textgames import Scenario, rounds_of_play

if TYPE_CHECKING:
    from agents.msgrpo.warmup import TaughtDecision
    from research.improve.values import StepValue, Targets

VALUE = "value"
"""The folder of the learned value in the task's."""


def by_value(
    task: ImprovementTask,
    *,
    targets: "Targets" = "mc",
    learn_from: list[str] | None = None,
    episodes: int = 500,
    attempts: int = 4,
    proposals: int = 8,
    passes: int = 20,
) -> AgentTable:
    """Learn what actions are worth, and let the agent play the best of its proposals by that.

    Values of steps as a critic of language agents (Zhai et al., arXiv 2409.09345, whose Q is estimated by tree search).
    Our reading: a small network of its own in place of a head on the agent's model, on returns or by fitted Q
    iteration.

    Args:
        task: any agent; its games list their actions, or it proposes them.
        targets: ``mc``, what was paid after a decision, or ``td``, the best that is known of the next one.
        learn_from: run folders; without any the agent plays itself first.
        episodes: training seeds that it then plays, of each scenario.
        attempts: how often it plays each of them, with other samples.
        proposals: how many of its answers the agent chooses from.
        passes: how often the value goes through the decisions.
    """
    if targets not in ("mc", "td"):
        raise UsageError(f"targets is mc or td, got {targets!r}")
    folders = [Path(each) for each in learn_from] if learn_from else own_play(task, task.agent, episodes, attempts)
    learn_value(task, folders, targets, passes)
    spec = f"search({task.agent['spec']})"
    made = {**task.agent, "spec": spec, "rank_by": "value", "proposals": proposals, "value": str(task.out / VALUE)}
    better = plays_better(task, task.agent, made)
    return {**made, "value": VALUE} if better else task.agent


def learn_value(task: ImprovementTask, folders: list[Path], targets: "Targets" = "mc", passes: int = 20) -> None:
    """Learn a value from run folders, and write it below the task's folder; a UsageError if there is nothing."""
    with said_as_usage():
        from research.improve.values import learn, write_value

    found = recorded(folders, task.scenarios, "direct", apart=compared_seeds(task))
    learnt_from = [one for one in found if one.seed % HELD_OUT] or found
    with task.meter.spending(VALUE):
        about = {"scenarios": task.scenarios, "targets": targets}
        value = learn([one.decisions for one in learnt_from], about, seed=task.seed, passes=passes)
    write_value(value, task.out / VALUE)
    task.say(
        f"the value of {value.about.decisions:,} decisions of {len(learnt_from)} episodes is in {task.out / VALUE}"
    )
    if (truth := compared(value, [one for one in found if one.seed % HELD_OUT == 0])) is not None:
        task.say(f"its rank correlation with the exact values of {truth[1]} held-out decisions: {truth[0]:.2f}")


def ranker_of(task: ImprovementTask, folders: list[Path]) -> SearchPlayer:
    """Learn a value from run folders, and return the player that values actions by it."""
    learn_value(task, folders)
    return value_in(str(task.out / VALUE))


def compared(value: "StepValue", episodes: list[RecordedEpisode]) -> tuple[float, int] | None:
    """Return Spearman's rank correlation with the exact values of all legal actions, and of how many decisions.

    ``None`` if the game isn't solved, or all values are equal.
    """
    exact, learnt = list[float](), list[float]()
    decisions = [one for episode in episodes for one in episode.decisions]
    for one in decisions:
        solver = None if one.request.game is None else find_search_player(one.request.game)
        if solver is None or not solver.exact:
            return None
        exact += solver.values(one.request).values()
        learnt += value.of(one.request, one.request.legal_actions).values()
    if len(set(exact)) < 2 or len(set(learnt)) < 2:
        return None
    return float(spearmanr(np.round(exact, 9), learnt).statistic), len(decisions)


PROMPTS = "world"  # what a model of the world is asked with
_TOLD_APART = 100
_STREAM = 0x3081D  # keeps these draws apart from everything else that is drawn with a task's seed


def by_world(
    task: ImprovementTask,
    *,
    learner: str | None = None,
    examples: int = 8000,
    rank: int = 16,
    learning_rate: float | None = None,
    passes: int = 1,
    revisions: int = 1,
) -> AgentTable:
    """Train a model of the world, and let the agent play with what it expects.

    The world model of StarWM (arXiv 2602.14857), tuned on transitions of random legal play on training seeds. How true
    it is, ``textbench inspect hf:DIR/model --world-model`` says.

    Args:
        task: the agent reads what stands below an observation.
        learner: the agent whose local model learns; the agent itself when not given.
        examples: transitions to learn from.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
        passes: how often the model goes through the transitions.
        revisions: how often the agent may answer again.
    """
    task.meter.check()
    scenarios = find_scenarios(task.scenarios)
    for name, scenario in scenarios.items():
        if num_players(scenario) > 1:
            raise UsageError(
                f"{name} has several players, so its outcomes can't be listed: choose a single-player game"
            )
    asked_otherwise = {"mode", "prompts", "max_tokens"} & task.agent.keys()
    if asked_otherwise:
        raise UsageError(
            f"the agent has the options {', '.join(sorted(asked_otherwise))}, which would hold for its model of the "
            "world, too: make it a folder of weights that knows how it is asked (textbench warmup)"
        )
    check_weights(task)
    whose = task if learner is None else replace(task, agent={"spec": learner})
    config = config_of(whose, examples, rank=rank, learning_rate=learning_rate, passes=passes)
    with said_as_usage():
        config = replace(config, response_mode="direct", prompt_file=PROMPTS, max_response_tokens=Decoding().max_tokens)

    def demonstrations(prompts: PromptMap) -> tuple[list["TaughtDecision"], list["TaughtDecision"]]:
        games = [*scenarios.values()]
        learnt = transitions(games, examples, prompts, seed=task.seed)
        return learnt, transitions(games, _TOLD_APART, prompts, seed=task.seed, part=1)

    teach(task, config, {"transitions": examples}, demonstrations)
    task.say(f"how true it is: textbench inspect hf:{task.out / MODEL} --world-model --scenario {task.scenarios[0]}")

    def imagining(model: str) -> AgentTable:
        spec = f"imagine({task.agent['spec']}, hf:{model})"
        return {**without_spec(task.agent), "spec": spec, "revisions": revisions}

    budget = task.meter.budget  # training may have taken all seconds; what came of it is compared all the same
    within = task.meter.without_limits() if budget.tokens is None and budget.calls is None else nullcontext()
    with within:
        better = plays_better(task, task.agent, imagining(str(task.out / MODEL)))
    return imagining(MODEL) if better else task.agent


def transitions(
    scenarios: Sequence[Scenario], wanted: int, prompts: PromptMap, *, seed: int = 0, part: int = 0
) -> list["TaughtDecision"]:
    """Return so many transitions of random legal play, evenly of every scenario, as a world model is asked about them.

    Another ``part`` plays other training seeds: 0 is what is learnt, 1 what is held out.
    """
    from agents.msgrpo.warmup import TaughtDecision, shuffled_seeds

    def of_one(scenario: Scenario) -> Iterator[TaughtDecision]:
        game, (player, *_) = scenario.game(), scenario.game().players
        seeds = shuffled_seeds(np.random.default_rng([_STREAM, seed]), part)
        for number in count():  # through the seeds again and again, played otherwise each time
            state = game.initial_state(np.random.default_rng(seeds[number % len(seeds)]))
            rng = np.random.default_rng([_STREAM, seed, part, number])
            for one in rounds_of_play(game, state, scenario.horizon, rng):
                asked = asked_after(request_in(game, one.state, player), one.joint_action[player])
                yield TaughtDecision(prompts(asked), game.observe(one.next_state, player))

    each, more = divmod(wanted, len(scenarios))
    return [one for place, scenario in enumerate(scenarios) for one in islice(of_one(scenario), each + (place < more))]
