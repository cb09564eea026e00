"""The player of small games of hidden information: an equilibrium, and the best answer to random play.

The game is solved once for its settings, at the first move: Kuhn poker takes a tenth of a second, Leduc poker one,
Liar's Dice with one die of six sides ten; larger games are refused.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from agents.baselines.scripted_player import Choice
from agents.baselines.search import SearchPlayer
from agents.turn import TurnRequest
from textgames.environments.rules import game_settings
from textgames.solving.equilibrium import Solution, action_values, best_response, mixed, solve, uniform_policy
from textgames.solving.game_tree import MAX_HISTORIES, GameTree, Policy, expand
from textgames.strategy.liars_dice import LiarsDice
from textgames.tsmg import TSMG

ITERATIONS, TARGET = 1000, 0.0015
"""CFR+: the most iterations, and the exploitability at which it stops; in the units of the game's returns."""
TREMBLE = 1e-3
"""How often an opponent is taken to play at random if values are asked for, so that it may come everywhere."""
MOST_BIDS = 12
"""The most different bids of Liar's Dice with which it is solved: two to this power is the number of biddings."""
MOST_HISTORIES = 20_000
"""The most histories of a game that comes without a player: a second to expand, a few to solve."""


class Solved(NamedTuple):
    """A game with its equilibrium, the same with a tremble, and the best response to random play."""

    tree: GameTree
    solution: Solution
    trembling: Policy
    greedy: Mapping[tuple[str, str], str]


_TREES: dict[Any, GameTree] = {}
_SOLVED: dict[Any, Solved] = {}


def _key(game: TSMG[Any]) -> tuple[Any, ...]:
    """Identify a game by its class and settings, as environments have a game object each; else by the object itself."""
    settings = game.made_with
    if settings is None:
        settings = {name: vars(game).get(name, game) for name in game_settings(type(game))}
    return (type(game), *((name, game if value is game else repr(value)) for name, value in settings.items()))


def tree_of(game: TSMG[Any], max_histories: int = MAX_HISTORIES) -> GameTree:
    """Expand a game, once for each of its settings; raise as :func:`textgames.solving.equilibrium.expand` does."""
    key = _key(game)
    if key not in _TREES:
        _TREES[key] = expand(game, max_histories=max_histories)
    return _TREES[key]


def solved(game: TSMG[Any]) -> Solved:
    """Solve a game, once for each of its settings."""
    key = _key(game)
    if key not in _SOLVED:
        tree = tree_of(game)
        solution, uniform = solve(tree, ITERATIONS, TARGET), uniform_policy(tree)
        greedy = {
            each: action
            for player in tree.players
            for each, action in best_response(tree, uniform, player).actions.items()
        }
        _SOLVED[key] = Solved(tree, solution, mixed(solution.policy, uniform, TREMBLE), greedy)
    return _SOLVED[key]


class EquilibriumPlayer(SearchPlayer):
    """Draws moves from the average strategy of CFR+; ``greedy`` best responds to random play."""

    method = "CFR+"

    def plan(self, request: TurnRequest) -> Choice:
        policy = self.plan_probabilities(request)
        rng = np.random.default_rng(request.seed or list(request.observation.encode()))
        action = str(rng.choice(list(policy), p=np.array(list(policy.values())) / sum(policy.values())))
        return Choice(action, f"In equilibrium one plays {action} here with probability {policy[action]:.2f}.")

    def greedy(self, request: TurnRequest) -> Choice:
        (action,) = self.greedy_probabilities(request)
        return Choice(action, f"Against somebody who plays at random, {action} gains the most on average.")

    def plan_probabilities(self, request: TurnRequest) -> dict[str, float]:
        return dict(self._look_up(solved(self._game).solution.policy, request))

    def greedy_probabilities(self, request: TurnRequest) -> dict[str, float]:
        return {self._look_up(solved(self._game).greedy, request): 1.0}

    def values(self, request: TurnRequest) -> dict[str, float]:
        found = solved(self._game)
        return action_values(found.tree, found.trembling, (request.player, request.observation))

    def _look_up(self, table: Mapping[tuple[str, str], Any], request: TurnRequest) -> Any:
        if (found := table.get((request.player, request.observation))) is not None:
            return found
        shown = request.observation[:80]
        raise ValueError(
            f"{request.player} of {type(self._game).__name__} never has to move at the observation {shown!r}"
        )


def hidden_game_player(game: TSMG[Any]) -> EquilibriumPlayer:
    """Build the player of a game that came without one; raise a ValueError if it is too large, or not zero-sum."""
    if not tree_of(game, MOST_HISTORIES).is_zero_sum:
        raise ValueError(f"{type(game).__name__} isn't a zero-sum game for two players")
    return EquilibriumPlayer(game)


def liars_dice_player(game: LiarsDice) -> EquilibriumPlayer:
    """Build the player of Liar's Dice; raise a ValueError if it has too many bids to be solved."""
    bids = 2 * game.num_dice * game.num_sides
    if bids > MOST_BIDS:
        raise ValueError(
            f"Liar's Dice is solved with at most {MOST_BIDS} different bids, and with num_dice={game.num_dice} and "
            f"num_sides={game.num_sides} there are {bids}"
        )
    return EquilibriumPlayer(game)
