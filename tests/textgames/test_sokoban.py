"""Sokoban: rules on boards worked out by hand, starts and values against searches over the rules."""

import numpy as np
import pytest

from tests.textgames.test_every_scenario import searched
from textgames.planning.sokoban import Sokoban, SokobanYardstick
from textgames.planning.sokoban_levels import ACTIONS, Level, SokobanState, level_table, moves_to_solve

RNG = np.random.default_rng(0)
ONE, TWO = Sokoban(), Sokoban(boxes=2, shortest=8, longest=20, max_moves=30)


def board(*rows: str) -> SokobanState:
    """A state from its drawing, as :meth:`Sokoban.board` draws it."""
    marks = "".join(rows)
    level = Level(len(rows[0]), marks.translate(str.maketrans("PpBX", "_T_T")))
    boxes = tuple(cell for cell, mark in enumerate(marks) if mark in "BX")
    (player,) = (cell for cell, mark in enumerate(marks) if mark in "Pp")
    return SokobanState(level, player, boxes, 0, 1)


def play(game: Sokoban, state: SokobanState, *actions: str) -> tuple[SokobanState, list[float], bool]:
    paid, over = [], False
    for action in actions:
        state, rewards, over = game.transition(state, {"player_0": action}, RNG)
        paid.append(rewards["player_0"])
    return state, paid, over


def test_pushes_walks_and_what_blocks_them():
    state = board("######", "#____#", "#PBB_#", "#_T__#", "#T___#", "######")
    after, paid, _ = play(TWO, state, "right")  # the second box blocks the first
    assert (after.player, after.boxes) == (state.player, state.boxes)
    assert paid == [-0.1]
    after, paid, over = play(TWO, state, "up", "right", "down")  # onto the target from above
    assert TWO.board(after) == ("######", "#____#", "#_PB_#", "#_X__#", "#T___#", "######")
    assert (paid, over) == ([-0.1, -0.1, pytest.approx(0.9)], False)
    after, paid, _ = play(TWO, after, "down")  # and off it
    assert TWO.board(after) == ("######", "#____#", "#__B_#", "#_p__#", "#TB__#", "######")
    assert paid == [pytest.approx(-1.1)]
    after, paid, _ = play(TWO, after, "down")  # a box at the wall stays
    assert (after.boxes, paid) == ((15, 26), [-0.1])
    assert TWO.board(after)[3] == "#_p__#"


def test_solving_ends_the_game_and_pays():
    state = board("######", "#PBT_#", "#____#", "#____#", "#____#", "######")
    after, paid, over = play(ONE, state, "right")
    assert (paid, over) == ([pytest.approx(10.9)], True)
    assert ONE.succeeded(after, "player_0")
    assert ONE.what_happened(state, {"player_0": "right"}, after, "player_0") == "pushed a box onto a target; solved"
    assert play(ONE, after, "left") == (after, [0.0], True)


def test_the_last_move_ends_the_game_unsolved():
    state = board("######", "#P_BT#", "#____#", "#____#", "#____#", "######")
    after, paid, over = play(ONE, state, *["up"] * 15)
    assert over
    assert sum(paid) == pytest.approx(ONE.return_range[0])
    assert not ONE.succeeded(after, "player_0")


def test_a_box_in_a_corner_is_dead():
    state = board("######", "#__BP#", "#____#", "#__T_#", "#____#", "######")
    after, _, _ = play(ONE, state, "left", "left")
    assert ONE.board(after)[1] == "#BP__#"
    assert ONE.metrics(after, "player_0") == {"dead": 1.0}
    assert moves_to_solve(after) is None
    # a box at the wall can't reach the target either, before it is in the corner
    assert ONE.metrics(state, "player_0") == {"dead": 1.0}
    assert SokobanYardstick(ONE).value(after, None, "player_0") == pytest.approx(-0.1 * 13)
    state = board("######", "#____#", "#__BP#", "#__T_#", "#____#", "######")
    after, _, _ = play(ONE, state, "left", "left")
    told = ONE.what_happened(state, {"player_0": "left"}, after, "player_0")
    assert told == "pushed a box; from here there is no solution any more"


def search(game: Sokoban, start: SokobanState) -> int | None:
    """The fewest moves to a solution, by breadth-first search over the game's own transitions."""
    layer, seen, moves = {(start.player, start.boxes)}, set(), 0
    while layer:
        seen |= layer
        moves, around = moves + 1, set()
        for player, boxes in layer:
            state = start._replace(player=player, boxes=boxes, moves=0)
            for action in ACTIONS:
                after, _, _ = game.transition(state, {"player_0": action}, RNG)
                if game.succeeded(after, "player_0"):
                    return moves
                around.add((after.player, after.boxes))
        layer = around - seen
    return None


@pytest.mark.parametrize("game", [ONE, TWO])
def test_starts_can_be_solved_in_the_moves_that_are_told(game):
    rng, lengths = np.random.default_rng(1), set()
    for index in range(60):
        state = game.initial_state(rng)
        assert game.shortest <= state.shortest <= game.longest
        assert "X" not in "".join(game.board(state))
        assert len(state.boxes) == len(set(state.boxes)) == game.boxes
        assert state.player not in state.boxes
        lengths.add(state.shortest)
        if index < 8:
            assert search(game, state) == state.shortest
        assert game.metrics(state, "player_0") == {"dead": 0.0, "moves_over_optimum": 0.0}
    assert len(lengths) >= 6


@pytest.mark.parametrize("game", [ONE, TWO])
def test_the_table_is_the_transitions(game):
    rng, dead = np.random.default_rng(2), 0
    for _ in range(12):
        state = game.initial_state(rng)
        table = level_table(state.level, game.boxes)
        for _ in range(40):
            action, position = int(rng.integers(4)), table.position(state.player, state.boxes)
            assert table.placing(position) == (state.player, state.boxes)
            state = state._replace(moves=0)
            after, rewards, over = game.transition(state, {"player_0": ACTIONS[action]}, rng)
            reached = int(table.next[action, position])
            assert table.placing(reached) == (after.player, after.boxes)
            assert table.rewards[action, position] == pytest.approx(rewards["player_0"])
            assert bool(table.solved[reached]) == over
            if over:
                break
            state = after
        dead += moves_to_solve(state) is None
        assert (search(game, state) is None) == (moves_to_solve(state) is None)
    assert dead > 0  # else the last line was tested on one side only


@pytest.mark.parametrize("game", [ONE, TWO])
def test_the_optimum_is_the_shortest_solution_and_the_games_own_limit_counts(game):
    yardstick, rng = SokobanYardstick(game), np.random.default_rng(3)
    for _ in range(4):
        start = game.initial_state(rng)
        late = start._replace(moves=game.max_moves - 3)
        best = {action: value for action, (value, _) in searched(game, late, 3, "player_0").items()}
        assert yardstick.values(late, None, "player_0") == pytest.approx(best)
        full = 10 + game.boxes - 0.1 * start.shortest
        assert yardstick.value(start, game.max_moves, "player_0") == pytest.approx(full)


def test_starts_that_no_level_has():
    game = Sokoban(size=5, most_walls=0, shortest=150, longest=160, max_moves=160)
    with pytest.raises(ValueError, match="no start of 150 to 160 moves in 1000 levels"):
        game.initial_state(np.random.default_rng(0))
