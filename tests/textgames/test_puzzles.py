"""Sliding puzzle and Sokoban: rules by hand, tables against the literature and searches, values against brute force."""

import numpy as np
import pytest

from tests.textgames.test_every_scenario import searched
from textgames.planning.sliding_puzzle import GOAL, SlidingPuzzle, SlidingState, SlidingYardstick, distance, layers
from textgames.planning.sokoban import Sokoban, SokobanYardstick
from textgames.planning.sokoban_levels import ACTIONS, Level, SokobanState, moves_to_solve

RNG = np.random.default_rng(0)
ME = "player_0"


def play(game, state, *actions):
    """The state after these actions, what each of them paid, and whether the game is over."""
    paid, over = [], False
    for action in actions:
        state, rewards, over = game.transition(state, {ME: action}, RNG)
        paid.append(rewards[ME])
    return state, paid, over


def best_values(game, state) -> dict[str, float]:
    """The value of each action with three rounds left, by looking at everything."""
    return {action: best for action, (best, _) in searched(game, state, 3, ME).items()}


# ---------------------------------------------------------------- the sliding puzzle

NEAR = SlidingState("123450786")
# positions at each distance from the goal with the gap in a corner: sequence A089473 of the OEIS
LAYERS = """1 2 4 8 16 20 39 62 116 152 286 396 748 1024 1893 2512 4485 5638 9529 10878 16993 17110 23952 20224
24047 15578 14560 6274 3910 760 221 2"""


def test_the_table_is_that_of_the_literature():
    assert [len(layer) for layer in layers()] == [int(size) for size in LAYERS.split()]
    assert sum(moves * len(layer) for moves, layer in enumerate(layers())) / 181_440 == pytest.approx(21.97, abs=0.005)
    with pytest.raises(ValueError, match="can't be reached from '123456870'"):
        distance("123456870")


def test_slides_pay_and_are_told_and_the_goal_or_the_last_move_ends_the_game():
    game = SlidingPuzzle()
    assert game.legal_actions(NEAR, ME) == ("3", "5", "6")
    assert play(game, NEAR, "6") == (SlidingState(GOAL, 1), [pytest.approx(0.98)], True)
    assert play(game, NEAR, "3", "3") == (NEAR._replace(moves=2), [-0.02, -0.02], False)
    with pytest.raises(ValueError, match=r"one of 3, 5, 6, got \{'player_0': '8'\}"):
        play(game, NEAR, "8")
    far = SlidingState("120453786", 1)
    assert game.metrics(far, ME) == {"distance_left": 2.0}
    assert game.what_happened(NEAR, {ME: "3"}, far, ME) == "farther from the goal: 2 moves away"
    assert game.what_happened(far, {ME: "3"}, NEAR, ME) == "nearer to the goal: 1 move away"
    assert game.board(NEAR) == ("123", "45_", "786")
    short = SlidingPuzzle(max_moves=8)
    state, paid, over = play(short, NEAR, *["3"] * 8)
    assert (over, sum(paid), short.succeeded(state, ME)) == (True, pytest.approx(short.return_range[0]), False)
    assert play(short, state, "6") == (state, [0.0], True)


def test_the_own_limit_of_the_puzzle_counts_in_its_values():
    game = SlidingPuzzle(min_distance=2, max_distance=6, max_moves=9, step_reward=-0.1, goal_reward=2.0)
    for seed in range(6):
        late = game.initial_state(np.random.default_rng(seed))._replace(moves=6)
        assert SlidingYardstick(game).values(late, None, ME) == pytest.approx(best_values(game, late))


# ---------------------------------------------------------------- Sokoban

ONE, TWO = Sokoban(), Sokoban(boxes=2, shortest=8, longest=20, max_moves=30)


def board(*rows: str) -> SokobanState:
    """A state from its drawing, as :meth:`Sokoban.board` draws it."""
    marks = "".join(rows)
    level = Level(len(rows[0]), marks.translate(str.maketrans("PpBX", "_T_T")))
    boxes = tuple(cell for cell, mark in enumerate(marks) if mark in "BX")
    (player,) = (cell for cell, mark in enumerate(marks) if mark in "Pp")
    return SokobanState(level, player, boxes, 0, 1)


def test_pushes_walks_and_what_blocks_them():
    state = board("######", "#____#", "#PBB_#", "#_T__#", "#T___#", "######")
    after, paid, _ = play(TWO, state, "right")  # the second box blocks the first
    assert (after.player, after.boxes, paid) == (state.player, state.boxes, [-0.1])
    after, paid, over = play(TWO, state, "up", "right", "down")  # onto the target from above
    assert TWO.board(after) == ("######", "#____#", "#_PB_#", "#_X__#", "#T___#", "######")
    assert (paid, over) == ([-0.1, -0.1, pytest.approx(0.9)], False)
    after, paid, _ = play(TWO, after, "down")  # and off it
    assert TWO.board(after) == ("######", "#____#", "#__B_#", "#_p__#", "#TB__#", "######")
    assert paid == [pytest.approx(-1.1)]
    after, paid, _ = play(TWO, after, "down")  # a box at the wall stays
    assert (after.boxes, paid) == ((15, 26), [-0.1])


def test_solving_and_the_last_move_end_the_game():
    state = board("######", "#PBT_#", "#____#", "#____#", "#____#", "######")
    after, paid, over = play(ONE, state, "right")
    assert (paid, over) == ([pytest.approx(10.9)], True)
    assert ONE.succeeded(after, ME)
    assert ONE.what_happened(state, {ME: "right"}, after, ME) == "pushed a box onto a target; solved"
    assert play(ONE, after, "left") == (after, [0.0], True)
    after, paid, over = play(ONE, state, *["left"] * 15)
    assert over
    assert sum(paid) == pytest.approx(ONE.return_range[0])
    assert not ONE.succeeded(after, ME)


def test_a_box_in_a_corner_is_dead():
    state = board("######", "#__BP#", "#____#", "#__T_#", "#____#", "######")
    after, _, _ = play(ONE, state, "left", "left")
    assert ONE.board(after)[1] == "#BP__#"
    assert moves_to_solve(after) is None
    # a box at the wall can't reach the target either, before it is in the corner
    assert ONE.metrics(state, ME) == ONE.metrics(after, ME) == {"dead": 1.0}
    assert SokobanYardstick(ONE).value(after, None, ME) == pytest.approx(-0.1 * 13)
    state = board("######", "#____#", "#__BP#", "#__T_#", "#____#", "######")
    after, _, _ = play(ONE, state, "left", "left")
    told = ONE.what_happened(state, {ME: "left"}, after, ME)
    assert told == "pushed a box; from here there is no solution any more"


def search(game: Sokoban, start: SokobanState) -> int | None:
    """The fewest moves to a solution, by breadth-first search over the game's own transitions."""
    layer, seen, moves = {(start.player, start.boxes)}, set(), 0
    while layer:
        seen |= layer
        moves, around = moves + 1, set()
        for player, boxes in layer:
            for action in ACTIONS:
                state = start._replace(player=player, boxes=boxes, moves=0)
                after, _, _ = game.transition(state, {ME: action}, RNG)
                if game.succeeded(after, ME):
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
        assert len(state.boxes) == len(set(state.boxes) - {state.player}) == game.boxes
        lengths.add(state.shortest)
        if index < 8:
            assert search(game, state) == state.shortest
        assert game.metrics(state, ME) == {"dead": 0.0, "moves_over_optimum": 0.0}
    assert len(lengths) >= 6


@pytest.mark.parametrize("game", [ONE, TWO])
def test_the_optimum_is_the_shortest_solution_and_the_games_own_limit_counts(game):
    yardstick, rng = SokobanYardstick(game), np.random.default_rng(3)
    for _ in range(4):
        start = game.initial_state(rng)
        late = start._replace(moves=game.max_moves - 3)
        assert yardstick.values(late, None, ME) == pytest.approx(best_values(game, late))
        full = 10 + game.boxes - 0.1 * start.shortest
        assert yardstick.value(start, game.max_moves, ME) == pytest.approx(full)


def test_starts_that_no_level_has():
    game = Sokoban(size=5, most_walls=0, shortest=150, longest=160, max_moves=160)
    with pytest.raises(ValueError, match="no start of 150 to 160 moves in 1000 levels"):
        game.initial_state(np.random.default_rng(0))
