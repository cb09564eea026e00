"""Small players trained inside others: ``python -m research.reproduction.tiny.inside advisor|router --out DIR``.

``advisor``: a player that answers directly is made, which has learnt to heed advice that is right in 70% of its
positions. It stays as it is, and the base of the recipe ``tiny-frozen-lake`` is trained to advise it. Printed is the
player's success without advice and with that of several advisors.

``router``: a base is made that has imitated the best moves on lakes, and says ``first`` or ``second`` by chance when
asked which player is to answer. It is trained to choose between ``--first`` and ``tiny-lake``, whose answers cost.
Printed is the return of that router beside mixtures of the two, which are made by chance.

Everything is measured on lakes that no training has seen, with the weights of the last iteration.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from agents import EpisodeTask, TurnRequest, load_agent, rollout, search_player_of, wrapper
from agents.common import REQUIRED, half_interval, option, place, read_words, settings
from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer, load
from agents.tiny import Demonstrator, Example, Recipe, StyleShares, demonstrations, pretrain, save
from research.jobs.intervals import share_of
from textgames import SCENARIOS

LAKE = SCENARIOS["frozen-lake"]
ROUTER = wrapper("router")
RIGHT, ADVISED = 0.7, 0.75
"""How often the advice is right that the fixed player learns from, and in what share of its positions there is any."""
COST = 0.1
SECOND = "tiny-lake"


def best_moves(rng: np.random.Generator, recipe: Recipe) -> list[tuple[Example, str]]:
    """Positions of noisy play, each with the best move: as an example to imitate, and by its name."""
    game = LAKE.game()
    best, reader = Demonstrator(game, StyleShares(1.0, 0.0)), search_player_of(game)
    found = []
    for one in demonstrations(LAKE, recipe.examples, recipe.style, rng, modes=("direct",)):
        right = best(reader.state(TurnRequest(one.observation)), one.observation, rng)
        found.append((one._replace(response=right.direct), right.action))
    return found


def heeding(rng: np.random.Generator, recipe: Recipe) -> list[Example]:
    """Return what the fixed player imitates: the best move, in positions that mostly come with advice."""
    found = []
    for one, right in best_moves(rng, recipe):
        wrong = [action for action in LAKE.game().actions if action != right]
        told = right if rng.random() < RIGHT else wrong[int(rng.integers(len(wrong)))]
        below = f"\n\nAdvice: {told}" if rng.random() < ADVISED else ""
        found.append(one._replace(observation=one.observation + below))
    return found


def choosing(rng: np.random.Generator, recipe: Recipe) -> list[Example]:
    """Return what the router's base imitates: best moves, and in half of the positions a choice by chance."""
    actions = ", ".join(LAKE.game().actions)
    found = [one for one, _ in best_moves(rng, recipe)]
    for at in range(0, len(found), 2):
        one, chosen = found[at], ROUTER.places[int(rng.integers(2))]
        before, after = one.frame
        found[at] = one._replace(
            observation=f"{one.observation}\n\n{ROUTER.asked}",
            after=one.after.replace(actions, ", ".join(ROUTER.places)),
            frame=(before, tuple(part.replace(actions, ", ".join(ROUTER.places)) for part in after)),
            response=f"<action>{chosen}</action>",
        )
    return found


def made(folder: Path, recipe: Recipe, demonstrate: Any = None) -> str:
    """Return the folder of a base, which is made if it isn't there."""
    if not (folder / "config.json").exists():
        examples = None if demonstrate is None else demonstrate(np.random.default_rng(0), recipe)
        save(pretrain(recipe, examples=examples), folder)
    return str(folder)


def trained(out: Path, **settings: Any) -> str:
    """Return the last checkpoint of a training by the recipe ``tiny-frozen-lake`` with other settings."""
    if not (out / "last").exists():
        config = replace(MSGRPOConfig.from_toml("tiny-frozen-lake"), out=str(out), eval_every=0, **settings)
        MSGRPOTrainer(*load(config), config=config).train()
    return f"hf:{out / 'last'}"


def measure(spec: str, lakes: int, **options: Any) -> str:
    """Return a player's success, what it pays for the second player's answers, and its return less that."""
    tasks = [EpisodeTask.of(LAKE, LAKE.seed(k), protocol="random") for k in range(lakes)]
    episodes = list(rollout(load_agent(spec, **options), tasks, max_concurrency=lakes))
    won = share_of([float(episode.successes["player_0"]) for episode in episodes])
    asked = [sum(step.turn.served_by == SECOND for step in episode.steps) for episode in episodes]
    net = [episode.returns["player_0"] - COST * each for episode, each in zip(episodes, asked, strict=True)]
    share = sum(asked) / sum(len(episode.steps) for episode in episodes)
    return (
        f"success {won:.2f}, second {share:.2f} of decisions, "
        f"{np.mean(asked):.2f} an episode, net {np.mean(net):.3f} ± {half_interval(net):.3f}"
    )


def advisor(out: Path, lakes: int, seed: int, _: str) -> None:
    """Train an advisor, and print what advice is worth."""
    # with the recipe's 800 steps it reads lakes so well itself that advice brings it little
    few = Recipe.quick(modes=("direct",), steps=200, examples=12_800)
    player = f"hf:{made(out / 'player', few, heeding)}"
    base = made(out / "base", Recipe.quick())
    best = trained(out / f"advisor-{seed}", model=base, around=f"advised({player}, learner)", seed=seed)
    for name, by in {"random": "random", "untrained": f"hf:{base}", "trained": best, "planner": "planner"}.items():
        print(f"{name:10}", measure(f"advised({player}, {by})", lakes), flush=True)
    for name, alone in {"no advice": player, "untrained, alone": f"hf:{base}", "trained, alone": best}.items():
        print(f"{name:10}", measure(alone, lakes), flush=True)


def router(out: Path, lakes: int, seed: int, first: str) -> None:
    """Train a router, and print what it reaches beside mixtures."""
    base = made(out / "router-base", Recipe.quick(modes=("direct",), steps=400, examples=25_600), choosing)
    inside = f"{first}, {SECOND}"
    longer: dict[str, Any] = {"iterations": 200, "response_mode": "direct", "max_response_tokens": 8}
    around = f"router({inside}, learner)"
    best = trained(out / f"router-{first}-{seed}", model=base, around=around, cost=COST, seed=seed, **longer)
    for name, chooser in {"untrained": f"hf:{base}", "trained": best}.items():
        print(f"{name:10}", measure(f"router({inside}, {chooser})", lakes), flush=True)
    for share in (0.0, 0.25, 0.5, 0.75, 0.9, 1.0):
        print(f"share {share:4}", measure(f"router({inside})", lakes, route_by="share", share=share), flush=True)


@settings
class Inside:
    """Train a small player inside another one, and print what it reaches."""

    what: str = place("WHAT", "advisor or router", choices=lambda: ("advisor", "router"))
    out: str = option(REQUIRED, "DIR", "where models and runs go")
    lakes: int = option(200, "N", "that everything is measured on", ge=1)
    seed: int = option(0, "N", "of the training", ge=0)
    first: str = option("tiny", "SPEC", "whose answers are free, beside the router's second player")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    asked = read_words(Inside, arguments, "python -m research.reproduction.tiny.inside")
    {"advisor": advisor, "router": router}[asked.what](Path(asked.out), asked.lakes, asked.seed, asked.first)


if __name__ == "__main__":
    main()
