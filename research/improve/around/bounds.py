"""Upper confidence bounds in bandits, as a player and as words: ``ucb`` and ``advised(AGENT, bounds)``.

EVOLvE (arXiv 2410.06238) helps a model that explores in two ways: *guided observations* show it what an optimal
algorithm computes, each arm's value so far and its exploration bonus, and *distillation* lets it imitate that
algorithm's play, told in the prompt or trained: ``textbench improve imitate --set teacher=ucb``. Our reading: the bonus
is that of the planner's UCB, ``scale * sqrt(.5 ln t / n)``, and arms that weren't chosen yet are named as such.
"""

from collections.abc import Sequence
from typing import Any

from agents import Turn, TurnRequest, as_requests
from textgames import TSMG
from textgames.exploration import Bandit, exploration_bonuses, read_evidence


class UCBPlayer:
    """Chooses every arm once, in order, then one of the largest mean and exploration bonus together."""

    name = "ucb"

    def check_game(self, game: TSMG[Any]) -> None:
        """Raise a ValueError for a game that is no bandit."""
        if not isinstance(game, Bandit):
            raise ValueError(
                f"{self.name} computes confidence bounds, which {type(game).__name__} has none of: play a bandit, such "
                "as --scenario bandit"
            )

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        return [Turn(self._response(*self._bounds(request))) for request in as_requests(requests)]

    def _bounds(self, request: TurnRequest) -> tuple[dict[str, tuple[float, float]], str]:
        """Return ``{arm: (mean so far, exploration bonus)}``, and the word for choosing one."""
        game = request.game
        if not isinstance(game, Bandit):
            raise ValueError(f"{self.name} takes a bandit's rules: ask it with a TurnRequest that has the game")
        evidence = read_evidence(request.observation, game.actions)
        bonuses = exploration_bonuses(evidence, game.scale if game.prior == "gaussian" else 1.0)
        means = [total / max(pulls, 1) for pulls, total in zip(*evidence, strict=True)]
        return dict(zip(game.actions, zip(means, bonuses, strict=True), strict=True)), game.story.chosen

    def _response(self, bounds: dict[str, tuple[float, float]], chosen: str) -> str:
        arm = max(bounds, key=lambda name: sum(bounds[name]))
        return f"<think>It has the largest upper confidence bound.</think><plan>{arm}</plan><action>{arm}</action>"


class BoundsAdvisor(UCBPlayer):
    """Writes every arm's mean and exploration bonus, as a guided observation shows them, and names no action."""

    name = "bounds"

    def _response(self, bounds: dict[str, tuple[float, float]], chosen: str) -> str:
        told = "Average so far + exploration bonus = upper confidence bound of every arm:"
        lines = [
            f"{arm}: not {chosen} yet, so try it first"
            if bonus == float("inf")
            else f"{arm}: {mean:.2f} + {bonus:.2f} = {mean + bonus:.2f}"
            for arm, (mean, bonus) in bounds.items()
        ]
        return "\n".join([told, *lines])
