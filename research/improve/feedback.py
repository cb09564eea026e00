"""What an episode tells, in words: how it ended, and what its worst moves lost against the best ones.

Values are exact in games that are solved, and called estimates elsewhere; without any, the return and the end are told.
"""

from typing import NamedTuple

from agents import Episode, SearchPlayer, Step, find_search_player
from agents.analysis import TIE, best_actions
from benchmark.runs import Replay, ending, replay_if_unchanged, requests_of
from textgames import Scenario


class JudgedMove(NamedTuple):
    """One decision of a recorded episode beside the best one."""

    step: Step
    lost: float  # the value of the best action less that of the executed one; 0 if that is one of the best
    best: tuple[str, ...]


class Judge:
    """Judges episodes of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario, self._game = scenario, scenario.game()
        found = find_search_player(self._game)
        self._solver = found if isinstance(found, SearchPlayer) else None

    def moves(self, replayed: Replay) -> list[JudgedMove]:
        """Return the decisions whose actions are valued; none if the game's reference player can't."""
        if self._solver is None:
            return []
        judged = []
        for step, request in requests_of(replayed):
            try:
                values = self._solver.values(request)
            except ValueError:  # one that follows fixed rules, as in Werewolf
                return []
            if step.action in values:
                best = best_actions(self._solver, request, values)
                lost = 0.0 if step.action in best else max(values.values()) - values[step.action]
                judged.append(JudgedMove(step, lost, best))
        return judged

    def words(self, record: Episode, moves: int = 3) -> str:
        """Return an episode in words, with so many of the moves that lost the most, in the order of play."""
        replayed = replay_if_unchanged(record, self.scenario)
        returns = ", ".join(f"{value:g}" for value in record.returns.values())
        lines = [f"The episode {ending(record, replayed)}. Its return was {returns}."]
        judged = self.moves(replayed) if replayed else []
        worst = sorted((move for move in judged if move.lost > TIE), key=lambda move: -move.lost)[:moves]
        known = "exact" if self._solver is not None and self._solver.exact else "estimated"
        lines += [
            f"In round {move.step.index + 1} the player saw:\n{move.step.observation}\n"
            f"It answered: {move.step.turn.response[-600:]}\n"
            f"{move.step.action} was played, which lost {move.lost:.3g} of the {known} expected return; best was "
            f"{' or '.join(move.best)}."
            for move in sorted(worst, key=lambda move: move.step.index)
        ]
        if judged and not worst:
            lines.append("Every move was one of the best.")
        unread = [step for step in replayed.steps if not step.valid] if replayed else []
        if unread:
            lines.append(
                f"{len(unread)} answers could not be read; the first of them, for {unread[0].unreadable}: "
                f"{unread[0].turn.response[-300:]!r}"
            )
        return "\n\n".join(lines)
