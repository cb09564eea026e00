"""The contract of a game: a text-mediated stochastic game (TSMG). Read this file first.

A TSMG is a stochastic game ``(N, S, {A_i}, P, {r_i}, H)`` plus two text maps for every player ``i``:

* the observation map ``phi_i : S -> text`` is :meth:`TSMG.observe`;
* the action map ``psi_i : text -> A_i or invalid`` is :meth:`TSMG.interpret`.

(Dilkes et al., "Reinforced Language Models for Sequential Decision Making", arXiv 2508.10839, section 3.)

The rules never see text and a player never sees anything but text. The rules are pure: a state is an immutable,
hashable value and :meth:`TSMG.transition` returns a new one, so a state is cloned for free, is a dictionary key, and
can be searched by a planner. All randomness comes from the generator that is passed in.

The horizon ``H``, the format penalty and what happens to an unreadable response are not the game's business: the
environments (``solo_env``, ``parallel``, ``vector_env``) own them, the same way for every game.

To add a game: subclass :class:`TSMG`, name its actions, implement the four abstract methods, and call
:func:`textgames.register`. :func:`textgames.conformance.check` tells whether it keeps to the contract.
"""

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from textgames.action_text import ActionNames, Unreadable, UnreadableReason, parse_action

if TYPE_CHECKING:
    import numpy as np

StateT = TypeVar("StateT", bound=Hashable)

Player = str
"""A player's name: ``"player_0"``, ``"player_1"``, ... The PettingZoo agent names."""

Action = str
"""An action's name, as a player writes it: ``"left"``. Lower case."""


class TSMG(ABC, Generic[StateT]):
    """A text-mediated stochastic game: pure rules, one observation map and one action map per player.

    Attributes:
        players: the players that are controlled from outside, in order. Opponents inside the game are not players.
        actions: the names a player may write, in order; lower case. The first one is the default action that an
            environment executes in place of an unreadable response.
        noop: the action that does nothing, where the game has one.
        palette: colours of the board's characters, ``{character: (red, green, blue)}`` in 0..255, for pictures.
        legend: what the board's characters are, ``{character: "apple"}``, for the key beside a board.
        return_range: the lowest and the highest return that an episode can have, where the rules bound them closely.
            Intervals of mean returns reach towards them, since a rare return may not have been seen yet.
    """

    players: tuple[Player, ...] = ("player_0",)
    actions: tuple[Action, ...] = ()
    noop: Action | None = None
    return_range: tuple[float, float] | None = None
    palette: ClassVar[Mapping[str, tuple[int, int, int]]] = {}
    legend: ClassVar[Mapping[str, str]] = {}

    # ---------------------------------------------------------------- rules

    @abstractmethod
    def initial_state(self, rng: "np.random.Generator") -> StateT:
        """Draw the first state of an episode; everything random about it comes from ``rng``."""

    @abstractmethod
    def transition(
        self, state: StateT, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[StateT, dict[Player, float], bool]:
        """Play one round: ``P`` and ``r`` of the game.

        Args:
            state: the state before the round; it is not changed.
            joint_action: one legal action name for every player that is still playing; others are ignored.
            rng: the source of the transition's randomness.

        Returns:
            The next state; ``{player: reward}`` for every player, 0.0 for one that was out before the round; and
            whether the whole game is over, which it is at the latest when nobody plays any more.

        Raises:
            ValueError: a player that still plays has no action, or one that is not legal in this state.
        """

    def legal_actions(self, state: StateT, player: Player) -> tuple[Action, ...]:
        """``A_i`` in this state: the names that ``player`` may choose from, in order; at least one, none twice."""
        return self.actions

    def is_playing(self, state: StateT, player: Player) -> bool:
        """Whether ``player``'s own episode goes on: ``True`` at first, and ``False`` for good once it is out."""
        return True

    def succeeded(self, state: StateT, player: Player) -> bool:
        """Whether an episode that ends in ``state`` counts as a success of ``player``."""
        return False

    # ---------------------------------------------------------------- text

    @abstractmethod
    def observe(self, state: StateT, player: Player) -> str:
        """The observation map ``phi``: what ``player`` reads in this state. Neither random nor dependent on history."""

    @abstractmethod
    def instructions(self, player: Player) -> str:
        """What the game is and its rules, for the prompt; always the same text, which names every action."""

    def interpret(self, text: str, state: StateT, player: Player) -> Action | None:
        """The action map ``psi``: the action that a response names, or ``None`` for an invalid response.

        Nothing is guessed: see :func:`textgames.action_text.parse_action`. Never raises for a string.
        """
        action = parse_action(text, self.action_names)
        if isinstance(action, Unreadable) or action not in self.legal_actions(state, player):
            return None
        return action

    def why_invalid(self, text: str, state: StateT, player: Player) -> Unreadable:
        """Why :meth:`interpret` returned ``None``: unreadable text and an illegal action are different outcomes."""
        action = parse_action(text, self.action_names)
        return action if isinstance(action, Unreadable) else Unreadable(UnreadableReason.ILLEGAL, action)

    @cached_property
    def action_names(self) -> ActionNames:
        """The lookup table of :attr:`actions` that the parser uses; built once."""
        return ActionNames(self.actions)

    # ---------------------------------------------------------------- for people

    def what_happened(
        self, state: StateT, joint_action: Mapping[Player, Action], next_state: StateT, player: Player
    ) -> str:
        """What a round did to ``player`` and why, as a short phrase for replays: ``"slipped down instead of right"``.

        Optional and pure; players never read it. Several things are joined with ``"; "``, and ``""`` says that
        nothing happened beyond the action itself.

        Args:
            state: the state before the round.
            joint_action: what :meth:`transition` was given.
            next_state: the state that :meth:`transition` returned.
            player: whom to tell of; ``""`` is returned for a player who was out already.
        """
        return ""

    def board(self, state: StateT) -> tuple[str, ...]:
        """The state as rows of characters, top row first, one character a cell, as a spectator sees it.

        Optional: with it a game gets ``render_mode="human"`` in colour and ``"rgb_array"``.
        """
        raise NotImplementedError(f"{type(self).__name__} has no board(state), so it can't be drawn as a picture")

    def describe(self, state: StateT) -> str:
        """The state as text for ``render_mode="ansi"``: the board where there is one, else the first observation."""
        try:
            return "\n".join(" ".join(row) for row in self.board(state))
        except NotImplementedError:
            return self.observe(state, self.players[0])
