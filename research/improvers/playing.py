"""What a player loses and costs on fixed episodes: return, exact regret a decision, tokens a decision."""

from collections.abc import Sequence
from pathlib import Path

from benchmark.improve.budget import Budget, SpendingMeter
from benchmark.improve.plays import Play, play
from benchmark.play.agents.objects import AgentTable
from benchmark.score.move_losses import ALL, MoveLosses
from textgames.scenarios import Scenario


def scored(agent: AgentTable, scenario: Scenario, seeds: Sequence[int], draw: int, folder: Path) -> dict[str, float]:
    """Play an agent on some seeds; ``draw`` is of its samples, on the same seeds.

    Returns:
        Means over the episodes (``return``), and over their decisions: ``regret``, the value lost against the best
        action by the game's exact values, those of the executed action where an answer named none; ``tokens`` that
        were read and written for it; ``invalid`` answers, a share. ``decisions`` an episode.
    """
    meter = SpendingMeter(Budget(), folder / "seconds.json")
    folder.mkdir(parents=True, exist_ok=True)
    played = play(
        folder / "run", agent, (scenario.name,), seeds, meter, lambda line: None, resample=draw + 1, quiet=True
    )
    decisions = sum(len(record["steps"]) for record in played.records)
    return {
        "return": played.mean,
        "regret": _lost(played) / decisions,
        "tokens": meter.spent.tokens / decisions,
        "invalid": sum(not step["valid"] for record in played.records for step in record["steps"]) / decisions,
        "decisions": decisions / len(played.records),
    }


def _lost(played: Play) -> float:
    """The value that all decisions lost."""
    (scenario,) = played.scenarios.values()  # of the run: it knows what an unreadable answer led to
    losses = MoveLosses.of(scenario, players=1)
    assert losses is not None  # checked when the recipe was read
    lost = 0.0
    for record in played.records:
        found = losses.of_record(record)
        if not found:
            raise ValueError(
                f"episode {record['seed']} of {played.folder} can't be replayed, so its regret isn't known"
            )
        lost += sum(own[ALL][0] for own in found.values())
    return lost
