"""The loop for players of this process: all live episodes advance together, so that a model sees large batches."""

from collections.abc import Callable, Iterator
from time import monotonic

from agents.episode import Episode, EpisodeTask, Step
from agents.loop.live import EnvironmentPool, LiveEpisode, Policies
from agents.turn import Policy, Turn, TurnRequest


def lock_step_rollout(
    policies: Policies,
    tasks: Iterator[EpisodeTask],
    max_concurrency: int,
    deadline: float | None,
    on_step: Callable[[EpisodeTask, Step], None] | None,
    pool: EnvironmentPool,
) -> Iterator[Episode]:
    """All live episodes advance by one round at a time, so that a local model sees the largest possible batches."""
    live: list[LiveEpisode] = []
    while True:
        while len(live) < max_concurrency and (task := next(tasks, None)) is not None:
            live.append(LiveEpisode(task, policies, pool))
        if not live:
            return
        if deadline is not None and monotonic() > deadline:
            raise TimeoutError(f"out of time with {len(live)} episodes in flight, which were cancelled")
        for episode, turns in zip(live, _answers(live), strict=True):
            for step in episode.play(turns):
                if on_step is not None:
                    on_step(episode.task, step)
        over = [episode for episode in live if episode.over]
        live = [episode for episode in live if not episode.over]
        for episode in over:
            yield episode.finish()


def _answers(live: list[LiveEpisode]) -> list[dict[str, Turn]]:
    """Every episode's ``{player: turn}`` of one round; each policy is asked once, for everything it has to answer."""
    requests = [episode.requests() for episode in live]
    asked: dict[int, tuple[Policy, list[tuple[int, str, TurnRequest]]]] = {}
    for row, episode in enumerate(live):
        for player, request in requests[row].items():
            policy = episode.policies[player]
            asked.setdefault(id(policy), (policy, []))[1].append((row, player, request))
    answers: dict[tuple[int, str], Turn] = {}
    for policy, questions in asked.values():
        turns = policy.act([request for _, _, request in questions])
        if len(turns) != len(questions):
            raise RuntimeError(f"{policy.name} returned {len(turns)} turns for {len(questions)} requests")
        answers.update({(row, player): turn for (row, player, _), turn in zip(questions, turns, strict=True)})
    # in the players' order, and not in that of the policies, which depends on what else is live
    return [{player: answers[row, player] for player in asked_of} for row, asked_of in enumerate(requests)]
