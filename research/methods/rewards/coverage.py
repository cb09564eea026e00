"""Coverage: a reward of whole trajectories with diminishing returns, paid as marginal gains."""

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from agents import EpisodeTask
from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, Trajectory, task_of
from textgames import game_of


@configured
class Coverage:
    """The cells that each step is the first of its episode to cover, in place of the game's reward.

    ``r_it = F(s_0, ..., s_t+1) - F(s_0, ..., s_t)``, F being the number of cells that some state covers: monotone
    and submodular, so that a step pays less the more was visited before (submodular RL, arXiv 2307.13372). With returns
    to go, as in the preset ``subpo``, the gradient is SubPO's, log-probabilities times the marginal gains that follow.
    Our reading: its baseline is that of ``rtg``, the group's other episodes.
    """

    part: str = ""
    """The part of a state that is a cell, such as position; empty: the whole state."""
    reach: int = Field(0, ge=0)
    """A state covers the cells within so many rounds of it, whatever the player does; 0: its own."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    def check(self, task: EpisodeTask) -> None:
        game = game_of(task.env_id, **task.kwargs)
        state = game.initial_state(np.random.default_rng(0))
        if self.part and not hasattr(state, self.part):
            parts = ", ".join(getattr(state, "_fields", ())) or "none"
            raise ConfigError(
                f"[reward.coverage] part = {self.part!r} is no part of a state of {task.scenario}; accepted: {parts}, "
                "or '' for the whole state"
            )
        if self.reach and (len(game.players) != 1 or not game.has_outcomes):
            raise ConfigError(
                f"[reward.coverage] reach = {self.reach} takes a game of one player whose rules list what may follow, "
                f"and {task.scenario} isn't one; accepted with it: reach = 0"
            )

    def pay(self, batch: Batch) -> list[Floats]:
        paid, sizes, known = list[Floats](), list[int](), dict[Any, frozenset[Any]]()
        for each in batch.trajectories:
            seen, gains = set[Any](), list[float]()
            for t, state in enumerate((*each.states, each.end_state)):
                key = (each.seat[0], state, t == len(each) and each.terminated)
                if key not in known:
                    known[key] = self.cover(each, state, over=key[-1])
                gains.append(float(len(known[key] - seen)))
                seen |= known[key]
            paid.append(np.array(gains[1:]))
            sizes.append(len(seen))
        self.metrics = {"covered": float(np.mean(sizes))}
        return paid

    def cover(self, each: Trajectory, state: Any, *, over: bool = False) -> frozenset[Any]:
        """Return the cells that a state of a trajectory covers; the last one of an ended game its own alone."""
        found, reached = {state: over}, {state: over}
        if self.reach and not over:
            task = task_of(each)
            game = game_of(task.env_id, **task.kwargs)
        for _ in range(0 if over else self.reach):
            reached = {
                after: ended
                for one, done in reached.items()
                if not done
                for action in game.legal_actions(one, each.player)
                for _, after, _, ended in game.outcomes(one, {each.player: action})
                if after not in found
            }
            found |= reached
        return frozenset(getattr(one, self.part) if self.part else one for one in found)
