"""The command ``textbench robust``."""

from itertools import islice
from typing import Any

import numpy as np

from agents.common import option, part, place, read_setting, settings, student
from benchmark import UsageError
from benchmark.cli import Output
from benchmark.play import OF_ONE_AGENT, RunOptions
from benchmark.runs import find_scenario
from benchmark.show import print_tables, text_table
from research.robustness.worst_case.dr_rpo import FEATURES, features_of, learn, optimise
from research.robustness.worst_case.rewards import jumps, payments, tune
from research.robustness.worst_case.solver import BALLS, Model, Policy, follow, greedy
from textgames import Scenario, game_of
from textgames.solving import Floats

ROUNDS = 20  # of DR-RPO, each of which halves how far it is from its optimum


@settings
class Game:
    """Which game, and from where."""

    scenario: str = place("SCENARIO", "a game for one player that tells its chances")
    set: tuple[str, ...] = option((), "NAME=VALUE", "a setting of the game; repeatable", named="--set")
    horizon: int | None = option(None, "N", "rounds of an episode (default: the scenario's)", ge=1)
    starts: int = option(50, "N", "of the scenario's first seeds on", ge=2)


@settings
class Worst:
    """Compute what policies get at the worst chances within a ball around those of a game's rules.

    Exact, by dynamic programming: the policy that is best by the rules (nominal), the one that is best at the worst
    chances (optimal), DR-RPO's, and an agent's. Gains are over the first; prices are what is lost by the rules;
    intervals are over starts.

    examples:
      textbench robust worst frozen-lake-slippery
      textbench robust worst frozen-lake-slippery --set size=8 --set success_rate=0.9 --horizon 60 --ball kl
      textbench robust worst frozen-lake-slippery --agent random
      textbench robust worst frozen-lake-slippery --starts 5 --learn 2000
    """

    game: Game = part(Game)
    ball: str = option("tv", "NAME", "tv (total variation) or kl (relative entropy)", choices=lambda: tuple(BALLS))
    radii: tuple[float, ...] = option((0.0, 0.05, 0.1, 0.2), "X", "of the ball; repeatable", named="--radius")
    agent: str | None = option(None, "SPEC", "an agent, too")
    learn: int | None = option(None, "EPISODES", "DR-RPO from so many episodes of play, too (ball tv)", ge=1)
    features: str = option("states", "NAME", "of what is learned: states (one for each state and action) or actions",
                           choices=lambda: FEATURES)  # fmt: skip
    seed: int = option(0, "N", "of that play", ge=0)
    options: RunOptions = part(RunOptions, [name for name in OF_ONE_AGENT if name != "sets"])
    output: Output = part(Output, ["json"])


@settings
class Cliff:
    """Compute how far the optimal policy jumps if every step of a game gets a small price.

    The total variation between the optimal policies of both rewards, over the decisions that the first one meets, what
    the second loses by the first reward, and the same of soft optima, which move smoothly.

    examples:
      textbench robust cliff frozen-lake
      textbench robust cliff frozen-lake-slippery --price 0.001 --price 0.01 --temperature 0.05
    """

    game: Game = part(Game)
    prices: tuple[float, ...] = option((1e-6, 1e-4, 1e-3, 1e-2, 1e-1), "X", "of a step; repeatable")
    temperatures: tuple[float, ...] = option((0.01, 0.1), "T", "of soft optima; repeatable")
    output: Output = part(Output, ["json"])


@settings
class Reward:
    """Tune payments beside a game's reward by the true return of the policy that is optimal under both.

    PARL in tables: the lower level is the soft optimum of a temperature, the upper level moves what a step and a round
    of progress pay, along its exact bilevel gradient. Gains of the true return are over no payments, with intervals
    over starts; the gradient of a fixed policy is shown beside.

    examples:
      textbench robust reward frozen-lake-slippery
      textbench robust reward frozen-lake-slippery --set success_rate=0.9 --temperature 0.3 --charge 1
    """

    game: Game = part(Game)
    temperature: float = option(0.1, "T", "of the lower level's soft optimum", gt=0)
    charge: float = option(0.1, "X", "for the square of a payment, in units of the true return", ge=0)
    ascents: int = option(8, "N", "steps of the upper level", ge=1)
    output: Output = part(Output, ["json"])


STEPS = {"worst": Worst, "cliff": Cliff, "reward": Reward}


def run(step: Worst | Cliff | Reward) -> int:
    """Compute the table of a step and print it."""
    given = step.game
    scenario = find_scenario(given.scenario, "measure")
    try:
        kwargs = dict(read_setting(each, "NAME=VALUE") for each in given.set)
        game = game_of(scenario.env_id, **{**scenario.kwargs, **kwargs})
        scenario = scenario._replace(horizon=given.horizon or scenario.horizon)
        starts = [game.initial_state(np.random.default_rng(scenario.seed(each))) for each in range(given.starts)]
        model = Model.of(game, starts, scenario.horizon)
        if isinstance(step, Cliff):
            rows = [jump._asdict() for jump in jumps(model, step.prices, (0.0, *step.temperatures))]
        elif isinstance(step, Reward):
            rows = _ascents(model, step)
        else:
            if step.learn and step.ball != "tv":
                raise ValueError(f"--learn with --ball {step.ball}: accepted is tv, the ball of the linear method")
            policy = None if step.agent is None else _agent(step, scenario, game, starts)
            features = features_of(step.features, model) if step.learn else np.zeros((0, 0))
            rows = [_row(step, model, radius, policy, features) for radius in step.radii]
    except (ValueError, TypeError) as error:
        raise UsageError(f"{given.scenario}: {error}") from None
    about = {"scenario": given.scenario, "set": kwargs, "horizon": scenario.horizon, "starts": given.starts}
    if step.output.json:
        step.output.document({**about, "rows": rows})
        return 0
    title = ", ".join(f"{name} {value}" for name, value in about.items() if value)
    print_tables([text_table(title, [*rows[0]], [[*map(_shown, row.values())] for row in rows])])
    return 0


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['value']:.4f} [{value['low']:.4f}, {value['high']:.4f}]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _row(step: Worst, model: Model, radius: float, agent: Policy | None, features: Floats) -> dict[str, Any]:
    """Return what the policies get at a radius, and what the robust ones gain there and cost by the rules."""
    name = step.ball
    if radius < 0:
        raise ValueError(f"--radius takes numbers of at least 0, got {radius}")

    def worth(policy: Policy, radius: float = radius) -> Any:
        return model.start_values(model.solve(policy, BALLS[name], radius))

    (regularised,) = islice(optimise(model, BALLS[name], radius), ROUNDS, ROUNDS + 1)
    robust = {"": follow(model.solve(greedy, BALLS[name], radius).policy), "dr_rpo_": follow(regularised.policy)}
    if step.learn:
        robust["learned_"] = learn(model, features, radius, step.learn, step.seed)
    nominal, rules = worth(model.policy("nominal")), worth(greedy, 0.0)
    found = {"nominal": nominal, "optimal": worth(greedy)}
    found |= {f"{who}gain": worth(policy) - nominal for who, policy in robust.items()}
    found |= {f"{who}price": rules - worth(policy, 0.0) for who, policy in robust.items()}
    found |= {} if agent is None else {"agent": worth(agent)}
    return {"ball": name, "radius": radius, **{key: student(each)._asdict() for key, each in found.items()}}


def _ascents(model: Model, step: Reward) -> list[dict[str, Any]]:
    """Return the parameters, the true return and both gradients after each step of the upper level."""
    features, before = payments(model), None
    rows: list[dict[str, Any]] = []
    found = tune(model, np.array([*features.values()]), temperature=step.temperature, charge=step.charge)
    for parameters, now in islice(found, step.ascents + 1):
        before = now.returned if before is None else before
        gained = {"objective": now.objective, "returned": now.returned, "gain": now.returned - before}
        row: dict[str, Any] = {"ascent": len(rows), **dict(zip(features, parameters.tolist(), strict=True))}
        row |= {key: student(each)._asdict() for key, each in gained.items()}
        for name, gradient in (("gradient", now.gradient), ("fixed", now.fixed)):
            row |= {f"{name}_{key}": each for key, each in zip(features, gradient.tolist(), strict=True)}
        rows.append(row)
    return rows


def _agent(step: Worst, scenario: Scenario, game: Any, starts: list[Any]) -> Policy:
    """Return an agent as the policy of its answers' chances; an unreadable one plays at random."""
    from benchmark.play import load_one
    from research.credit.instrument.exact.answers import ask, behaviour_of
    from research.credit.instrument.exact.solution import expand, stand_ins_for, stood_in_by

    policy, _ = load_one(str(step.agent), step.options, scenario)
    graph = expand(game, starts, scenario.horizon)
    answers = ask(policy, graph)
    behaviour = behaviour_of(graph, answers, answers.responses)
    played = behaviour.choices + stood_in_by(graph, behaviour, stand_ins_for(graph, "random"))
    return follow(played[::-1])
