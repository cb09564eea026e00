"""How fast every game that ships is, beside TextArena's version of it if there is one, in the same run.

    python research/perf/games.py [SCENARIO ...] [--seconds 0.3] [--rounds 5] [--json FILE]
    python research/perf/games.py --json docs/games/speeds.json && python docs/tools/make_pages.py  # the page of speeds

A step is one decision: one player reads its observation and writes one response. Random play, resets included, steps
per CPU-second of one process, the median over rounds in which ours and theirs play in turn.

* Both play random legal actions, and the same settings (rounds, sizes, guesses) where theirs has them. Ours are drawn
  from ``info["legal_actions"]``; if a game lists none, from the first ones that the game drew itself. Theirs are drawn
  from the state of their game. An illegal action would cost them less, and the second in a row ends most games.
* Ours read responses with an action tag, and have all players outside, as the loop that plays episodes has them (one
  player: Gymnasium). Theirs read ``[...]``, and have a new environment for every episode, as their history survives a
  reset.

TextArena's games aren't the same as ours in every rule; the column says which one is taken. Its Wordle needs word lists
that it downloads, and its Sokoban draws every room anew for some milliseconds; what can't be made is left out and said.
"""

import argparse
import random
import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from environments import Steps, measure

from benchmark.show import print_tables, text_table
from research.jobs.report import compact
from textgames import SCENARIOS, TSMG

DRAWN = 1000
"""So many actions are drawn of a game that lists none; drawing them isn't what is measured."""


WARM_UP = 2000
"""Steps of ours that are played before anything is measured: tables and solvers are made once; theirs have none."""


class Peer(NamedTuple):
    """TextArena's version of a game."""

    env_id: str
    num_players: int
    action: Callable[[random.Random, Any], str]  # a random legal one, from its environment without wrappers
    settings: Mapping[str, Any] = MappingProxyType({})  # in which the scenario differs from what the id stands for


def one_of(*names: str) -> Callable[[random.Random, Any], str]:
    return lambda rng, env: f"[{rng.choice(names)}]"


def lake_move(rng: random.Random, env: Any) -> str:
    (row, column), last = env.state.game_state["player_pos"], env.size - 1
    return one_of(
        *["up"] * (row > 0), *["down"] * (row < last), *["left"] * (column > 0), *["right"] * (column < last)
    )(rng, env)


def slide(rng: random.Random, env: Any) -> str:
    row, column = env._get_empty_position()
    return one_of(*["up"] * (row < 3), *["down"] * (row > 0), *["left"] * (column < 3), *["right"] * (column > 0))(
        rng, env
    )


def code(rng: random.Random, env: Any) -> str:
    before = [entry["guess"] for entry in env.state.game_state["history"]]
    while (guess := [rng.randint(1, env.num_numbers) for _ in range(env.code_length)]) in before:
        pass
    return "[" + " ".join(map(str, guess)) + "]"


def new_number(rng: random.Random, env: Any) -> str:
    while (number := rng.randint(env.min_number, env.max_number)) in env.guessed_numbers:
        pass
    return f"[{number}]"


def free_cell(rng: random.Random, env: Any) -> str:
    board = env.state.game_state["board"]
    while board[(cell := rng.randrange(9)) // 3][cell % 3]:
        pass
    return f"[{cell}]"


def nim_move(rng: random.Random, env: Any) -> str:
    piles = env.state.game_state["piles"]
    pile = rng.choice([number for number, size in enumerate(piles) if size])
    return f"[{pile} {rng.randint(1, piles[pile])}]"


def column(rng: random.Random, env: Any) -> str:
    top = env.state.game_state["board"][0]
    return f"[{rng.choice([number for number, cell in enumerate(top) if cell == '.'])}]"


def kuhn_action(rng: random.Random, env: Any) -> str:
    return f"[{rng.choice(list(env.state.game_state['current_legal_action_tree']))}]"


def liars_bid(rng: random.Random, env: Any) -> str:
    """Return a call, or a bid with a larger number or face, up to all dice."""
    bid, dice = env.state.game_state["current_bid"], sum(env.state.game_state["remaining_dice"].values())
    number, face = bid["quantity"], bid["face_value"]
    higher = [
        (n, f) for n in range(max(1, number), dice + 1) for f in range(max(1, face), 7) if (n, f) != (number, face)
    ]
    choice = rng.randrange(len(higher) + (number > 0))
    return "[Call]" if choice == len(higher) else "[Bid: {}, {}]".format(*higher[choice])


def mafia(rng: random.Random, env: Any) -> str:
    if env.phase.name == "DAY_DISCUSSION":
        return rng.choice(("I have nothing to say.", "I am not a wolf.", "I don't trust anyone here."))
    night, roles = env.phase.name == "NIGHT_MAFIA", env.player_roles
    named = [n for n in env.state.game_state["alive_players"] if not night or roles[n] != "Mafia"]
    return f"[Player {rng.choice(named)}]"


_MOVES = one_of("up", "down", "left", "right")
_CODES = {"code_length": 3, "num_numbers": 4, "max_turns": 10, "duplicate_numbers": True}
PEERS = {
    "frozen-lake": Peer("FrozenLake-v0", 1, lake_move),
    "snake-duel": Peer("Snake-v0", 2, _MOVES, {"width": 10, "height": 10, "num_apples": 5, "max_turns": 30}),
    "bandit": Peer("Bandit-v0", 1, one_of("red", "blue", "green", "yellow", "purple"), {"num_turns": 25}),
    "blackjack": Peer("Blackjack-v0", 1, one_of("Hit", "Stand"), {"num_hands": 1}),
    "sliding-puzzle": Peer("FifteenPuzzle-v0", 1, slide, {"max_turns": 12}),
    "sokoban": Peer("Sokoban-v0", 1, _MOVES),
    "mastermind": Peer("Mastermind-v0", 1, code, _CODES),
    "guess-number": Peer("GuessTheNumber-v0", 1, new_number, {"max_number": 100}),
    "word-guess": Peer("Wordle-v0", 1, one_of("crane", "slate", "mount", "pride")),
    "tic-tac-toe": Peer("TicTacToe-v0", 2, free_cell),
    "nim": Peer("Nim-v0", 2, nim_move),
    "connect-four-small": Peer("ConnectFour-v0", 2, column, {"num_rows": 4, "num_cols": 4}),
    "kuhn-poker": Peer("KuhnPoker-v0", 2, kuhn_action, {"max_rounds": 1}),
    "liars-dice": Peer("LiarsDice-v0", 2, liars_bid, {"num_dice": 1}),
    "rock-paper-scissors": Peer(
        "IteratedRockPaperScissors-v0", 2, one_of("rock", "paper", "scissors"), {"num_rounds": 25}
    ),
    "matching-pennies": Peer("IteratedMatchingPennies-v0", 2, one_of("heads", "tails")),
    "prisoners-dilemma": Peer("IteratedPrisonersDilemma-v0", 2, one_of("Cooperate", "Defect")),
    "stag-hunt": Peer("IteratedStagHunt-v0", 2, one_of("Stag", "Hare")),
    "werewolf-7": Peer("SecretMafia-v0", 7, mafia, {"discussion_rounds": 1}),
}
"""TextArena's games by the scenario that is the nearest to them."""


def ours(name: str) -> Steps:
    """Random legal play of a scenario, all players outside."""
    scenario = SCENARIOS[name]
    game = scenario.game()
    if len(game.players) == 1:
        return solo(scenario.make().unwrapped, game)
    env = scenario.parallel_env()
    choose = chooser(game)

    def play(steps: int) -> int:
        played, (_, infos) = 0, env.reset(seed=0)
        while played < steps:
            if not env.agents:
                _, infos = env.reset()
            responses = {}
            for agent in env.to_move:
                env.observe(agent)
                responses[agent] = choose(env.state, agent, infos[agent]["legal_actions"])
            infos = env.play(responses).infos
            played += len(responses)
        return played

    return play


def solo(env: Any, game: TSMG[Any]) -> Steps:
    choose, player = chooser(game), game.players[0]

    def play(steps: int) -> int:
        over, (_, info) = False, env.reset(seed=0)
        for _ in range(steps):
            if over:
                _, info = env.reset()
            _, _, terminated, truncated, info = env.step(choose(lambda: env.state, player, info["legal_actions"]))
            over = terminated or truncated
        return steps

    return play


def chooser(game: TSMG[Any]) -> Callable[[Callable[[], Any], str, tuple[str, ...]], str]:
    """Picks one of the legal actions, or one of the first that the game drew itself if they can't be listed."""
    quick, rng = random.Random(0), np.random.default_rng(0)
    drawn: list[str] = []

    def choose(state: Callable[[], Any], player: str, legal: tuple[str, ...]) -> str:
        if not legal and len(drawn) < DRAWN:
            drawn.append(game.sample_action(state(), player, rng))
        choices = legal or drawn
        return f"<action>{choices[int(quick.random() * len(choices))]}</action>"

    return choose


def theirs(peer: Peer) -> Steps:
    import textarena

    rng = random.Random(0)

    def play(steps: int) -> int:
        played, done, env, core = 0, True, None, None
        while played < steps:
            if done:
                env = core = textarena.make(env_id=peer.env_id, **peer.settings)
                env.reset(num_players=peer.num_players, seed=played)
                while hasattr(core, "env"):
                    core = core.env
            assert env is not None
            env.get_observation()
            done, _ = env.step(action=peer.action(rng, core))
            played += 1
        return played

    return play


def contestants(name: str) -> dict[str, Steps]:
    found = {"ours": ours(name)}
    found["ours"](WARM_UP)
    if name in PEERS:
        try:
            play = theirs(PEERS[name])
            play(3)
        except Exception as error:  # noqa: BLE001 - a peer may fail in any way, which is said and costs nothing else
            reason = "; ".join(str(error).split("\n"))[:100].strip() or type(error).__name__
            print(f"textarena {PEERS[name].env_id} is left out: {reason}", file=sys.stderr)
        else:
            found["theirs"] = play
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), help="which; all when none is named")
    parser.add_argument("--seconds", type=float, default=0.3, help="CPU time of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, the median is shown")
    parser.add_argument("--json", help="write the figures to this file too")
    options = parser.parse_args()
    rows = []
    figures: dict[str, Any] = {}
    for name in options.scenarios:
        rates = measure(contestants(name), options.seconds, options.rounds)
        rates = {whose: round(rate) for whose, rate in rates.items()}
        peer = PEERS[name].env_id if "theirs" in rates else None
        players = len(SCENARIOS[name].game().players)
        figures[name] = {"players": players, "steps_per_second": rates["ours"], "peer": peer}
        cells = [name, str(players), f"{rates['ours']:,.0f}"]
        if peer is not None:
            ratio = round(rates["ours"] / rates["theirs"], 2)
            figures[name] |= {"peer_steps_per_second": rates["theirs"], "ratio": ratio}
            cells += [peer, f"{rates['theirs']:,.0f}", f"{ratio:.2f} x"]
        rows.append([*cells, *[""] * (6 - len(cells))])
        print(*cells, sep="  ", file=sys.stderr, flush=True)
    heads = ("<scenario", "players", "steps/s", "<TextArena's", "steps/s", "ratio")
    print_tables([text_table("steps a second", heads, rows)])
    if options.json:
        with open(options.json, "w") as file:
            file.write(compact(figures))


if __name__ == "__main__":
    main()
