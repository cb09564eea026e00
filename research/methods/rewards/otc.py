"""OTC: the reward times a factor that falls with calls."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from agents.msgrpo import ConfigError, configured
from agents.msgrpo.credit import Batch, Floats, Trajectory, same


@configured
class OTC:
    """The game's rewards above 0, times a factor that falls with the calls beyond those that were needed.

    With m calls in an episode and n in the shortest of its group's best ones (arXiv 2504.14870, OTC-GRPO): ::

        factor = sin(f pi / (2 n)),   f = 2 m n / (m + n)

    which is 1 for m = n and falls to 0. With a ``constant`` c it is OTC-PPO's ``cos(m pi / (2 m + c))``, which also
    stands, with c = 1, for n = 0. Our reading: that number; a call is a decision, which the environment
    answers, or an answer of a second player that the learner chose to ask; the best episodes are those of the highest
    return, where the paper has correct answers; and a loss isn't made smaller by calls.
    """

    calls: Literal["steps", "tokens", "calls"] = "steps"
    """The calls that are spared: decisions of an episode, response tokens, or answers of the second player inside
    ``around``, in place of ``cost``."""
    constant: float = Field(0.0, ge=0)
    """c of OTC-PPO, by which a call costs less; 0: OTC-GRPO's factor."""

    reward_mode: ClassVar[Literal["add", "replace"]] = "replace"

    @property
    def evaluates(self) -> bool:
        return self.constant > 0

    def pay(self, batch: Batch) -> list[Floats]:
        played, returns = batch.trajectories, batch.returns()
        m = np.array([self._made(each) for each in played], dtype=np.float64)
        n = np.zeros(len(played))
        for members in batch.groups.values():
            own = returns[members]
            n[members] = m[members][same(own, own.max())].min()
        # f / (2 n) = m / (m + n); an episode with fewer calls than the best ones isn't paid less for it
        most = np.maximum(m, n)
        sine = np.sin(np.pi * most / np.maximum(most + n, 1))
        cosine = np.cos(m * np.pi / (2 * m + (self.constant or 1.0)))
        factor = cosine if self.constant else np.where(n > 0, sine, cosine)
        self.metrics = {"call_factor": float(factor.mean()), "calls": float(m.mean())}
        pairs = zip([each.rewards for each in played], factor, strict=True)
        return [np.where(rewards > 0, rewards * f, rewards) for rewards, f in pairs]

    def _made(self, each: Trajectory) -> int:
        """Return the calls of an episode."""
        if self.calls != "calls":
            return max(1, len(each) if self.calls == "steps" else each.tokens)
        if None in each.bought or not each.bought:
            raise ConfigError(
                "reward = 'otc' with calls = 'calls' counts a second player's answers, and there is none beside the "
                "learner; accepted: around = 'router(AGENT, AGENT, learner)', or calls = 'steps' or 'tokens'"
            )
        return sum(one for one in each.bought if one is not None)
