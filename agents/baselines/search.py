"""Players that read the state back from the observation and compute their move: ``greedy`` and ``planner``.

A game takes part by ``register_search_player(MyGame, MySearch)``, where ``MySearch(game)`` is a :class:`SearchPlayer`.
A game that has a yardstick (:mod:`textgames.yardsticks`) and reads its own observations back needs no such line:
:class:`YardstickPlayer` plays it. Unlike a yardstick, which is given the state, a search player has values of what a
text reveals.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pkgutil import resolve_name
from typing import Any
from weakref import WeakKeyDictionary

from agents.baselines.scripted_player import Choice, ScriptedPlayer
from agents.turn import TurnRequest
from textgames.by_game import ByGame
from textgames.tsmg import TSMG
from textgames.yardsticks import Kind, Yardstick, find_yardstick


class SearchPlayer(ABC):
    """Computes moves in one game with its settings. It sees what any player sees: the request's text."""

    kind: Kind = "reference"  #: ``"optimal"`` if :meth:`values` are true, else ``"reference"``
    method: str = "search"  #: how they are computed, in a few words, for tables of results

    def __init__(self, game: Any) -> None:
        self._game = game

    @property
    def exact(self) -> bool:
        """Whether the values are those of optimal play, and not estimates."""
        return self.kind == "optimal"

    @abstractmethod
    def values(self, request: TurnRequest) -> dict[str, float]:
        """Return ``{action: value}`` of every legal action, in their order.

        A value is the undiscounted expected return of this action now and the best play after it that the search knows.
        """

    def values_with(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        """Return the values of these actions, and of enough others to tell the best ones; by default of all."""
        return self.values(request)

    def plan(self, request: TurnRequest) -> Choice:
        """Return the best move that the search finds: an action of the largest value, the first of equals."""
        return self.choice(self.values(request))

    def plans(self, request: TurnRequest) -> Sequence[Choice]:
        """Return all moves that are as good to :meth:`plan`; dawdling ones of equal value aren't."""
        return (self.plan(request),)

    def value(self, request: TurnRequest) -> float:
        """Return the value of the best action."""
        return max(self.values(request).values())

    def choice(self, values: dict[str, float]) -> Choice:
        action = max(values, key=values.__getitem__)
        return Choice(action, f"Playing ahead, {action} gains {values[action]:+.2f} on average in the rounds to come.")

    def greedy(self, request: TurnRequest) -> Choice:
        """Return the move that looks best without looking far ahead: by default, that of the next reward alone."""
        values = self.values(replace(request, steps_left=1))
        action = max(values, key=values.__getitem__)
        return Choice(action, f"Looking no further than this step, {action} gains {values[action]:+.2f} on average.")

    def state(self, request: TurnRequest) -> Any:
        """Return the state that a request tells; a ValueError if it doesn't tell all of it."""
        raise ValueError(f"{type(self).__name__} can't tell the whole state from an observation")

    def plan_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        """Return ``{action: probability}`` with which :meth:`plan` chooses; ``None`` if it isn't known."""
        return None

    def greedy_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        """Return ``{action: probability}`` with which :meth:`greedy` chooses; ``None`` if it isn't known."""
        return None

    def uniform_value(self, request: TurnRequest) -> float | None:
        """Return the exact expected return of uniform play; ``None`` if it isn't computed."""
        return None


class YardstickPlayer(SearchPlayer):
    """Plays by a game's yardstick, on the state that the game itself reads from the observation."""

    def __init__(self, game: TSMG[Any], yardstick: Yardstick) -> None:
        super().__init__(game)
        self._yardstick = yardstick
        self.kind, self.method = yardstick.kind, yardstick.method

    def values(self, request: TurnRequest) -> dict[str, float]:
        return dict(self._yardstick.values(self.state(request), request.steps_left, request.player))

    def uniform_value(self, request: TurnRequest) -> float | None:
        return self._yardstick.blind_value(self.state(request), request.steps_left, request.player, {})

    def state(self, request: TurnRequest) -> Any:
        return self._game.read_observation(request.observation, request.player)


class TwinPlayer(SearchPlayer):
    """Plays a twin as the search player of the game itself would, from the twin's text alone."""

    def __init__(self, game: Any) -> None:
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


Factory = Callable[[Any], SearchPlayer]
"""``game -> its search player``. It may have an attribute ``recognise: text -> game | None`` that makes a game from an
observation alone, for requests that are bare strings."""

_SHIPPED: dict[str, Factory | str] = {
    game: f"agents.baselines.games.{player}"
    for game, player in {
        "textgames.exploration.guess_number:GuessNumber": "guessing:GuessNumberPlayer",
        "textgames.exploration.mastermind:Mastermind": "guessing:SolvedGuessingPlayer",
        "textgames.exploration.word_guess:WordGuess": "guessing:word_guess_player",
        "textgames.frozen_lake.game:FrozenLake": "boards:FrozenLakePlayer",
        "textgames.planning.sliding_puzzle:SlidingPuzzle": "boards:SlidingPuzzlePlayer",
        "textgames.planning.sokoban:Sokoban": "boards:SokobanPlayer",
        "textgames.snake.game:Snake": "boards:SnakePlayer",
        "textgames.exploration.bandit:Bandit": "learning:BanditPlayer",
        "textgames.exploration.online_learning:OnlineLearning": "learning:OnlineLearningPlayer",
        "textgames.social.matrix_game.game:MatrixGame": "learning:matrix_game_player",
        "textgames.exploration.contextual_bandit:ContextualBandit": "learning:ContextualBanditPlayer",
        "textgames.strategy.kuhn_poker:KuhnPoker": "equilibrium:EquilibriumPlayer",
        "textgames.strategy.leduc_poker:LeducPoker": "equilibrium:EquilibriumPlayer",
        "textgames.strategy.liars_dice:LiarsDice": "equilibrium:liars_dice_player",
        "textgames.social.cleanup:Cleanup": "social:CleanupPlayer",
        "textgames.social.gathering:Gathering": "social:GatheringPlayer",
        "textgames.social.werewolf.game:Werewolf": "social:WerewolfPlayer",
    }.items()
}
_SHIPPED["textgames.twins.twin:Twin"] = "agents.baselines.search:TwinPlayer"
_FACTORIES = ByGame(_SHIPPED)


def register_search_player(game: type[TSMG[Any]] | str, factory: Factory | str) -> None:
    """Let ``greedy`` and ``planner`` play a game; both may be ``"module:Name"``, imported when it plays."""
    _FACTORIES.register(game, factory)


def find_search_player(game: TSMG[Any]) -> SearchPlayer | None:
    """Return the search player of a game; ``None`` if there is none, or it refuses the game's settings."""
    try:
        return search_player_of(game)
    except ValueError:
        return None


def search_player_of(game: TSMG[Any]) -> SearchPlayer:
    """Return the search player of a game: of its class or the nearest registered base class, or of its yardstick.

    A small zero-sum game of two players with hidden information that has neither is played in equilibrium. A ValueError
    says how to add one, or why it refuses the game's settings.
    """
    factory = _FACTORIES.of(game)
    if factory is not None:
        return factory(game)
    yardstick = find_yardstick(game)
    if yardstick is not None and game.reads_observations:
        return YardstickPlayer(game, yardstick)
    name, why = type(game).__name__, ""
    if game.hidden_information and len(game.players) == 2:
        try:
            player: SearchPlayer = resolve_name("agents.baselines.games.equilibrium:hidden_game_player")(game)
            return player
        except ValueError as error:
            why = f". An equilibrium can't be computed either: {error}"
    raise ValueError(
        f"greedy and planner can't play {name}: they (and inspect) need a player that reads {name}'s observations and "
        f"searches it. Add one with agents.baselines.search.register_search_player({name}, YourSearch), where "
        "YourSearch is a SearchPlayer; or, for a small game for one player, register a yardstick "
        "(textgames.register_yardstick) and write its read_observation. random, human and language models play any "
        f"game as it is{why}"
    )


def game_of_observation(observation: str) -> TSMG[Any]:
    """Return the game of an observation, with the settings that it shows; a ValueError if it is no known game's."""
    for factory in _FACTORIES:
        recognise = getattr(factory, "recognise", None)
        game: TSMG[Any] | None = recognise(observation) if recognise is not None else None
        if game is not None:
            return game
    raise ValueError(
        "this observation isn't one of Frozen Lake or Snake, so its game isn't known; ask with a TurnRequest that has "
        f"game and legal_actions. Observation: {observation[:80]!r}"
    )


class SearchPlayers:
    """Keeps one search player for every game object that it is asked about."""

    def __init__(self) -> None:
        self._players: WeakKeyDictionary[TSMG[Any], SearchPlayer] = WeakKeyDictionary()

    def of(self, request: TurnRequest) -> SearchPlayer:
        """Return the search player of the request's game, as :func:`search_player_of`."""
        game = request.game
        if game is None:
            return search_player_of(game_of_observation(request.observation))
        player = self._players.get(game)
        if player is None:
            player = self._players[game] = search_player_of(game)
        return player


class _SearchPolicy(ScriptedPlayer):
    def __init__(self) -> None:
        self._search = SearchPlayers().of

    def check_game(self, game: TSMG[Any]) -> None:
        search_player_of(game)


class GreedyPlayer(_SearchPolicy):
    """Takes the nearest good thing, looking no further."""

    name = "greedy"

    def choose(self, request: TurnRequest) -> Choice:
        return self._search(request).greedy(request)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        return self._search(request).greedy_probabilities(request)


class PlannerPlayer(_SearchPolicy):
    """Looks ahead as far as the game's search player can: the optimum if that is exact."""

    name = "planner"

    def choose(self, request: TurnRequest) -> Choice:
        return self._search(request).plan(request)

    def choices(self, request: TurnRequest) -> Sequence[Choice]:
        return self._search(request).plans(request)

    def action_probabilities(self, request: TurnRequest) -> dict[str, float] | None:
        return self._search(request).plan_probabilities(request)
