"""Any player inside a Gymnasium environment: ``gym.make(id, opponents="planner")``, or ``agents.opponent(policy)``."""

from collections.abc import Mapping, Sequence
from typing import Any

from agents.load import load_agent
from agents.loop.live import ask
from agents.turn import Policy, check_game, request_in
from textgames.environments.opponents import OpponentTurn, Together
from textgames.tsmg import TSMG


def opponent(player: str | Policy, **options: Any) -> Together:
    """Make a player for the ``opponents`` of an environment of a policy, or of a spec and its options.

    A batch of games asks it once for all of them. It has no history, and draws from the environment's generator.
    """
    return Together(_Answers(player, options))


def opponent_in(game: TSMG[Any], spec: str) -> Together:
    """Load the player that an environment names among its ``opponents``; a ValueError if it can't play the game."""
    answers = _Answers(spec, {})
    check_game(answers.policy, game)
    return Together(answers)


class _Answers:
    """A player's answers; pickled as its spec, since players hold caches and models."""

    def __init__(self, player: str | Policy, options: Mapping[str, Any]) -> None:
        if not isinstance(player, str | Policy):
            raise TypeError(f"an opponent is a spec such as 'planner', or has a name and act(requests), got {player!r}")
        self._made_of = player, options
        self.policy = load_agent(player, **options) if isinstance(player, str) else player

    def __reduce__(self) -> tuple[Any, ...]:
        return _Answers, self._made_of

    def __deepcopy__(self, memo: dict[int, Any]) -> "_Answers":
        return self  # Gymnasium copies its specs deeply, which would make a second model

    def __call__(self, turns: Sequence[OpponentTurn]) -> list[str]:
        requests = []
        for turn in turns:
            seed = tuple(turn.rng.integers(2**32, size=2).tolist())
            requests.append(request_in(turn.game, turn.state, turn.player, turn.steps_left, seed))
        return [answer.response for answer in ask(self.policy, requests)]
