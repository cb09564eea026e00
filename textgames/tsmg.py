"""The contract of a game: a text-mediated stochastic game (TSMG). Read this file first.

A TSMG is a stochastic game ``(N, S, {A_i}, P, {r_i}, H)`` plus two text maps for every player ``i``:

* the observation map ``phi_i : S -> text`` is :meth:`TSMG.observe`;
* the action map ``psi_i : text -> A_i or invalid`` is :meth:`TSMG.interpret`.

(Dilkes et al., "Reinforced Language Models for Sequential Decision Making", arXiv 2508.10839, section 3.)

The rules never see text and a player never sees anything but text. The rules are pure: a state is an immutable,
hashable value and :meth:`TSMG.transition` returns a new one, so a state is cloned for free, is a dictionary key, and
can be searched by a planner. The horizon ``H``, the format penalty and what an unreadable response leads to belong to
the environments (:mod:`textgames.environments`).

To add a game: subclass :class:`TSMG`, name its actions, implement the four abstract methods, and call
:func:`textgames.register`. :func:`textgames.conformance.check` tells whether it keeps to the contract. Every other
method has a default, under which the game has simultaneous moves from a list of names; overriding it is all that a
game does to have a part more. Code that has to know whether a game has such a part asks for :attr:`TSMG.takes_turns`,
:attr:`TSMG.has_outcomes`, :attr:`TSMG.has_initial_outcomes`, :attr:`TSMG.reads_observations` or :attr:`TSMG.has_board`,
which a game overrides if its settings decide them.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from textgames.texts.actions import ActionNames, Unreadable, UnreadableReason, action_content

if TYPE_CHECKING:
    import numpy as np

StateT = TypeVar("StateT", bound=Hashable)

Player = str
"""A player's name: ``"player_0"``, ``"player_1"``, ... The PettingZoo agent names."""

Action = str
"""An action as the rules take it: a name such as ``"left"``, in lower case, or what ``read_action`` made of a text."""

JointAction = Mapping[Player, Action]
"""The actions of all players who are to move."""

Rewards = dict[Player, float]
"""What a round pays every player."""

Transition = tuple[StateT, Rewards, bool]
"""The next state, every player's reward, and whether the game is over."""

Outcome = tuple[float, StateT, Rewards, bool]
"""A transition that may come of a round, with its probability before it."""

SeenBoard = tuple[tuple[str, ...], Mapping[str, str]]
"""The rows of a board, one character a cell, and what its characters are."""

_NO_TAG = Unreadable(UnreadableReason.NO_TAG)


class GameError(RuntimeError):
    """A game did what no game may do, such as paying nothing; the message names the game and what it did."""


class TSMG(ABC, Generic[StateT]):
    """A text-mediated stochastic game: pure rules, one observation map and one action map per player.

    Attributes:
        players: the players that are controlled from outside, in order. Opponents inside the game are not players.
        actions: the names a player may write, in order; lower case. Empty in a game that reads all of its actions
            itself. The first legal one is the default action.
        noop: the action that does nothing, if the game has one.
        bare_responses: whether a response without an action tag counts if it is nothing but an action. A game with
            speech switches it off, so that thoughts whose tags were forgotten are never spoken.
        palette: colours of the board's characters, ``{character: (red, green, blue)}`` in 0..255, for pictures.
        legend: what the board's characters are, ``{character: "apple"}``.
        board_labels: the names of the board's columns, from the left, and of its rows, from the top; an empty name is
            none. ``None``: X from 0 to the right and Y from 0 up.
        success_means: what :meth:`succeeded` asks for, as what follows "the player": ``"reached the goal"``. Empty in a
            game without success.
        hidden_information: whether a state holds what some player must not know, such as cards, roles or a code. Then
            players are told of the moves of others by their own observations alone.
        pays_late: whether a player who is out may still be paid. ``None`` promises nothing; ``False`` lets environments
            send such a player away at once.
        made_with: the settings of a game that was made by its id; ``None`` for a game built by hand.
        return_range: the lowest and the highest return that an episode can have, if the rules bound them closely.
            Intervals of mean returns reach towards them.
        longest_episode: rounds by which the rules have ended every episode, if they bound it.
        usual_limit: the limit of ``max_steps="auto"``, in a game whose settings decide how long it takes.
        shortest_win: the fewest rounds in which every start can be won, if known; infinite if some start can't be.
            Environments refuse a lower limit.
        worst_round: the lowest reward that bad play gets in a round, in games that pay round by round.
        zero_sum: whether two play and one's gain is the other's loss, so that the game is over when one gives up.
    """

    players: tuple[Player, ...] = ("player_0",)
    actions: tuple[Action, ...] = ()
    noop: Action | None = None
    bare_responses: bool = True
    hidden_information: bool = False
    pays_late: bool | None = None
    return_range: tuple[float, float] | None = None
    longest_episode: int | None = None
    usual_limit: int | None = None
    shortest_win: float | None = None
    made_with: Mapping[str, Any] | None = None
    worst_round: float | None = None
    zero_sum: bool = False
    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = {}
    legend: ClassVar[Mapping[str, str]] = {}
    board_labels: tuple[Sequence[str], Sequence[str]] | None = None
    success_means: ClassVar[str] = ""

    # ---------------------------------------------------------------- rules

    @abstractmethod
    def initial_state(self, rng: "np.random.Generator") -> StateT:
        """Draw the first state of an episode; everything random about it comes from ``rng``."""

    @abstractmethod
    def transition(
        self, state: StateT, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[StateT, dict[Player, float], bool]:
        """Play one round: ``P`` and ``r`` of the game; ``state`` is not changed, and ``rng`` draws all that is random.

        Args:
            joint_action: one legal action for every player in ``to_move(state)``; others are ignored.

        Returns:
            The next state; ``{player: reward}`` for every player, also for those who did not act or are out already;
            and whether the whole game is over, as it is at the latest when all players are out.

        Raises:
            ValueError: a player who is to move has no action, or one that is not legal in this state.
        """

    def to_move(self, state: StateT) -> tuple[Player, ...]:
        """Return the players who act in this state, in the order of :attr:`players`; by default all who are playing.

        Only they are asked for an action. While the game is not over, it is at least one player, and none who is out.
        A reward between two of a player's decisions belongs to the earlier one; one before its first, to the first.
        """
        return tuple([player for player in self.players if self.is_playing(state, player)])

    def legal_actions(self, state: StateT, player: Player) -> tuple[Action, ...]:
        """Return ``A_i`` in this state: what ``player``, who is to move, may choose from, in order; none twice.

        Empty if the actions can't be listed; then :meth:`read_action`, :meth:`default_action`, :meth:`sample_action`
        and :meth:`action_help` have to be the game's own (:mod:`textgames.texts.commands` helps to write them).
        """
        return self.actions

    def default_action(self, state: StateT, player: Player) -> Action:
        """Return what ``invalid_action="default"`` executes for an unreadable response: the first legal action."""
        return self.legal_actions(state, player)[0]

    def sample_action(self, state: StateT, player: Player, rng: "np.random.Generator") -> Action:
        """Return a random legal action, for random play and for checks: by default each one with equal chances."""
        legal = self.legal_actions(state, player)
        return legal[int(rng.integers(len(legal)))]

    def is_playing(self, state: StateT, player: Player) -> bool:
        """Return whether ``player`` is still in the game: ``True`` at first, and ``False`` for good once it is out.

        A player who is out is never to move again. It is still paid what :meth:`transition` gives it.
        """
        return True

    def succeeded(self, state: StateT, player: Player) -> bool:
        """Return whether an episode that ends in ``state`` counts as a success of ``player``."""
        return False

    def metrics(self, state: StateT, player: Player) -> Mapping[str, float]:
        """Return figures besides the return at an episode's end, such as ``{"regret": 3.2}``."""
        return {}

    def forfeit(self, state: StateT, player: Player, rounds_left: float) -> dict[Player, float]:
        """Return what giving up pays in this state, as ``{player: reward}``: never more than bad play would still get.

        By default that is :attr:`worst_round` for each of the ``rounds_left`` until truncation (this one included;
        infinite without a limit), else the lowest return of :attr:`return_range`. In a :attr:`zero_sum` game the other
        player gets what it loses. A NotImplementedError says that what a loss pays here isn't known.
        """
        if self.worst_round:
            if rounds_left == float("inf"):
                raise NotImplementedError(f"{type(self).__name__} pays round by round: giving up needs a step limit")
            loss = self.worst_round * rounds_left
        elif self.worst_round is None and self.return_range is None:
            raise NotImplementedError(
                f"{type(self).__name__} doesn't say what a loss pays: give it a return_range, or a worst_round if it "
                "pays round by round"
            )
        else:
            loss = 0.0 if self.return_range is None or self.worst_round is not None else self.return_range[0]
        others = [other for other in self.players if other != player] if self.zero_sum else []
        return {player: loss, **dict.fromkeys(others, 0.0 - loss)}

    # ---------------------------------------------------------------- exact chances

    def outcomes(self, state: StateT, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[StateT]]:
        """Return the exact distribution of :meth:`transition`: everything that may come of a round.

        With it a game can be solved exactly, and scores can be freed from luck. Probabilities are above 0 and sum to 1.
        Equal outcomes may be listed more than once. Errors are those of :meth:`transition`, and a NotImplementedError
        if chances aren't known with these settings; see :attr:`has_outcomes`.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no outcomes(state, joint_action), so its chances aren't known"
        )

    def initial_outcomes(self) -> Sequence[tuple[float, StateT]]:
        """Return ``[(probability, state), ...]``: the exact distribution of :meth:`initial_state`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no initial_outcomes(), so the chances of its start aren't known"
        )

    # ---------------------------------------------------------------- what a game can do: what its class defines

    def _defines(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(TSMG, method)

    @property
    def has_outcomes(self) -> bool:
        """Whether :meth:`outcomes` answers."""
        return self._defines("outcomes")

    @property
    def has_initial_outcomes(self) -> bool:
        """Whether :meth:`initial_outcomes` answers."""
        return self._defines("initial_outcomes")

    @property
    def has_board(self) -> bool:
        """Whether the game has a :meth:`board`."""
        return self._defines("board")

    @property
    def reads_observations(self) -> bool:
        """Whether :meth:`read_observation` answers."""
        return self._defines("read_observation")

    @cached_property
    def takes_turns(self) -> bool:
        """Whether some of the players wait while others move, at the start."""
        import numpy as np

        return len(self.to_move(self.initial_state(np.random.default_rng(0)))) < len(self.players)

    # ---------------------------------------------------------------- text

    @abstractmethod
    def observe(self, state: StateT, player: Player) -> str:
        """Return the observation map ``phi``: what ``player`` reads in this state, which alone decides it."""

    @abstractmethod
    def instructions(self, player: Player) -> str:
        """Return what the game is and its rules, for the prompt; always the same text, which names every action."""

    def action_help(self, state: StateT, player: Player) -> str:
        """Return the prompt's words on what ``player`` may write inside the action tag now."""
        return ", ".join(self.legal_actions(state, player))

    def read_action(self, inside: str, state: StateT, player: Player) -> "Action | Unreadable":
        """Read an action from the content of the action tag alone, or say why it is none.

        By default it is the name of an action, in any case and with white space around it. The action that is returned
        is what the rules are given, so it should have one form: ``"reveal 3 4"`` for ``" Reveal  3 4"``. Nothing is
        guessed, and whether a listed action is legal now is left to :meth:`read`. Never raises for a string.
        """
        return self.action_names.read(inside)

    def read(self, text: str, state: StateT, player: Player) -> "Action | Unreadable":
        """Return the action map ``psi`` with its reasons: the action that a whole response names, or why it names none.

        Finding the one action tag is the same for every game (:mod:`textgames.texts.actions`); what is inside it, if
        it isn't a legal action as it stands, is read by :meth:`read_action`.
        """
        found = action_content(text)
        if isinstance(found, Unreadable):
            return found
        inside, bare = found
        if bare and not self.bare_responses:
            return _NO_TAG
        legal = self.legal_actions(state, player)
        if inside in legal:
            return inside
        action = self.read_action(inside, state, player)
        if isinstance(action, Unreadable):
            # a line without a tag is talk, whatever its words, unless it is a name of the game's
            return action if not bare or action.text in self.action_names else _NO_TAG
        return action if action in legal or not legal else Unreadable(UnreadableReason.ILLEGAL, action)

    def interpret(self, text: str, state: StateT, player: Player) -> Action | None:
        """Return the action map ``psi``: the action that a response names, or ``None`` for an invalid response."""
        action = self.read(text, state, player)
        return None if isinstance(action, Unreadable) else action

    def read_observation(self, observation: str, player: Player) -> StateT:
        """Return the state that an observation shows: the inverse of :meth:`observe`, if that shows all that matters.

        With it and an exact or searching :mod:`yardstick <textgames.yardsticks>`, the players ``greedy`` and
        ``planner`` can play the game: they read, as every player does, nothing but text. A ValueError if the text is no
        observation of this game, a NotImplementedError if the game hides something or has no such method.
        """
        raise NotImplementedError(f"{type(self).__name__} has no read_observation(observation, player)")

    @cached_property
    def action_names(self) -> ActionNames:
        """The lookup table of :attr:`actions` that the parser uses; built once."""
        return ActionNames(self.actions)

    # ---------------------------------------------------------------- for people

    def what_happened(
        self, state: StateT, joint_action: Mapping[Player, Action], next_state: StateT, player: Player
    ) -> str:
        """Return what a round did to ``player`` and why, for replays: ``"slipped down instead of right"``.

        Several things are joined with ``"; "``; ``""`` if nothing happened beyond the action itself, or the player was
        out already.
        """
        return ""

    def board(self, state: StateT) -> tuple[str, ...]:
        """Return the state as rows of characters, top row first, one character a cell, as a spectator sees it.

        With it ``render_mode="human"`` is in colour and ``"rgb_array"`` shows tiles; else both show text.
        """
        raise NotImplementedError(f"{type(self).__name__} has no board(state); it is drawn as text")

    def seen_by(self, state: StateT, player: Player) -> SeenBoard | None:
        """Return the board and its legend as ``player`` may see them; ``None`` if its picture is its observation.

        By default that is the spectator's board if the game hides nothing. Equal observations have equal boards.
        """
        return (self.board(state), self.legend) if self.has_board and not self.hidden_information else None

    def describe(self, state: StateT) -> str:
        """Return the state as text for ``render_mode="ansi"``: the board, or without one the first observation."""
        if not self.has_board:
            return self.observe(state, self.players[0])
        return "\n".join(" ".join(row) for row in self.board(state))
