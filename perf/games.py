"""How fast every game that ships is, beside TextArena's version of it where there is one, in the same run.

    python perf/games.py [SCENARIO ...] [--seconds 0.3] [--rounds 5] [--json FILE]

A step is one decision: one player reads its observation and writes one response. Random play, resets included, steps
per CPU-second of one process, the median over rounds in which ours and theirs play in turn. Ours read responses with an
action tag, draw their random actions from what is legal, and have all players outside, as the loop that plays episodes
has them (one player: Gymnasium). Theirs get random actions of the form that they read, and a new environment for every
episode, as their history survives a reset. An action that is not legal there costs them little: they note it and go on.

TextArena's games aren't the same as ours in every rule; the column says which one is taken. Its Wordle needs word lists
that it downloads, and its Sokoban draws every room anew for some milliseconds; what can't be made is left out and said.
"""

import argparse
import json
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from environments import Steps, measure
from rich.console import Console
from rich.table import Table

from textgames import SCENARIOS, TSMG


class Peer(NamedTuple):
    """TextArena's version of a game: its id, the number of players, and a random action of the form that it reads."""

    env_id: str
    num_players: int
    action: Callable[[random.Random], str]


def one_of(*names: str) -> Callable[[random.Random], str]:
    return lambda rng: f"[{rng.choice(names)}]"


def numbers(*bounds: int) -> Callable[[random.Random], str]:
    """``[3 1]``: a number up to each bound."""
    return lambda rng: "[" + " ".join(str(rng.randint(0, bound)) for bound in bounds) + "]"


def code(rng: random.Random) -> str:
    return "[" + " ".join(map(str, rng.sample(range(1, 7), 4))) + "]"


def liars_bid(rng: random.Random) -> str:
    return "[Call]" if rng.random() < 0.3 else f"[Bid: {rng.randint(1, 5)}, {rng.randint(1, 6)}]"


_MOVES = one_of("up", "down", "left", "right")
PEERS = {
    "frozen-lake": Peer("FrozenLake-v0", 1, _MOVES),
    "snake-duel": Peer("Snake-v0", 2, _MOVES),
    "bandit": Peer("Bandit-v0", 1, one_of("red", "blue", "green", "yellow", "purple")),
    "blackjack": Peer("Blackjack-v0", 1, one_of("Hit", "Stand")),
    "sliding-puzzle": Peer("FifteenPuzzle-v0", 1, _MOVES),
    "sokoban": Peer("Sokoban-v0", 1, _MOVES),
    "mastermind": Peer("Mastermind-v0", 1, code),
    "guess-number": Peer("GuessTheNumber-v0", 1, numbers(20)),
    "word-guess": Peer("Wordle-v0", 1, one_of("crane", "slate", "mount", "pride")),
    "tic-tac-toe": Peer("TicTacToe-v0", 2, numbers(8)),
    "nim": Peer("Nim-v0", 2, numbers(2, 2)),
    "connect-four-small": Peer("ConnectFour-v0", 2, numbers(6)),
    "kuhn-poker": Peer("KuhnPoker-v0", 2, one_of("Check", "Bet", "Fold", "Call")),
    "liars-dice": Peer("LiarsDice-v0", 2, liars_bid),
    "rock-paper-scissors": Peer("IteratedRockPaperScissors-v0", 2, one_of("rock", "paper", "scissors")),
    "matching-pennies": Peer("IteratedMatchingPennies-v0", 2, one_of("heads", "tails")),
    "prisoners-dilemma": Peer("IteratedPrisonersDilemma-v0", 2, one_of("Cooperate", "Defect")),
    "stag-hunt": Peer("IteratedStagHunt-v0", 2, one_of("Stag", "Hare")),
    "werewolf-7": Peer("SecretMafia-v0", 7, lambda rng: f"[Player {rng.randint(0, 6)}]"),
}
"""TextArena's games by the scenario that is the nearest to them."""


def ours(name: str) -> Steps:
    """Random legal play of a scenario, all players outside."""
    scenario = SCENARIOS[name]
    game = scenario.game()
    if len(game.players) == 1 and type(game).to_move is TSMG.to_move:
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
    """Picks one of the legal actions; the game itself draws one where they can't be listed."""
    quick, rng = random.Random(0), np.random.default_rng(0)

    def choose(state: Callable[[], Any], player: str, legal: tuple[str, ...]) -> str:
        action = legal[int(quick.random() * len(legal))] if legal else game.sample_action(state(), player, rng)
        return f"<action>{action}</action>"

    return choose


def theirs(peer: Peer) -> Steps:
    import textarena

    rng = random.Random(0)

    def play(steps: int) -> int:
        played, done, env = 0, True, None
        while played < steps:
            if done:
                env = textarena.make(env_id=peer.env_id)
                env.reset(num_players=peer.num_players, seed=played)
            assert env is not None
            env.get_observation()
            done, _ = env.step(action=peer.action(rng))
            played += 1
        return played

    return play


def contestants(name: str) -> dict[str, Steps]:
    found = {"ours": ours(name)}
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
    table = Table("scenario", "players", "steps/s", "TextArena's", "steps/s", "ratio")
    figures: dict[str, Any] = {}
    for name in options.scenarios:
        rates = measure(contestants(name), options.seconds, options.rounds)
        peer = PEERS[name].env_id if "theirs" in rates else None
        players = len(SCENARIOS[name].game().players)
        figures[name] = {"players": players, "steps_per_second": rates["ours"], "peer": peer}
        cells = [name, str(players), f"{rates['ours']:,.0f}"]
        if peer is not None:
            figures[name] |= {"peer_steps_per_second": rates["theirs"], "ratio": rates["ours"] / rates["theirs"]}
            cells += [peer, f"{rates['theirs']:,.0f}", f"{rates['ours'] / rates['theirs']:.2f} x"]
        table.add_row(*cells)
        print(*cells, sep="  ", file=sys.stderr, flush=True)
    Console().print(table)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
