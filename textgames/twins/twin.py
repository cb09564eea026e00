"""A game under another text: states, chances, rewards and the order of its actions are those of the game itself."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.random import Generator, default_rng

from textgames.by_game import ByGame, table_of
from textgames.settings import check_whole
from textgames.texts.actions import Unreadable, not_a_name
from textgames.tsmg import TSMG, Action, JointAction, Outcome, Player, Transition
from textgames.twins.phrases import UnknownTextError, by_alphabet
from textgames.twins.vocabulary import Vocabulary
from textgames.yardsticks import FixedPolicy, HeuristicYardstick, Moments, Yardstick, find_yardstick

_VOCABULARIES: ByGame[Path] = ByGame()

_FACTS = (
    *("players", "bare_responses", "hidden_information", "pays_late", "return_range", "longest_episode", "worst_round"),
    *("usual_limit", "shortest_win", "zero_sum", "palette", "legend", "board_labels", "success_means"),
    *("initial_outcomes", "to_move", "is_playing", "succeeded", "metrics", "forfeit", "board", "describe"),
)  # what a twin has from its original as it is


def register_vocabulary(game: type[TSMG[Any]] | str, file: str | Path) -> None:
    """Give a game its vocabulary, the TOML file of :mod:`textgames.twins.vocabulary`.

    The file is where the table lies, or the name of one that ships; a ValueError if there is none.
    """
    _VOCABULARIES.register(game, table_of("twins/vocabularies", file))


def _vocabulary_of(game: TSMG[Any]) -> Vocabulary | None:
    file = _VOCABULARIES.of(game)
    return None if file is None else Vocabulary.read(file)


def has_twins(game: TSMG[Any]) -> bool:
    """Tell whether a game has a vocabulary that covers its settings; a TypeError for what is no game."""
    try:
        twin_of(game, 1)
    except ValueError:
        return False
    return True


def vocabulary_digest(game: TSMG[Any], number: int) -> str:
    """Return :meth:`Vocabulary.digest` of a twin of a game; empty without a vocabulary."""
    vocabulary = _vocabulary_of(game)
    return "" if vocabulary is None else vocabulary.digest(number)


def twin_of(game: TSMG[Any], number: int) -> TSMG[Any]:
    """Return twin ``number`` of a game; the game itself for 0.

    A TypeError if what is given isn't a game; a ValueError for no whole number of at least 0, a game without a
    vocabulary, or settings that it doesn't cover.
    """
    check_whole("twin", number, 0, None)
    if number == 0:
        return game
    vocabulary = _vocabulary_of(game)
    if vocabulary is None:
        raise ValueError(
            f"{type(game).__name__} has no twins, as it has no vocabulary: give it one with "
            f"textgames.register_vocabulary({type(game).__name__}, 'FILE.toml'), or play it with twin=0"
        )
    return Twin(game, int(number), vocabulary)


class Twin(TSMG[Any]):
    """A game that is told as another one.

    Its actions have the twin's names, everywhere that a :class:`~textgames.tsmg.TSMG` takes or gives one, and stand in
    the order of the original's. States are the original's, so whatever is known of them holds for both games.
    A vocabulary that doesn't cover what the game says with these settings is refused with a ValueError.
    """

    def __init__(self, original: TSMG[Any], number: int, vocabulary: Vocabulary) -> None:
        self.original, self.number = original, number
        for name in _FACTS:
            setattr(self, name, getattr(original, name))
        self._drawn = drawn = vocabulary.draw(original, number)
        self.story = drawn.story
        self._own_names = {twin: own for own, twin in drawn.names.items()}  # of listed actions
        self.actions = tuple(drawn.names.values())
        self.noop = None if original.noop is None else self.twin_action(original.noop)
        self._said = lru_cache(maxsize=4096)(lambda own: drawn.layout.arrange(drawn.observation.translate(own)))
        self._read_back = lru_cache(maxsize=4096)(  # of a whole history, at every step
            lambda text: drawn.layout.as_told(drawn.observation.back(drawn.layout.bare(text)))
        )
        self._legal = lru_cache(maxsize=1024)(lambda own: tuple([self.twin_action(each) for each in own]))
        # what isn't covered is said now, and not in the middle of an episode
        start = original.initial_state(default_rng(0))
        for player in original.players:
            self.instructions(player)
            self.observe(start, player)

    def __reduce__(self) -> tuple[Any, ...]:
        return twin_of, (self.original, self.number)  # words are drawn again: the stories' parts can't be pickled

    # ---------------------------------------------------------------- words

    def twin_action(self, action: Action) -> Action:
        """Return what the twin calls an action of the original."""
        known = self._drawn.names.get(action)
        return known if known is not None else "".join(self._drawn.actions.translate(action))

    def own_action(self, action: Action) -> Action:
        """Return the original's name of an action of the twin, or raise UnknownTextError if there is no such action."""
        known = self._own_names.get(action)
        if known is None and self._own_names:
            raise UnknownTextError(f"the twin has no action {action!r}; it has {', '.join(self.actions)}")
        return known if known is not None else "".join(self._drawn.actions.back(action))

    def own_observation(self, text: str) -> str:
        """Return the observation that one of the twin stands for, or raise UnknownTextError if it isn't the twin's."""
        return self._read_back(text)

    def _own_joint(self, state: Any, joint_action: JointAction) -> dict[Player, Action]:
        moving = self.original.to_move(state)  # what others say doesn't matter, whatever it is
        return {player: self.own_action(action) for player, action in joint_action.items() if player in moving}

    # ---------------------------------------------------------------- rules: the original's

    has_outcomes = property(lambda self: self.original.has_outcomes)
    has_initial_outcomes = property(lambda self: self.original.has_initial_outcomes)
    has_board = property(lambda self: self.original.has_board)
    reads_observations = property(lambda self: self.original.reads_observations)

    def initial_state(self, rng: Generator) -> Any:
        return self.original.initial_state(rng)

    def transition(self, state: Any, joint_action: JointAction, rng: Generator) -> Transition[Any]:
        return self.original.transition(state, self._own_joint(state, joint_action), rng)

    def outcomes(self, state: Any, joint_action: JointAction) -> Sequence[Outcome[Any]]:
        return self.original.outcomes(state, self._own_joint(state, joint_action))

    def legal_actions(self, state: Any, player: Player) -> tuple[Action, ...]:
        return self._legal(self.original.legal_actions(state, player))

    def default_action(self, state: Any, player: Player) -> Action:
        return self.twin_action(self.original.default_action(state, player))

    def sample_action(self, state: Any, player: Player, rng: Generator) -> Action:
        return self.twin_action(self.original.sample_action(state, player, rng))

    # ---------------------------------------------------------------- text: the twin's

    def observe(self, state: Any, player: Player) -> str:
        return self._said(self.original.observe(state, player))

    def instructions(self, player: Player) -> str:
        return "\n".join(self._drawn.rules.translate(self.original.instructions(player)))

    def action_help(self, state: Any, player: Player) -> str:
        if self._own_names:  # in an order of their own: that of the original might be recognised
            return ", ".join(sorted(self.legal_actions(state, player), key=by_alphabet))
        return "\n".join(self._drawn.help.translate(self.original.action_help(state, player)))

    def read_action(self, inside: str, state: Any, player: Player) -> Action | Unreadable:
        if self._own_names:
            return super().read_action(inside, state, player)
        try:
            own = self.own_action(" ".join(inside.casefold().split()))
        except UnknownTextError:
            return not_a_name(inside)
        action = self.original.read_action(own, state, player)
        return action if isinstance(action, Unreadable) else self.twin_action(action)

    def read_observation(self, observation: str, player: Player) -> Any:
        return self.original.read_observation(self.own_observation(observation), player)

    def seen_by(self, state: Any, player: Player) -> None:
        return None  # the board is the original's

    # ---------------------------------------------------------------- for people, who may see the game behind it

    def what_happened(self, state: Any, joint_action: JointAction, next_state: Any, player: Player) -> str:
        return self.original.what_happened(state, self._own_joint(state, joint_action), next_state, player)


def twin_yardstick(game: Twin) -> Yardstick:
    """Return the yardstick of a twin, or raise ValueError if the game itself has none."""
    own = find_yardstick(game.original)
    if own is None:
        raise ValueError(f"{type(game.original).__name__} has no yardstick")
    return _TwinHeuristic(game, own) if isinstance(own, HeuristicYardstick) else _TwinYardstick(game, own)


class _TwinYardstick(Yardstick):
    def __init__(self, game: Twin, own: Yardstick) -> None:
        self._twin, self._own = game, own
        self.kind, self.method, self.version = own.kind, own.method, own.version

    def values(self, state: Any, steps_left: int | None, player: Player) -> Mapping[Action, float]:
        values = self._own.values(state, steps_left, player)
        return {self._twin.twin_action(action): value for action, value in values.items()}

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        return self._own.value(state, steps_left, player)

    def blind_value(self, state: Any, steps_left: int | None, player: Player, policy: FixedPolicy) -> float | None:
        own = {self._twin.own_action(action): chance for action, chance in policy.items()}
        return self._own.blind_value(state, steps_left, player, own)


class _TwinHeuristic(HeuristicYardstick):
    def __init__(self, game: Twin, own: HeuristicYardstick) -> None:
        super().__init__(game)
        self._twin, self._own = game, own
        self.method, self.version = own.method, own.version

    def value(self, state: Any, steps_left: int | None, player: Player) -> float:
        return self._own.value(state, steps_left, player)

    def moments(self, state: Any, action: Action, steps_left: int | None, player: Player) -> Moments:
        return self._own.moments(state, self._twin.own_action(action), steps_left, player)
