"""What a comparison consists of: jobs, what each waits for, and where its result and its agent lie."""

from pathlib import Path
from typing import Literal, NamedTuple

from research.improve.study.settings import Comparison
from research.jobs.folder import Folder
from research.jobs.recipes import TUNING_SEED


class ComparedJob(NamedTuple):
    """A piece of work for one process; what doesn't apply to its kind is empty."""

    name: str  # unique, and the path of its result below the folder: ``"learn/frozen-lake/offline/500000/0"``
    kind: Literal["base", "play", "tune", "learn"]
    needs: tuple[str, ...] = ()
    game: str = ""
    method: str = ""  # a learner's name; in play a player's, or ``base``
    budget: int = 0  # tokens
    seed: int = 0
    rate: float = 0.0


def jobs_of(study: Comparison) -> list[ComparedJob]:
    """Return all jobs in the order of importance: game by game, and there seed by seed."""
    return [job for game in study.games for job in _on(study, game)]


def _on(study: Comparison, game: str) -> list[ComparedJob]:
    base, first = f"base/{game}", f"play/{game}/base/0"
    played = [
        ComparedJob(f"play/{game}/base/{seed}", "play", (base,), game, "base", seed=seed) for seed in range(study.seeds)
    ]
    tuned = {
        method: [
            ComparedJob(
                f"tune/{game}/{method}/{rate:g}", "tune", (first,), game, method, study.tuning_budget, TUNING_SEED, rate
            )
            for rate in learner.rates
            if len(learner.rates) > 1
        ]
        for method, learner in study.methods.items()
    }
    jobs = [ComparedJob(base, "base", (), game), *played, *(job for group in tuned.values() for job in group)]
    for seed in range(study.seeds):
        jobs += [
            ComparedJob(_learnt(game, method, budget, seed), "learn", needs, game, method, budget, seed)
            for budget in study.budgets
            for method in study.methods
            if (needs := tuple(job.name for job in tuned[method]) or (first,))
        ]
        jobs += [
            ComparedJob(f"play/{game}/{name}/{seed}", "play", needs, game, name, seed=seed)
            for name, player in study.players.items()
            if (needs := (_learnt(game, player.trained, study.budgets[-1], seed) if player.trained else base,))
        ]
    return jobs


def _learnt(game: str, method: str, budget: int, seed: int) -> str:
    return f"learn/{game}/{method}/{budget}/{seed}"


class ComparedFolder(Folder):
    """The folder of one comparison. An agent's folder is ``agent`` beside the result of the job that made it."""

    def base(self, game: str) -> str:
        return f"hf:{self.path / 'base' / game / 'model'}"

    def agent(self, job: str) -> Path:
        return self.path / job / "agent"

    def trained(self, game: str, method: str, budget: int, seed: int) -> Path:
        return self.agent(_learnt(game, method, budget, seed))
