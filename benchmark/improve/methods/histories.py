"""Recorded play in the prompt: episodes from the worst to the best, of which a model may see how play improves.

Nothing is trained. It is what algorithm distillation shows a model (Laskin et al., arXiv 2210.14215), to a model that
was taught nothing of the kind, with the share of the episodes that is left after filtering by their returns as a choice
(filtering learning histories, arXiv 2505.15143).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmark.improve.improver import ImprovementTask
from benchmark.improve.prompts import behind_the_rules, prompt_map_of, with_texts
from benchmark.play.agents.objects import AgentTable
from benchmark.show.training_data import RecordedDecision

HEAD = "Earlier games of this kind, from the worst to the best:"


class RecordedEpisode(NamedTuple):
    """One player's part of an episode."""

    scenario: str
    seed: int
    result: float  # its return
    decisions: list[RecordedDecision]  # that were valid


def improving(episodes: Sequence[RecordedEpisode], count: int) -> list[RecordedEpisode]:
    """So many of the episodes from the worst to the best, at equal distances of their rank, both ends included."""
    ordered = sorted(episodes, key=lambda one: one.result)
    places = np.unique(np.linspace(0, len(ordered) - 1, count).round().astype(int)) if count > 1 else [-1]
    return [ordered[place] for place in places]


def told(episodes: Sequence[RecordedEpisode]) -> str:
    """The text that tells them: what was shown and answered, and what the player got for it."""
    parts = [HEAD]
    for number, episode in enumerate(episodes, 1):
        steps = [f"{each.request.observation}\nAnswer: {each.response}" for each in episode.decisions]
        parts.append(f"Game {number}:\n" + "\n\n".join(steps) + f"\nReturn: {episode.result:g}")
    return "\n\n".join(parts)


def with_history(task: ImprovementTask, episodes: Sequence[RecordedEpisode], count: int) -> AgentTable:
    """The agent with prompts that tell so many of the episodes between the rules and what is shown."""
    prompts = prompt_map_of(task.agent)
    texts = behind_the_rules(prompts.texts, told(improving(episodes, count)))
    return with_texts(task.agent, texts, prompts.mode, task.out)
