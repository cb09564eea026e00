"""Models of a study as players that answer directly, and what they are worth."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from research.credit.games import OnGames
from research.credit.settings import Study
from research.jobs.bases import PROMPTS
from textgames import layout_generator


def examples_of(study: OnGames, game: str, recipe: Any) -> Any:
    """Return what a game's base imitates; ``None`` for the recipe's own demonstrations."""
    from agents.tiny import legal_play

    if study.games[game].start != "legal-play":
        return None
    # by hand, since the game may have settings of its own, which a recipe's list of scenarios can't tell
    rng = np.random.default_rng([recipe.seed, 1, 0])
    return legal_play(study.scenario(game), recipe.examples, rng, texts=recipe.texts)


def expected_return(model: Any, tokenizer: Any, game: str, study: Study, temperature: float | None = None) -> float:
    """Return the exact expected return of a model, averaged over the study's fixed evaluation starts."""
    from research.credit.instrument.exact.truth import Truth

    scenario = study.scenario(game)
    rules, unused = scenario.game(), np.random.default_rng(0)
    seeds = [scenario.seed(k) for k in range(study.evaluation_starts)]
    truth = Truth.of(
        policy_of(model, tokenizer, temperature or study.evaluation_temperature, "evaluated"),
        rules,
        [rules.initial_state(layout_generator(seed, unused)) for seed in seeds],
        scenario.horizon,
        format_penalty=0.0,
        max_states=10 * study.games[game].max_states,
    )
    return float(truth.solution.returns.mean())


def played_elsewhere(policy: Any, scenarios: Sequence[str], episodes: int) -> dict[str, float]:
    """Return ``{scenario: mean return}`` of a player on the same first episodes as all others."""
    from benchmark import evaluate

    if not scenarios:
        return {}
    results = evaluate({"trained": policy}, scenarios=list(scenarios), episodes=episodes, quiet=True)
    return {name: float(results.columns.cell("trained", name).returns()[1].mean()) for name in results.scenarios}


def policy_of(model: Any, tokenizer: Any, temperature: float, name: str) -> Any:
    """Return a model as a player that answers directly."""
    from agents import LanguageAgentPolicy, PromptMap
    from agents.models import Decoding, TransformersModel

    decoding, prompts = Decoding(temperature=temperature), PromptMap.from_file(PROMPTS, "direct")
    return LanguageAgentPolicy(TransformersModel(model, tokenizer, name=name), prompts, decoding)
