"""Doing the jobs of a comparison, in whatever process, and the command behind its options."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agents import SearchPlayer, request_in, search_player_of
from agents.tiny import legal_play
from benchmark.play import AgentTable
from benchmark.score import ALL, MoveLosses
from research.improve import task as plays
from research.improve.budget import Budget, SpendingMeter
from research.improve.study.settings import ComparedFolder, ComparedJob, Comparison, jobs_of
from research.jobs import bases
from research.jobs.command import Options, Undertaking, carry_out
from research.jobs.recipes import TUNING_SEED
from research.jobs.report import publish
from research.jobs.work import Report, Work
from textgames import Scenario


def make_base(job: ComparedJob, study: Comparison, folder: ComparedFolder, report: Report) -> dict[str, Any]:
    """Make a small model that reads the game and its twin equally, or save the pretrained one, its adapter merged."""
    place = folder.path / job.name / "model"
    if study.pretrained:
        from agents import PromptMap
        from agents.models import card_of
        from agents.msgrpo import save_model

        model, tokenizer = bases.load(study.pretrained)
        card = card_of(model)
        assert card is not None  # checked when the recipe was read
        if hasattr(model, "peft_config"):
            model = model.merge_and_unload()
        place.mkdir(parents=True, exist_ok=True)
        save_model(model, tokenizer, PromptMap(card.mode, texts=card.texts), place, model.state_dict())
        return {"parameters": model.num_parameters()}
    recipe = study.recipe(job.game)
    examples = [
        example
        for part, twin in enumerate((False, True))
        for example in _demonstrated(study.scenario(job.game, twin=twin), study.skill, recipe, part)
    ]
    made = bases.make(recipe, place, report, "textbench reproduce --config improvers", examples)
    return {"parameters": made.model.num_parameters(), "losses": list(made.losses)}


def _demonstrated(scenario: Scenario, skill: float, recipe: Any, part: int) -> list[Any]:
    """Return half of the recipe's decisions: the planner's, and random legal ones."""
    game = scenario.game()
    planner, known = search_player_of(game), dict[Any, list[str]]()
    assert isinstance(planner, SearchPlayer)
    rng = np.random.default_rng([recipe.seed, 2, part])

    def best(_: Any, state: Any, player: str) -> str:
        if state not in known:
            known[state] = [
                choice.action for choice in planner.plans(request_in(game, state, player, scenario.horizon))
            ]
        return known[state][int(rng.integers(len(known[state])))]

    draws = np.random.default_rng([recipe.seed, 1, part])
    return legal_play(scenario, recipe.examples // 2, draws, favourites=skill, favourite_of=best, texts=recipe.texts)


def learn(job: ComparedJob, study: Comparison, folder: ComparedFolder, report: Report) -> dict[str, Any]:
    """Improve the base by a method at a budget, and play what came of it."""
    from research.improve.study.learning import Costs, task_of
    from research.improve.study.learning import learn as spend

    played = folder.result(f"play/{job.game}/base/0")["game"]
    costs = Costs(played["tokens"], played["tokens"] * played["decisions"])
    out = folder.agent(job.name)
    shutil.rmtree(out, ignore_errors=True)
    agent = study.playing(folder.base(job.game))
    task = task_of(agent, job.game, job.seed, out, lambda line: None)
    rate = job.rate or _best_rate(job, study, folder)
    learnt = spend(job.method, study, task, job.budget, rate, costs)
    report(0.8)
    found = _played({"spec": str(out)}, job, study, folder)
    shutil.rmtree(out / "plays", ignore_errors=True)
    return {"rate": rate, "budget": job.budget, **learnt._asdict(), **found}


def _best_rate(job: ComparedJob, study: Comparison, folder: ComparedFolder) -> float:
    """Return the learning rate that lost least in tuning; 0 of a method that trains nothing."""
    rates = study.methods[job.method].rates
    if len(rates) < 2:
        return rates[0] if rates else 0.0
    lost = {rate: folder.result(f"tune/{job.game}/{job.method}/{rate:g}")["game"]["regret"] for rate in rates}
    return min(lost, key=lambda rate: lost[rate])


def play(job: ComparedJob, study: Comparison, folder: ComparedFolder, report: Report) -> dict[str, Any]:
    """Play the base, or a player around it."""
    base = folder.base(job.game)
    agent = study.playing(base)
    if job.method != "base":
        player = study.players[job.method]
        trained = folder.trained(job.game, player.trained, study.budgets[-1], job.seed) if player.trained else ""
        named = {"base": base, "trained": f"hf:{trained}/model"}
        agent |= {**player.options, "spec": player.spec.format(**named)}
    return _played(agent, job, study, folder)


def _played(agent: dict[str, Any], job: ComparedJob, study: Comparison, folder: ComparedFolder) -> dict[str, Any]:
    """Return what an agent loses and costs in the game and in its twin; tuning has episodes of its own, and no twin."""
    tuning = job.seed == TUNING_SEED
    first = study.scenario(job.game).seed(study.episodes if tuning else 0)
    seeds, found = range(first, first + study.episodes), {}
    for name in study.places[:1] if tuning else study.places:
        place: Path = folder.path / job.name / name
        shutil.rmtree(place, ignore_errors=True)
        found[name] = scored(agent, study.scenario(job.game, twin=name == "twin"), seeds, job.seed, place)
        shutil.rmtree(place)
    return found


WORK: Mapping[str, Work] = {"base": make_base, "play": play, "tune": learn, "learn": learn}
"""By the kind of a job, what does it."""


def scored(agent: AgentTable, scenario: Scenario, seeds: Sequence[int], draw: int, folder: Path) -> dict[str, float]:
    """Play an agent on some seeds, with its ``draw`` of samples; return means over episodes and over decisions.

    ``regret`` is the value lost against the best action by the game's exact values, those of the executed action if
    an answer named none; ``tokens`` are read and written for a decision; ``decisions`` are those of an episode.
    """
    meter = SpendingMeter(Budget(), folder / "seconds.json")
    folder.mkdir(parents=True, exist_ok=True)
    played = plays.play(
        folder / "run", agent, (scenario.name,), seeds, meter, lambda line: None, resample=draw + 1, quiet=True
    )
    decisions = sum(len(record.steps) for record in played.records)
    (own,) = played.scenarios.values()  # of the run: it knows what an unreadable answer led to
    losses, lost = MoveLosses.of(own, players=1), 0.0
    assert losses is not None  # checked when the recipe was read
    for record in played.records:
        found = losses.of_record(record)
        if not found:
            raise ValueError(f"episode {record.seed} of {played.folder} can't be replayed, so its regret isn't known")
        lost += sum(each[ALL][0] for each in found.values())
    return {
        "return": played.mean,
        "regret": lost / decisions,
        "tokens": meter.spent.tokens / decisions,
        "invalid": sum(not step.valid for record in played.records for step in record.steps) / decisions,
        "decisions": decisions / len(played.records),
    }


PACKAGES = ("torch", "transformers", "tokenizers", "peft", "trl", "scipy")


def compare_improvers(study: Comparison, options: Options) -> int:
    """Do what the folder lacks, then write and print the report; raises as :func:`carry_out` does."""
    folder, jobs = ComparedFolder(options.out.resolve()), jobs_of(study)
    # seconds of a base and of an evaluation, and tokens a second, on one core if the recipes were first run
    base, play, tokens = (7.0, 60.0, 1_000.0) if study.pretrained else (140.0, 5.0, 40_000.0)
    seconds = {job.name: base if job.kind == "base" else play + job.budget / tokens for job in jobs}

    def report() -> int:
        from research.improve.study.report import draw_curve, read_findings, report_data, report_markdown

        return publish(read_findings(study, folder), folder.path, options, draw_curve, report_markdown, report_data)

    return carry_out(Undertaking(study, folder, jobs, WORK, seconds, report, PACKAGES, threads=1), options)
