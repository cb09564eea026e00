"""What Kuhn and Leduc poker share: betting in turns, chips, and the texts on how a hand ended."""

from abc import abstractmethod
from collections.abc import Mapping
from itertools import permutations
from typing import ClassVar

from numpy.random import Generator

from textgames.bases import Duel
from textgames.tsmg import Action, JointAction, Player, StateT

Betting = tuple[Action, ...]
"""The actions of a round of betting; ``player_0`` begins and the players act in turn."""


class Poker(Duel[StateT]):
    """A hand of poker for two. Returns are chips won or lost.

    Attributes:
        deck: the cards' names; a card is its index.
        rules: the instructions, with ``{me}`` and ``{other}``.
    """

    success_means = "won the hand, by the cards or because the other folded"
    hidden_information = True
    pays_late = False
    deck: ClassVar[tuple[str, ...]]
    rules: ClassVar[str]

    @abstractmethod
    def dealt(self, cards: tuple[int, int]) -> StateT:
        """Return the state after a deal."""

    @abstractmethod
    def cards(self, state: StateT) -> tuple[int, int]:
        """Return the cards of both players."""

    @abstractmethod
    def betting(self, state: StateT) -> Betting:
        """Return the betting of the round that is being played."""

    @abstractmethod
    def chips(self, state: StateT) -> tuple[int, int]:
        """Return what each player has put into the pot."""

    @abstractmethod
    def showdown(self, state: StateT) -> int | None:
        """Return the number of the player with the better hand; ``None`` if the pot is shared."""

    def _deals(self) -> list[tuple[int, int]]:
        return list(permutations(range(len(self.deck)), 2))

    def initial_state(self, rng: Generator) -> StateT:
        deals = self._deals()
        return self.dealt(deals[int(rng.integers(len(deals)))])

    def initial_outcomes(self) -> list[tuple[float, StateT]]:
        deals = self._deals()
        return [(1 / len(deals), self.dealt(cards)) for cards in deals]

    def mover(self, state: StateT) -> int:
        return len(self.betting(state)) % 2

    def winner(self, state: StateT) -> int | None:
        """Return the number of the player who has won a hand that is over; ``None`` if the pot is shared."""
        betting = self.betting(state)
        return len(betting) % 2 if betting[-1] == "fold" else self.showdown(state)  # who folds isn't next

    def result(self, state: StateT) -> float | None:
        if self.moves(state):
            return None
        won = self.winner(state)
        return 0.0 if won is None else (1.0 - 2 * won) * self.chips(state)[1 - won]

    def is_playing(self, state: StateT, player: Player) -> bool:
        return bool(self.moves(state))

    def instructions(self, player: Player) -> str:
        return self.rules.format(me=player, other=self.players[1 - self.players.index(player)])

    def bets_told(self, betting: Betting, words: Mapping[Action, str]) -> str:
        return ", ".join(f"{self.players[number % 2]} {words[action]}" for number, action in enumerate(betting))

    def turn_told(self, state: StateT, me: int, choices: str) -> str:
        paid, other, betting = self.chips(state), self.players[1 - me], self.betting(state)
        pot = f"The pot holds {sum(paid)} chips: {paid[me]} of yours and {paid[1 - me]} of {other}."
        if self.moves(state):
            return f"{pot}\n" + (
                f"It is your turn: {choices}." if len(betting) % 2 == me else f"It is the turn of {other}."
            )
        won = self.winner(state)
        result = "You share the pot." if won is None else f"You {'win' if won == me else 'lose'} {self._gain(state)}."
        if betting[-1] == "fold":
            return f"{pot}\n{'You' if won != me else other} folded. {result}"
        return f"{pot}\nThe cards are shown: {other} has the {self.deck[self.cards(state)[1 - me]]}. {result}"

    def _gain(self, state: StateT) -> str:
        gain = min(self.chips(state))
        return f"{gain} chip{'s' * (gain > 1)}"

    def what_happened(self, state: StateT, joint_action: JointAction, next_state: StateT, player: Player) -> str:
        if self.moves(next_state):
            return ""
        me, won = self.players.index(player), self.winner(next_state)
        against = self.deck[self.cards(next_state)[1 - me]]
        if won is None:
            return f"shared the pot, against the {against}"
        result = f"{'won' if won == me else 'lost'} {self._gain(next_state)}"
        if self.betting(next_state)[-1] == "fold":
            return f"{result}{', as the other player folded' if won == me else ' by folding'}"
        return f"{result} against the {against}"

    def hands_drawn(self, state: StateT) -> list[str]:
        width = max(map(len, self.deck))
        drawn = zip(self.players, self.cards(state), self.chips(state), strict=True)
        return [f"{player}  [{self.deck[card]:^{width}}]  {'o' * stack}" for player, card, stack in drawn]
