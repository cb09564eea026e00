"""The search player of a twin: it translates observations into the game's own words, and its move into the twin's."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer, search_player_of
from agents.turn import TurnRequest
from textgames.twins import Twin


class TwinPlayer(SearchPlayer):
    """Plays a twin as the search player of the game itself would, from the twin's text alone."""

    def __init__(self, game: Twin) -> None:
        super().__init__(game)
        self._own = search_player_of(game.original)
        self.kind, self.method = self._own.kind, self._own.method

    def values(self, request: TurnRequest) -> dict[str, float]:
        return self._named(self._own.values(self._request(request)))

    def value(self, request: TurnRequest) -> float:
        return self._own.value(self._request(request))

    def plan(self, request: TurnRequest) -> Choice:
        return self._choice(self._own.plan(self._request(request)))

    def plans(self, request: TurnRequest) -> Sequence[Choice]:
        return [self._choice(choice) for choice in self._own.plans(self._request(request))]

    def greedy(self, request: TurnRequest) -> Choice:
        return self._choice(self._own.greedy(self._request(request)))

    def plan_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        chances = self._own.plan_probabilities(self._request(request))
        return None if chances is None else self._named(chances)

    def greedy_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        chances = self._own.greedy_probabilities(self._request(request))
        return None if chances is None else self._named(chances)

    def state(self, request: TurnRequest) -> Any:
        return self._own.state(self._request(request))

    def uniform_value(self, request: TurnRequest) -> float | None:
        return self._own.uniform_value(self._request(request))

    def _request(self, request: TurnRequest) -> TurnRequest:
        """Return the request as the original would have made it."""
        twin, own = self._game, self._game.original
        return replace(
            request,
            observation=twin.own_observation(request.observation),
            instructions=own.instructions(request.player),
            legal_actions=tuple(map(twin.own_action, request.legal_actions)),
            history=tuple((twin.own_observation(read), response) for read, response in request.history),
            game=own,
            action_help="",
            sample_action=None,
        )

    def _choice(self, choice: Choice) -> Choice:
        # the reason is told in the words of the original, which have no place here
        return Choice(self._game.twin_action(choice.action), "Of what I may say now, nothing comes to more.")

    def _named(self, values: Mapping[str, float]) -> dict[str, float]:
        return {self._game.twin_action(action): value for action, value in values.items()}
