"""Repeated matrix games of two players, or of one player and a program of a few states."""

import re
from collections import Counter
from functools import cached_property
from itertools import product
from typing import ClassVar, NamedTuple

from numpy.random import Generator

from textgames.bases import BoardGame, ListedStarts, Marks, ReadsBack
from textgames.rounds import at_most
from textgames.settings import check_one_of, check_whole
from textgames.social.matrix_game.opponents import GAMES, BestResponse, Memory, Opponent, Payoffs, make_opponent
from textgames.solving.fixed_policies import chances_of
from textgames.solving.regret import regrets_of_counts
from textgames.tsmg import Action, JointAction, Outcome, Player, Rewards, Transition
from textgames.yardsticks import FixedPolicy, Yardstick


class MatrixState(NamedTuple):
    """What has been played."""

    # ``(action of the first seat, action of the second)`` of every round, as indices
    history: tuple[tuple[int, int], ...] = ()
    memory: Memory = None  # what the opponent inside remembers; ``None`` in a game of two players


_ROUND = re.compile(r"^Round \d+: you played ([a-z]+), the other ([a-z]+); ", re.MULTILINE)


def _drawn(chances: tuple[float, ...], number: float) -> int:
    """Return the action that a uniform number of [0, 1) stands for."""
    possible = [action for action, chance in enumerate(chances) if chance > 0]
    for action in possible[:-1]:
        number -= chances[action]
        if number < 0:
            return action
    return possible[-1]  # whatever the rounding of the sum


class MatrixGame(BoardGame[MatrixState], ReadsBack[MatrixState], ListedStarts[MatrixState]):
    """Two players choose at the same time in every round, are paid by a table, and see what the other chose.

    Args:
        matrix: the payoffs: ``"prisoners-dilemma"``, ``"stag-hunt"``, ``"chicken"``, ``"battle-of-the-sexes"``,
            ``"rock-paper-scissors"``, ``"matching-pennies"`` or ``"shapley"``.
        rounds: after which the game is over, up to 1000, against a program up to 100; players are told.
        opponent: ``None`` for two players; or a program in the second seat: ``"tit-for-tat"``, ``"grim"`` (in games of
            two actions), ``"uniform"``, ``"hedge"`` or ``"always-ACTION"``.
        tell_opponent: whether the instructions say by which rule the program plays. Without it the exact optimum is
            still that of a player who knows.
    """

    marks: ClassVar[Marks] = {
        ".": ("still to come", (238, 238, 238)),
        "C": ("cooperate", (0, 158, 115)),
        "D": ("defect or dare", (213, 94, 0)),
        "S": ("stag, swerve or scissors", (0, 158, 115)),
        "H": ("hare or heads", (230, 159, 0)),
        "O": ("opera", (204, 121, 167)),
        "F": ("football", (0, 114, 178)),
        "R": ("rock", (0, 114, 178)),
        "P": ("paper", (230, 159, 0)),
        "T": ("tails", (86, 180, 233)),
    }

    def __init__(
        self,
        *,
        matrix: str = "prisoners-dilemma",
        rounds: int = 10,
        opponent: str | None = None,
        tell_opponent: bool = True,
    ) -> None:
        check_one_of("matrix", matrix, GAMES)
        # the best response to a program is computed for every memory and number of rounds
        check_whole("rounds", rounds, 1, 1000 if opponent is None else 100)
        self.payoffs: Payoffs = GAMES[matrix]
        self.rounds = self.longest_episode = int(rounds)
        self.opponent: Opponent | None = None
        self.best_response: BestResponse | None = None
        if opponent is not None:
            self.opponent = make_opponent(opponent, self.payoffs, self.rounds)
            self.best_response = BestResponse(self.payoffs, self.opponent)
        self.actions = self.payoffs.actions
        self.players = ("player_0",) if self.opponent is not None else ("player_0", "player_1")
        spans = [self.payoffs.span(seat) for seat in range(len(self.players))]
        self.worst_round = min(low for low, _ in spans)
        self.zero_sum = len(self.players) == 2 and self.payoffs.is_zero_sum
        self.return_range = (self.rounds * min(low for low, _ in spans), self.rounds * max(high for _, high in spans))
        self.tells_opponent = bool(tell_opponent)
        self._index = {name: index for index, name in enumerate(self.actions)}
        self._seat_of = {player: seat for seat, player in enumerate(self.players)}
        self._own_second = tuple(zip(*self.payoffs.second, strict=True))  # the second player's, its own action first
        # by the seat, of what it read last: the history, its lines, and what both players have got
        self._read: list[tuple[tuple[tuple[int, int], ...], str, float, float]] = [((), "", 0.0, 0.0)] * 2
        self.starts = (MatrixState((), None if self.opponent is None else self.opponent.start),)

    def transition(self, state: MatrixState, joint_action: JointAction, rng: Generator) -> Transition[MatrixState]:
        """Play one round; an opponent inside takes one uniform number of ``rng``."""
        chosen = self._chosen(joint_action)
        if len(state.history) == self.rounds:
            return state, dict.fromkeys(self.players, 0.0), True
        if self.opponent is None:
            return self._played(state, chosen[0], chosen[1])
        return self._played(state, chosen[0], _drawn(self.opponent.chances(state.memory), rng.random()))

    def forfeit(self, state: MatrixState, player: Player, rounds_left: float) -> Rewards:
        return super().forfeit(state, player, min(rounds_left, self.rounds - len(state.history)))

    def to_move(self, state: MatrixState) -> tuple[Player, ...]:
        return self.players

    def outcomes(self, state: MatrixState, joint_action: JointAction) -> list[Outcome[MatrixState]]:
        chosen = self._chosen(joint_action)
        if len(state.history) == self.rounds:
            return [(1.0, state, dict.fromkeys(self.players, 0.0), True)]
        if self.opponent is None:
            return [(1.0, *self._played(state, chosen[0], chosen[1]))]
        chances = self.opponent.chances(state.memory)
        return [(chance, *self._played(state, chosen[0], other)) for other, chance in enumerate(chances) if chance]

    def _played(self, state: MatrixState, first: int, second: int) -> Transition[MatrixState]:
        history = (*state.history, (first, second))
        over, paid = len(history) == self.rounds, self.payoffs.first[first][second]
        if self.opponent is not None:
            memory = self.opponent.remember(state.memory, first)
            return MatrixState(history, memory), {"player_0": paid}, over
        return MatrixState(history), {"player_0": paid, "player_1": self.payoffs.second[first][second]}, over

    def _chosen(self, joint_action: JointAction) -> list[int]:
        try:
            return [self._index[joint_action[player]] for player in self.players]
        except KeyError:
            raise ValueError(
                f"joint_action must give {' and '.join(self.players)} one of {', '.join(self.actions)}, "
                f"got {dict(joint_action)!r}"
            ) from None

    def metrics(self, state: MatrixState, player: Player) -> dict[str, float]:
        """Return what tells how a player did, over the rounds played.

        ``external_regret`` (also by round, ``average_regret``) and ``swap_regret`` hold the other's play fixed.
        ``welfare`` is the sum of both players' payoffs, and ``welfare_share`` its share of the most there is, if that
        is above 0. In a game of two, ``cce_distance`` is how far the play is from a coarse correlated equilibrium: the
        larger of both players' average regrets, or 0. Against a program, ``policy_regret`` is what was lost in
        expectation against the best response.
        """
        first, second, counts = self.payoffs.first, self.payoffs.second, Counter(state.history)
        mirrored = {(b, a): times for (a, b), times in counts.items()}
        of_both = regrets_of_counts(first, counts), regrets_of_counts(self._own_second, mirrored)
        welfare = sum([(first[a][b] + second[a][b]) * times for (a, b), times in counts.items()])
        rounds, (external, swap) = max(len(state.history), 1), of_both[self._seat_of[player]]
        told = {"external_regret": external, "average_regret": external / rounds}
        told |= {"swap_regret": swap, "welfare": welfare}
        if self.payoffs.most_welfare > 0:
            told["welfare_share"] = welfare / (rounds * self.payoffs.most_welfare)
        if self.best_response is None:
            told["cce_distance"] = max(0.0, *[regret for regret, _ in of_both]) / rounds
        else:
            told["policy_regret"] = self.best_response.regret([mine for mine, _ in state.history], self.rounds)
        return told

    def observe(self, state: MatrixState, player: Player) -> str:
        history, seat = state.history, self._seat_of[player]
        if not history:
            return f"Now choose for round 1 of {self.rounds}."
        known, lines, mine, others = self._read[seat]
        if history[: len(known)] != known:
            known, lines, mine, others = (), "", 0.0, 0.0
        for number, pair in enumerate(history[len(known) :], len(known) + 1):
            text, gain, other_gain = self._seen[seat][pair]
            lines, mine, others = f"{lines}Round {number}: {text}\n", mine + gain, others + other_gain
        self._read[seat] = history, lines, mine, others
        played = len(history)
        now = f"All {played} rounds are over."
        if played < self.rounds:
            now = f"Now choose for round {played + 1} of {self.rounds}."
        return f"{lines}You have {mine:g} in all, the other {others:g}.\n{now}"

    @cached_property
    def _seen(self) -> list[dict[tuple[int, int], tuple[str, float, float]]]:
        """For every seat: what a round reads like, what it paid to the seat and what to the other."""
        seats = []
        for seat in (0, 1):
            seen = {}
            for first, second in product(range(len(self.actions)), repeat=2):
                mine, other = (first, second) if seat == 0 else (second, first)
                gain, others = self.payoffs.of(seat, mine, other), self.payoffs.of(1 - seat, other, mine)
                played = f"you played {self.actions[mine]}, the other {self.actions[other]}"
                seen[first, second] = f"{played}; you got {gain:g}, the other {others:g}", gain, others
            seats.append(seen)
        return seats

    def shown(self, observation: str, player: Player) -> MatrixState:
        seat, (state,) = self.players.index(player), self.starts
        for mine, other in _ROUND.findall(observation)[: self.rounds]:
            pair = self._index[mine], self._index[other]
            state, _, _ = self._played(state, *(pair if seat == 0 else pair[::-1]))
        return state

    def instructions(self, player: Player) -> str:
        seat, names = self.players.index(player), self.actions
        table = [
            f"- {mine} against {other}: you get {self.payoffs.of(seat, a, b):g}, "
            f"the other gets {self.payoffs.of(1 - seat, b, a):g}"
            for a, mine in enumerate(names)
            for b, other in enumerate(names)
        ]
        told = [
            f"You play a game of {self.rounds} rounds with another player. In every round both of you choose at the "
            "same time, and then see what the other has chosen.",
            f"Actions of both players: {', '.join(names)}.",
            "Payoffs of a round, your action first:",
            *table,
        ]
        if self.opponent is not None:
            rule = f" It {self.opponent.rule}." if self.tells_opponent else ""
            told.append(f"The other player is a program.{rule}")
        told.append(f"Your goal is the largest total payoff for yourself over all {self.rounds} rounds.")
        return "\n".join(told)

    def what_happened(
        self, state: MatrixState, joint_action: JointAction, next_state: MatrixState, player: Player
    ) -> str:
        if len(state.history) == self.rounds:
            return ""
        a, b = next_state.history[-1]
        first, second = self.payoffs.first[a][b], self.payoffs.second[a][b]
        other, mine, theirs = (b, first, second) if player == "player_0" else (a, second, first)
        return f"the other played {self.actions[other]}; {mine:+g}, the other {theirs:+g}"

    def board(self, state: MatrixState) -> tuple[str, ...]:
        marks = [name[0].upper() for name in self.actions]
        to_come = "." * (self.rounds - len(state.history))
        return tuple("".join(marks[pair[seat]] for pair in state.history) + to_come for seat in (0, 1))

    def seen_by(self, state: MatrixState, player: Player) -> None:
        return None  # the board doesn't show which row is whose


class BestResponseYardstick(Yardstick):
    """The values of play against the opponent inside; a ValueError in a game of two players."""

    method = "best response"

    def __init__(self, game: MatrixGame) -> None:
        if game.best_response is None:
            raise ValueError("there is no best response in a game of two players without knowing the other one")
        self._game, self._values = game, game.best_response
        self.kind = "optimal" if game.tells_opponent else "clairvoyant"  # else a model isn't told what is played here

    def values(self, state: MatrixState, steps_left: int | None, player: Player) -> dict[Action, float]:
        left = at_most(self._game.rounds - len(state.history), steps_left)
        values = self._values.action_values(state.memory, left) if left else [0.0] * len(self._game.actions)
        return dict(zip(self._game.actions, values, strict=True))

    def blind_value(self, state: MatrixState, steps_left: int | None, player: Player, policy: FixedPolicy) -> float:
        left = at_most(self._game.rounds - len(state.history), steps_left)
        return self._values.value(state.memory, left, tuple(chances_of(policy, self._game.actions)))
