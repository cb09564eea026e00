"""Add a game: write one class and one line, check it, and let players score on it.

    python examples/add_a_game.py
    textbench run --scenario examples.add_a_game:Lamps-v0 --agent planner --agent random    # in the checkout

The checks hold the game to the contract of all games. ``outcomes`` and ``read_observation`` are optional: with them the
game is solved, so that there is a perfect player and a score of 1.
"""

import benchmark
import textgames
import textgames.conformance


class Lamps(textgames.TSMG[tuple[str, ...]]):
    """Four lamps in a row: pressing one switches it and the lamps beside it, and the aim is that all are off."""

    actions = ("1", "2", "3", "4")

    def initial_state(self, rng):
        return tuple(str(lamp) for lamp in rng.choice(["on", "off"], size=4))

    def transition(self, state, joint_action, rng):
        pressed = self.actions.index(joint_action.get("player_0"))  # a ValueError for anything that is no action
        switched = {"on": "off", "off": "on"}
        state = tuple(switched[lamp] if abs(place - pressed) <= 1 else lamp for place, lamp in enumerate(state))
        over = "on" not in state
        return state, {"player_0": float(over)}, over

    def observe(self, state, player):
        return "Lamps: " + " ".join(state)

    def instructions(self, player):
        return "Four lamps stand in a row. Press 1, 2, 3 or 4: it and its neighbours switch. All off pays 1."

    def outcomes(self, state, joint_action):
        return [(1.0, *self.transition(state, joint_action, None))]  # one outcome, which is certain

    def read_observation(self, text, player):
        _, *lamps = text.split(" ")
        if text != self.observe(lamps, player) or len(lamps) != 4 or not {"on", "off"}.issuperset(lamps):
            raise ValueError(f"an observation has four lamps that are on or off, got {text!r}")
        return tuple(lamps)


textgames.register("Lamps-v0", Lamps, max_steps=4)
textgames.register_yardstick(Lamps, "textgames.solving.value_iteration:ValueIteration")

if __name__ == "__main__":
    textgames.conformance.check("Lamps-v0")
    print(benchmark.evaluate(["planner", "random"], scenarios="textgames:Lamps-v0", episodes=100).leaderboard())
