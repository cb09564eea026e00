"""The jobs of a study that make models: training at a budget of tokens compares methods at equal cost.

Tokens that the model reads and writes count: prompts and responses of all episodes that it plays to learn (fresh
rollouts included), and of the rows of every update, each pass counted, as if no prefix were shared. Passes that only
score (old log-probabilities, entropies, a critic's values) don't; the seconds tell what they cost.
"""

import shutil
from collections.abc import Callable, Mapping, Sequence
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from agents import Prompt, Turn
from agents.models import Decoding, LegalAnswers
from agents.msgrpo import LiveEngine, MSGRPOConfig, MSGRPOTrainer
from research.credit.settings import OnGames, Study, StudyFolder, StudyJob
from research.jobs import bases
from research.jobs.bases import PROMPTS, load
from research.jobs.work import Report
from textgames import Scenario, layout_generator


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
    starts = [rules.initial_state(layout_generator(seed, unused)) for seed in seeds]
    policy = policy_of(model, tokenizer, temperature or study.evaluation_temperature, "evaluated")
    most = 10 * study.games[game].max_states
    truth = Truth.of(policy, rules, starts, scenario.horizon, format_penalty=0.0, max_states=most)
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


KEPT_METRICS = (
    *("return", "success", "invalid_rate", "entropy", "grad_norm", "episode_length", "skipped", "seconds"),
    *("prompt_tokens", "response_tokens", "update_tokens"),
)
"""The metrics of every iteration that a run's result keeps."""

_ENDLESS = 10**6  # iterations: the budget of tokens ends a run


class CountingEngine(LiveEngine):
    """Samples from the model that is trained, and counts the ``tokens`` of prompts and responses."""

    tokens = 0

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        answers: Sequence[LegalAnswers | None] | None = None,
    ) -> list[Turn]:
        completions = super().generate(prompts, decoding, seeds, answers)
        self.tokens += sum(len(each.prompt_ids or ()) + len(each.response_ids or ()) for each in completions)
        return completions


class Point(NamedTuple):
    """What an evaluation during a run found."""

    tokens: int  # spent until then
    iterations: int  # done until then
    value: float  # what the evaluation gave


class RunRecord(NamedTuple):
    """What is kept of a training run."""

    points: list[Point]
    history: list[dict[str, Any]]  # KEPT_METRICS of every iteration, with the tokens spent until its end
    training_seconds: float  # of the processor, without evaluations
    rollout_tokens: int
    update_tokens: int


def train(
    model: Any,
    tokenizer: Any,
    scenario: Scenario,
    settings: Mapping[str, Any],
    budget: int,
    milestones: int,
    evaluate: Callable[[Any, Any, int], float],
    report: Callable[[float], None],
) -> tuple[Any, RunRecord]:
    """Train a model in place until it has spent the budget of tokens; the iteration that crosses it is the last one.

    ``evaluate(model, tokenizer, number of the milestone)`` is called at the start and at as many ``milestones``, at
    equal distances in tokens. The learning rate of the ``settings`` is constant, as a budget doesn't tell the
    iterations. Returns what was trained, with its adapter if it has one, and what is kept of the run.
    """
    config = MSGRPOConfig.from_mapping(
        {**settings, "iterations": _ENDLESS, "schedule": "constant", "eval_every": 0, "threads": 1, "out": ""}
    )
    engine = CountingEngine(model, tokenizer)
    trainer = MSGRPOTrainer(model, tokenizer, scenario, config, engine=engine, quiet=True)
    points = [Point(0, 0, evaluate(trainer.model, tokenizer, 0))]
    history: list[dict[str, Any]] = []
    updated, seconds = 0, 0.0
    while (spent := engine.tokens + updated) < budget:
        started = process_time()
        metrics = trainer.iterate()
        seconds += process_time() - started
        updated += int(metrics["update_tokens"]) * config.update_passes
        spent = engine.tokens + updated
        history.append({name: metrics[name] for name in KEPT_METRICS if name in metrics} | {"tokens": spent})
        while len(points) <= milestones and spent * milestones >= len(points) * budget:
            points.append(Point(spent, trainer.iteration, evaluate(trainer.model, tokenizer, len(points))))
        report(min(1.0, spent / budget))
    return trainer.model, RunRecord(points, history, seconds, engine.tokens, updated)


def make_base(job: StudyJob, study: OnGames, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Make a small model that reads the game and answers directly, with little skill."""
    recipe, place = study.recipe(job.game, job.run), folder.stage(job.game, "base", job.run)
    examples = examples_of(study, job.game, recipe)
    made = bases.make(recipe, place, report, "textbench reproduce --config credit", examples)
    return {"parameters": made.model.num_parameters(), "recipe": recipe.as_data, "losses": list(made.losses)}


def make_stages(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Train a plain run, at the middle rate, and keep its model at half and at the end."""

    def keep(model: Any, tokenizer: Any, milestone: int) -> float:
        if milestone:
            place = folder.stage(job.game, ("middle", "end")[milestone - 1], job.run)
            shutil.rmtree(place, ignore_errors=True)
            model.save_pretrained(place)
            tokenizer.save_pretrained(place)
        return expected_return(model, tokenizer, job.game, study) if len(players) == 1 else float("nan")

    players = study.scenario(job.game).game().players
    model, tokenizer = load(folder.stage(job.game, "base", job.run))
    settings = study.training_settings(job.game, job.arm, job.run, sorted(study.rates)[len(study.rates) // 2])
    budget = study.games[job.game].tokens
    _, record = train(model, tokenizer, study.scenario(job.game), settings, budget, 2, keep, report)
    return {"settings": settings, **record._asdict()}


def tune(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Train an arm for a short time with one learning rate and a seed that no other run has."""
    budget = round(study.games[job.game].tokens * study.tuning_share)
    return _run(job, study, folder, report, rate=job.rate, seed=job.seed, budget=budget)


def train_arm(job: StudyJob, study: Study, folder: StudyFolder, report: Report) -> dict[str, Any]:
    """Train an arm with the learning rate that was best for it, and play what it never learnt."""
    rates = study.rates_of(job.arm)
    tuned = {r: folder.result(f"tune/{job.game}/{job.arm}/{r:g}")["points"] for r in rates if len(rates) > 1}
    rate = max(tuned, key=lambda r: float(np.mean([value for _, _, value in tuned[r][1:]]))) if tuned else rates[0]
    budget = study.games[job.game].tokens
    return {"rate": rate, **_run(job, study, folder, report, rate=rate, seed=job.seed, budget=budget)}


def _run(
    job: StudyJob, study: Study, folder: StudyFolder, report: Report, *, rate: float, seed: int, budget: int
) -> dict[str, Any]:
    # every run starts from the base, whose return is known from the run of the stages
    start = float(folder.result(f"stages/{job.game}/0")["points"][0][2])
    model, tokenizer = load(folder.stage(job.game, "base"))
    settings = study.training_settings(job.game, job.arm, seed, rate)

    def evaluate(model: Any, tokenizer: Any, milestone: int) -> float:
        return expected_return(model, tokenizer, job.game, study) if milestone else start

    scenario = study.scenario(job.game)
    _, record = train(model, tokenizer, scenario, settings, budget, study.evaluations, evaluate, report)
    ends = {}
    if job.kind == "train":
        warmths = study.other_temperatures
        ends = {f"at {each:g}": expected_return(model, tokenizer, job.game, study, each) for each in warmths}
        player = policy_of(model, tokenizer, study.evaluation_temperature, "trained")
        ends |= played_elsewhere(player, study.games[job.game].carried_to, study.carried_episodes)
    return {"settings": settings, "budget": budget, **record._asdict(), "ends": ends}
