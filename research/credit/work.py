"""Doing one job of a study, in whatever process."""

import shutil
from typing import Any

import numpy as np

from research.credit.jobs import StudyFolder, StudyJob
from research.credit.settings import OnGames, Study
from research.credit.training import examples_of, expected_return, played_elsewhere, policy_of, train
from research.jobs import bases
from research.jobs.bases import load
from research.jobs.work import Report


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
    results = {r: folder.result(f"tune/{job.game}/{job.arm}/{r:g}") for r in rates if len(rates) > 1}
    rate = best_rate({r: result["points"] for r, result in results.items()}) if results else rates[0]
    budget = study.games[job.game].tokens
    return {"rate": rate, **_run(job, study, folder, report, rate=rate, seed=job.seed, budget=budget)}


def best_rate(points: dict[float, Any]) -> float:
    """Return the rate whose run had the highest mean over its evaluations after the start."""
    return max(points, key=lambda rate: float(np.mean([value for _, _, value in points[rate][1:]])))


def _run(
    job: StudyJob, study: Study, folder: StudyFolder, report: Report, *, rate: float, seed: int, budget: int
) -> dict[str, Any]:
    # every run starts from the base, whose return is known from the run of the stages
    start = float(folder.result(f"stages/{job.game}/0")["points"][0][2])
    model, tokenizer = load(folder.stage(job.game, "base"))
    settings = study.training_settings(job.game, job.arm, seed, rate)
    _, record = train(
        model,
        tokenizer,
        study.scenario(job.game),
        settings,
        budget,
        study.evaluations,
        lambda model, tokenizer, milestone: expected_return(model, tokenizer, job.game, study) if milestone else start,
        report,
    )
    ends = {}
    if job.kind == "train":
        warmths = study.other_temperatures
        ends = {f"at {each:g}": expected_return(model, tokenizer, job.game, study, each) for each in warmths}
        player = policy_of(model, tokenizer, study.evaluation_temperature, "trained")
        ends |= played_elsewhere(player, study.games[job.game].carried_to, study.carried_episodes)
    return {"settings": settings, "budget": budget, **record._asdict(), "ends": ends}
