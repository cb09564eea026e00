"""Kuhn poker: three cards, one bet, and everything that bluffing is about.

The rules are those of H. W. Kuhn, "A simplified two-person poker" (1950). In equilibrium the first player loses 1/18 of
a chip a hand; :mod:`textgames.solving.equilibrium` computes it, and what any policy can lose.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import permutations
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from textgames.tsmg import TSMG, Action, Outcome, Player

if TYPE_CHECKING:
    import numpy as np

CARDS = ("jack", "queen", "king")
"""The deck, from the lowest card to the highest."""

DEALS = tuple(permutations(range(len(CARDS)), 2))
"""Every deal of two cards; all are equally likely."""

ANTE = BET = 1
"""Chips that each player puts in before the deal, and that a bet adds."""

OPENING, FACING_A_BET = ("check", "bet"), ("fold", "call")

History = tuple[Action, ...]

LEGAL_ACTIONS: Mapping[History, tuple[Action, ...]] = MappingProxyType(
    {(): OPENING, ("check",): OPENING, ("bet",): FACING_A_BET, ("check", "bet"): FACING_A_BET}
)
"""What may be done after each betting that goes on; after any other one the hand is over."""


class KuhnState(NamedTuple):
    """The state of one hand.

    Attributes:
        cards: of both players, as indices of :data:`CARDS`.
        history: the actions so far; the players act in turn.
    """

    cards: tuple[int, int]
    history: History = ()


# ---------------------------------------------------------------- rules


def chips(history: History) -> tuple[int, int]:
    """What each player has put into the pot."""
    paid = [ANTE, ANTE]
    for number, action in enumerate(history):
        if action in ("bet", "call"):
            paid[number % 2] += BET
    return paid[0], paid[1]


def winner(state: KuhnState) -> int:
    """The place of the player who has won a hand that is over."""
    if state.history[-1] == "fold":
        return len(state.history) % 2  # who would be next: not the one who folded
    return 0 if state.cards[0] > state.cards[1] else 1


@cache  # 6 deals and 9 histories
def play(state: KuhnState, action: Action) -> tuple[KuhnState, tuple[float, float], bool]:
    """The state after a legal action, what it pays both players in chips, and whether the hand is over."""
    after = KuhnState(state.cards, (*state.history, action))
    if after.history in LEGAL_ACTIONS:
        return after, (0.0, 0.0), False
    won = winner(after)
    gain = float(chips(after.history)[1 - won])
    return after, (gain, -gain) if won == 0 else (-gain, gain), True


# ---------------------------------------------------------------- text

_RULES = """\
Kuhn poker, a card game for two players. You are {me}; the other player is {other}.
The deck has three cards: the jack is the lowest, then the queen, and the king is the highest. Each player puts \
1 chip into the pot and is dealt one card, which the other one doesn't see. The third card stays hidden.
player_0 acts first. As long as nobody has bet, the player whose turn it is may check (put in nothing) or bet \
(put in 1 more chip). After a bet, the other player may fold (give up the pot) or call (put in 1 chip as well). \
After two checks or a call both cards are shown, and the higher one wins the pot.
You are paid the chips that you win, and you lose the chips that you put in. In a game that is played often, a \
player who never bluffs and one who always does can both be beaten.
Actions: check, bet, fold, call."""

_TOLD = {"check": "checked", "bet": "bet 1 chip", "fold": "folded", "call": "called with 1 chip"}


def betting_text(history: Sequence[Action], players: Sequence[Player]) -> str:
    """The betting in words, such as ``"player_0 checked, player_1 bet 1 chip"``."""
    return ", ".join(f"{players[number % 2]} {_TOLD[action]}" for number, action in enumerate(history))


@cache  # 6 deals, 9 histories and 2 players
def observation(state: KuhnState, me: int, players: tuple[Player, Player]) -> str:
    """What the player at a place reads: its own card and everything that was done in public."""
    paid, other = chips(state.history), players[1 - me]
    lines = [
        f"You are {players[me]} and act {('first', 'second')[me]}. Your card is the {CARDS[state.cards[me]]}.",
        f"Betting so far: {betting_text(state.history, players) or 'none'}.",
        f"The pot holds {sum(paid)} chips: {paid[me]} of yours and {paid[1 - me]} of {other}.",
    ]
    legal = LEGAL_ACTIONS.get(state.history)
    if legal is None:
        lines.append(_ending(state, me, players))
    elif len(state.history) % 2 == me:
        lines.append(f"It is your turn: {' or '.join(legal)}.")
    else:
        lines.append(f"It is the turn of {other}.")
    return "\n".join(lines)


def _ending(state: KuhnState, me: int, players: Sequence[Player]) -> str:
    won, other = winner(state), players[1 - me]
    gain = chips(state.history)[1 - won]
    result = f"{'You win' if won == me else 'You lose'} {gain} chip{'s' * (gain > 1)}."
    if state.history[-1] == "fold":
        return f"{'You' if won != me else other} folded. {result}"
    return f"The cards are shown: {other} has the {CARDS[state.cards[1 - me]]}. {result}"


# ---------------------------------------------------------------- the game


class KuhnPoker(TSMG[KuhnState]):
    """Kuhn poker for two: ``player_0`` acts first. Returns are chips won or lost, from -2 to 2."""

    success_means = "won the hand, by the cards or because the other folded"
    players = ("player_0", "player_1")
    actions = (*OPENING, *FACING_A_BET)
    hidden_information = True
    pays_late = False
    return_range = (-2.0, 2.0)
    zero_sum = True

    def initial_state(self, rng: "np.random.Generator") -> KuhnState:
        return KuhnState(DEALS[int(rng.integers(len(DEALS)))])

    def initial_outcomes(self) -> Sequence[tuple[float, KuhnState]]:
        return [(1 / len(DEALS), KuhnState(cards)) for cards in DEALS]

    def to_move(self, state: KuhnState) -> tuple[Player, ...]:
        return (self.players[len(state.history) % 2],) if state.history in LEGAL_ACTIONS else ()

    def legal_actions(self, state: KuhnState, player: Player) -> tuple[Action, ...]:
        return LEGAL_ACTIONS.get(state.history, ())

    def transition(
        self, state: KuhnState, joint_action: Mapping[Player, Action], rng: "np.random.Generator"
    ) -> tuple[KuhnState, dict[Player, float], bool]:
        return self._play(state, joint_action)

    def outcomes(self, state: KuhnState, joint_action: Mapping[Player, Action]) -> Sequence[Outcome[KuhnState]]:
        return [(1.0, *self._play(state, joint_action))]

    def _play(
        self, state: KuhnState, joint_action: Mapping[Player, Action]
    ) -> tuple[KuhnState, dict[Player, float], bool]:
        player = self.players[len(state.history) % 2]
        action, legal = joint_action.get(player), LEGAL_ACTIONS.get(state.history, ())
        if action not in legal:
            raise ValueError(f"{player} may {' or '.join(legal) or 'do nothing: the hand is over'}, got {action!r}")
        after, (first, second), over = play(state, action)
        return after, {"player_0": first, "player_1": second}, over

    def succeeded(self, state: KuhnState, player: Player) -> bool:
        return state.history not in LEGAL_ACTIONS and winner(state) == self.players.index(player)

    def observe(self, state: KuhnState, player: Player) -> str:
        return observation(state, self.players.index(player), self.players)

    def instructions(self, player: Player) -> str:
        return _RULES.format(me=player, other=self.players[1 - self.players.index(player)])

    def what_happened(
        self, state: KuhnState, joint_action: Mapping[Player, Action], next_state: KuhnState, player: Player
    ) -> str:
        if next_state.history in LEGAL_ACTIONS:
            return ""
        me, won = self.players.index(player), winner(next_state)
        gain = chips(next_state.history)[1 - won]
        result = f"{'won' if won == me else 'lost'} {gain} chip{'s' * (gain > 1)}"
        if next_state.history[-1] == "fold":
            return f"{result}{', as the other player folded' if won == me else ' by folding'}"
        return f"{result} against the {CARDS[next_state.cards[1 - me]]}"

    def describe(self, state: KuhnState) -> str:
        paid = chips(state.history)
        lines = [
            f"{player}  [{CARDS[card]:^7}]  {'o' * stack}"
            for player, card, stack in zip(self.players, state.cards, paid, strict=True)
        ]
        return "\n".join([*lines, betting_text(state.history, self.players) or "nobody has acted yet"])
