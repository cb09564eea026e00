"""A model of the world: it learns what comes of an action, and the agent reads what it expects before it answers.

The world model of StarWM (arXiv 2602.14857), tuned on transitions of random legal play on training seeds. How true it
is, ``textbench inspect hf:DIR/model --world-model`` says.
"""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import count, islice

import numpy as np

from agents import Decoding, PromptMap, request_in
from agents.analysis import asked_after
from agents.msgrpo.warmup import TaughtDecision, shuffled_seeds
from benchmark import UsageError
from benchmark.play import AgentTable, without_spec
from benchmark.runs import find_scenarios, num_players
from research.improve.budget import Spent
from research.improve.methods.learning import MODEL, check_weights, config_of, plays_better, said_as_usage
from research.improve.task import ImprovementTask
from textgames import Scenario, rounds_of_play

PROMPTS = "world"  # what a model of the world is asked with
_HELD_OUT = 100
_STREAM = 0x3081D  # keeps these draws apart from everything else that is drawn with a task's seed


def improve(
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

    Args:
        task: the agent reads what stands below an observation.
        learner: the agent whose local model learns; the agent itself when not given.
        examples: transitions to learn from.
        rank: of the LoRA adapter; 0 trains all weights.
        learning_rate: the highest; 1e-3 for an adapter and 1e-4 for all weights if nothing is said.
        passes: how often the model goes through the transitions.
        revisions: how often the agent may answer again.
    """
    from agents.msgrpo.warmup import taught

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

        def demonstrations(prompts: PromptMap) -> tuple[list[TaughtDecision], list[TaughtDecision]]:
            games = [*scenarios.values()]
            learnt = transitions(games, examples, prompts, seed=task.seed)
            return learnt, transitions(games, _HELD_OUT, prompts, seed=task.seed, part=1)

        made = taught(config, {"transitions": examples}, demonstrations, task.say)
    task.meter.charge(Spent(seconds=made["seconds"]))
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
) -> list[TaughtDecision]:
    """Return so many transitions of random legal play, evenly of every scenario, as a world model is asked about them.

    Another ``part`` plays other training seeds: 0 is what is learnt, 1 what is held out.
    """

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
