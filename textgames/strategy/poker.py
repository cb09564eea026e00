"""Poker for two with an open card between rounds of betting: rules, chips and texts of Kuhn and Leduc poker."""

from abc import abstractmethod
from collections.abc import Mapping
from functools import cache
from itertools import permutations
from typing import ClassVar, NamedTuple

from textgames.bases import Duel, ListedStarts
from textgames.tsmg import Action, JointAction, Player

Betting = tuple[Action, ...]
"""The actions of a round of betting; ``player_0`` begins and the players act in turn."""

ANTE = 1
"""Chips that each player puts in before the deal."""


class Hand(NamedTuple):
    """The state of a hand; cards are indices of the deck."""

    cards: tuple[int, int]  # of both players
    rounds: tuple[Betting, ...] = ((),)  # the last one is being played
    table: int | None = None  # the table card; ``None`` in the first round


def deals(cards: int) -> tuple[Hand, ...]:
    """List the hands that may be dealt from so many cards."""
    return tuple(map(Hand, permutations(range(cards), 2)))


@cache
def legal_after(betting: Betting, most_bets: int) -> tuple[Action, ...]:
    """List what may be done after these actions of a round; nothing once the round is over."""
    if not betting or betting == ("check",):
        return "check", "bet"
    if betting[-1] in ("fold", "call", "check"):
        return ()
    bets = sum(action in ("bet", "raise") for action in betting)
    return ("fold", "call", "raise") if bets < most_bets else ("fold", "call")


@cache
def chips(rounds: tuple[Betting, ...], bets: tuple[int, ...]) -> tuple[int, int]:
    """Return what each player has put into the pot."""
    paid = [ANTE, ANTE]
    for betting, size in zip(rounds, bets, strict=False):
        for number, action in enumerate(betting):
            if action in ("bet", "raise", "call"):  # what was open is met, and a bet or raise adds its own
                paid[number % 2] = max(paid) + size * (action != "call")
    return paid[0], paid[1]


class Poker(Duel[Hand], ListedStarts[Hand]):
    """A hand of poker for two. Returns are chips won or lost.

    Attributes:
        deck: the cards' names.
        bets: what a bet or a raise adds in each round, in chips; a table card is turned up between two rounds.
        most_bets: bets and raises of a round, together.
        words: of each round, what an action is called when it is told.
        rules: the instructions, with ``{me}`` and ``{other}``.
    """

    success_means = "won the hand, by the cards or because the other folded"
    hidden_information = True
    pays_late = False
    deck: ClassVar[tuple[str, ...]]
    bets: ClassVar[tuple[int, ...]]
    most_bets: ClassVar[int] = 1
    words: ClassVar[tuple[Mapping[Action, str], ...]]
    rules: ClassVar[str]

    def strength(self, state: Hand, card: int) -> tuple[bool, int]:
        """Return what a player's card is worth when it is shown; the larger one wins."""
        return False, card

    @abstractmethod
    def table_told(self, state: Hand, me: int) -> str:
        """Return the lines of an observation on the betting, and on the table card if there is one."""

    def mover(self, state: Hand) -> int:
        return len(state.rounds[-1]) % 2

    def moves(self, state: Hand) -> tuple[Action, ...]:
        return legal_after(state.rounds[-1], self.most_bets)

    def play(self, state: Hand, action: Action) -> list[Hand]:
        """Return several states when a table card is turned up, which ends a round."""
        *before, betting = state.rounds
        after = Hand(state.cards, (*before, (*betting, action)), state.table)
        if self.moves(after) or action == "fold" or len(after.rounds) == len(self.bets):
            return [after]
        cards = [card for card in range(len(self.deck)) if card not in state.cards]
        return [Hand(state.cards, (*after.rounds, ()), card) for card in cards]

    def winner(self, state: Hand) -> int | None:
        """Return the number of the player who has won a hand that is over; ``None`` if the pot is shared."""
        if state.rounds[-1][-1] == "fold":
            return self.mover(state)  # the player who folds isn't next
        first, second = [self.strength(state, card) for card in state.cards]
        return None if first == second else int(second > first)

    def result(self, state: Hand) -> float | None:
        if self.moves(state):
            return None
        won = self.winner(state)
        return 0.0 if won is None else (1.0 - 2 * won) * chips(state.rounds, self.bets)[1 - won]

    def is_playing(self, state: Hand, player: Player) -> bool:
        return bool(self.moves(state))

    def instructions(self, player: Player) -> str:
        return self.rules.format(me=player, other=self.players[1 - self.players.index(player)])

    def bets_told(self, state: Hand, number: int) -> str:
        """Return a round's betting in words, such as ``"player_0 checked, player_1 bet 2"``."""
        betting = state.rounds[number] if number < len(state.rounds) else ()
        return ", ".join(f"{self.players[i % 2]} {self.words[number][action]}" for i, action in enumerate(betting))

    def observe(self, state: Hand, player: Player) -> str:
        return _observation(self, state, self.players.index(player))

    def what_happened(self, state: Hand, joint_action: JointAction, next_state: Hand, player: Player) -> str:
        if next_state.table != state.table and next_state.table is not None:
            return f"the {self.deck[next_state.table]} is turned up"
        if self.moves(next_state):
            return ""
        me, won = self.players.index(player), self.winner(next_state)
        against = self.deck[next_state.cards[1 - me]]
        if won is None:
            return f"shared the pot, against the {against}"
        result = f"{'won' if won == me else 'lost'} {self._gain(next_state)}"
        if next_state.rounds[-1][-1] == "fold":
            return f"{result}{', as the other player folded' if won == me else ' by folding'}"
        return f"{result} against the {against}"

    def _gain(self, state: Hand) -> str:
        gain = min(chips(state.rounds, self.bets))
        return f"{gain} chip{'s' * (gain > 1)}"

    def describe(self, state: Hand) -> str:
        width = max(map(len, self.deck))
        drawn = zip(self.players, state.cards, chips(state.rounds, self.bets), strict=True)
        lines = [f"{player}  [{self.deck[card]:^{width}}]  {'o' * stack}" for player, card, stack in drawn]
        if len(self.bets) > 1:
            lines.append(f"table     [{'' if state.table is None else self.deck[state.table]:^{width}}]")
        told = [(number, self.bets_told(state, number)) for number in range(len(self.bets))]
        return "\n".join([*lines, *(f"round {number + 1}: {bets}" for number, bets in told if bets)])


@cache  # a game's hands are some thousands
def _observation(game: Poker, state: Hand, me: int) -> str:
    paid, other, betting = chips(state.rounds, game.bets), game.players[1 - me], state.rounds[-1]
    pot = f"The pot holds {sum(paid)} chips: {paid[me]} of yours and {paid[1 - me]} of {other}."
    text = f"You are {game.players[me]} and act {('first', 'second')[me]}{game.table_told(state, me)}\n{pot}\n"
    if choices := game.moves(state):
        if len(betting) % 2 != me:
            return f"{text}It is the turn of {other}."
        return f"{text}It is your turn: {', '.join(choices[:-1])} or {choices[-1]}."
    won = game.winner(state)
    result = "You share the pot." if won is None else f"You {'win' if won == me else 'lose'} {game._gain(state)}."
    if betting[-1] == "fold":
        return f"{text}{'You' if won != me else other} folded. {result}"
    return f"{text}The cards are shown: {other} has the {game.deck[state.cards[1 - me]]}. {result}"
