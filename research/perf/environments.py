"""How fast the environments are, beside named peers measured in the same run.

    python research/perf/environments.py [--seconds 0.4] [--rounds 5] [--json FILE]

Every figure is steps per CPU-second of one process, the median over rounds in which all contestants run in turn, so
that a change of the machine's speed meets them all. Text observations, action parsing and resets are included; ours are
reset onto new maps, and read responses in the think template. Peers that are not installed are left out, with the
command to get them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium as gym
import numpy as np

import textgames
from benchmark.show import print_tables, text_table

os.environ.setdefault("OMP_NUM_THREADS", "1")
THINK = "<think>One step that way.</think><plan>{0}</plan><action>{0}</action>"
Steps = Callable[[int], int]
"""Plays at least so many steps and says how many it played."""


def gymnasium_steps(env: Any, actions: list[Any], *, render: bool = False) -> Steps:
    def play(steps: int) -> int:
        env.reset(seed=0)
        for i in range(steps):
            _, _, terminated, truncated, _ = env.step(actions[i % len(actions)])
            if render:
                env.render()
            if terminated or truncated:
                env.reset()
                if render:
                    env.render()
        return steps

    return play


def batch_steps(env: Any, actions: list[str]) -> Steps:
    n = env.num_envs
    env.reset(seed=0)  # not timed: seeding 4096 generators once costs as much as dozens of steps of all of them
    choices = [tuple(actions[(i * 7 + j) % len(actions)] for j in range(n)) for i in range(13)]

    def play(steps: int) -> int:
        rounds = max(2, steps // n)
        for i in range(rounds):
            env.step(choices[i % 13])
        return rounds * n

    return play


def parallel_steps(env: Any, actions: list[str]) -> Steps:
    """Player-steps: every player reads and writes."""

    def play(steps: int) -> int:
        env.reset(seed=0)
        played = 0
        while played < steps:
            if not env.agents:
                env.reset()
            played += len(env.agents)
            env.step({agent: actions[(played + i) % len(actions)] for i, agent in enumerate(env.agents)})
        return played

    return play


def textarena_steps(env_id: str, num_players: int, actions: list[str]) -> Steps:
    """Return a new environment for every episode, in the peer's favour: its history survives ``reset()`` and grows."""
    import textarena

    def play(steps: int) -> int:
        played = 0
        env = textarena.make(env_id=env_id)
        env.reset(num_players=num_players, seed=0)
        while played < steps:
            env.get_observation()
            done, _ = env.step(action=actions[played % len(actions)])
            played += 1
            if done:
                env = textarena.make(env_id=env_id)
                env.reset(num_players=num_players, seed=played)
        return played

    return play


def responses(names: tuple[str, ...], template: str, count: int = 997) -> list[str]:
    rng = np.random.default_rng(0)
    return [template.format(names[i]) for i in rng.integers(len(names), size=count)]


def measure(contestants: dict[str, Steps], seconds: float, rounds: int) -> dict[str, float]:
    """Steps per CPU-second: the median over rounds in which every contestant plays in turn."""
    sizes = {}
    for name, play in contestants.items():
        steps = 64
        while True:  # also the warm-up
            start = time.process_time()
            played = play(steps)
            spent = time.process_time() - start
            if spent > seconds / 4:
                sizes[name] = max(64, int(played * seconds / spent))
                break
            steps *= 4
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, play in contestants.items():
            start = time.process_time()
            played = play(sizes[name])
            rates[name].append(played / (time.process_time() - start))
    return {name: statistics.median(values) for name, values in rates.items()}


def contestants() -> Iterator[tuple[str, str, Steps]]:
    """Yield (group, name, steps); the first one of a group is ours and the others are compared with it."""
    lake, snake = ("left", "down", "right", "up"), ("up", "down", "left", "right")
    think_lake, think_snake = responses(lake, THINK), responses(snake, THINK)
    numbers = np.random.default_rng(0).integers(4, size=997).tolist()
    group = "Frozen Lake 4x4, steps"
    yield group, "textgames TextFrozenLake-v0", gymnasium_steps(gym.make("TextFrozenLake-v0"), think_lake)
    slippery = gym.make("TextFrozenLake-v0", is_slippery=True, max_steps=100)
    yield group, "textgames, slippery as Gymnasium's, 100 steps", gymnasium_steps(slippery, think_lake)
    yield group, "gymnasium FrozenLake-v1, integers", gymnasium_steps(gym.make("FrozenLake-v1"), numbers)
    ansi = gym.make("FrozenLake-v1", render_mode="ansi")
    yield group, "gymnasium FrozenLake-v1, ansi", gymnasium_steps(ansi, numbers, render=True)
    snake_group = "Snake 10x10, player-steps"
    two = textgames.parallel_env("TextSnake-v0", num_players=2, num_opponents=0, max_steps=100)
    yield snake_group, "textgames TextSnake-v0, two players", parallel_steps(two, think_snake)
    yield snake_group, "textgames TextSnake-v0, one player", gymnasium_steps(gym.make("TextSnake-v0"), think_snake)
    try:
        import textarena  # noqa: F401
    except ImportError:
        print("textarena is not installed and is left out: pip install textarena", file=sys.stderr)
        return
    bracketed = responses(lake, "[{0}]")
    for env_id in ("FrozenLake-v0", "FrozenLake-v0-train", "FrozenLake-v0-raw"):
        yield group, f"textarena {env_id}", textarena_steps(env_id, 1, bracketed)
    for env_id in ("Snake-v0", "Snake-v0-raw"):
        yield snake_group, f"textarena {env_id}, two players", textarena_steps(env_id, 2, responses(snake, "[{0}]"))


def peers_table(seconds: float, rounds: int) -> dict[str, float]:
    listed = list(contestants())
    rates = measure({name: steps for _, name, steps in listed}, seconds, rounds)
    for group in dict.fromkeys(group for group, _, _ in listed):
        names = [name for of, name, _ in listed if of == group]
        rows = [(name, f"{rates[name]:,.0f}", f"{rates[names[0]] / rates[name]:.2f} x") for name in names]
        print_tables([text_table(group, ("<environment", "per CPU-second", f"{names[0]} is"), rows)])
    return rates


def batch_table(seconds: float, rounds: int) -> dict[str, float]:
    """Batches of 1 to 4096 against the single environment."""
    found = {}
    for env_id in ("TextFrozenLake-v0", "TextSnake-v0"):
        actions = responses(("up", "down", "left", "right"), THINK)
        entries: dict[str, Steps] = {"single": gymnasium_steps(gym.make(env_id), actions)}
        for num_envs in (1, 2, 4, 16, 64, 256, 1024, 4096):
            env = gym.make_vec(env_id, num_envs=num_envs, vectorization_mode="vector_entry_point")
            entries[f"{num_envs} at once"] = batch_steps(env, actions)
        rates = measure(entries, seconds, rounds)
        rows = [(name, f"{rate:,.0f}", f"{rate / rates['single']:.2f} x") for name, rate in rates.items()]
        print_tables([text_table(f"{env_id}, batches", ("<environments", "steps per CPU-second", "of single"), rows)])
        found |= {f"{env_id}, {name}": rate for name, rate in rates.items()}
    return found


def size_table(seconds: float, rounds: int) -> dict[str, float]:
    """Boards of side 4 to 64: with linear cost, time per cell settles to a constant."""
    found = {}
    actions = responses(("up", "down", "left", "right"), THINK)
    for env_id in ("TextFrozenLake-v0", "TextSnake-v0"):
        entries, rows = {}, []
        for side in (4, 8, 16, 32, 64):
            board = {"size": side} if "Lake" in env_id else {"width": side, "height": side}
            entries[str(side)] = gymnasium_steps(gym.make(env_id, **board, max_steps=50), actions)
        rates = measure(entries, seconds, rounds)
        for side, rate in rates.items():
            cells = int(side) ** 2
            rows.append((side, str(cells), f"{rate:,.0f}", f"{1e6 / rate:.1f}", f"{1e9 / rate / cells:.1f}"))
            found[f"{env_id}, side {side}"] = rate
        heads = ("side", "cells", "steps per CPU-second", "us per step", "ns per cell")
        print_tables([text_table(f"{env_id}, board size (resets onto new boards included)", heads, rows)])
    return found


def import_table(rounds: int) -> dict[str, float]:
    """CPU time of a process that only imports; the interpreter's own start is taken off."""
    code = "import time; t = time.process_time(); import {}; print(time.process_time() - t)"
    times: dict[str, list[float]] = {"gymnasium": [], "textgames": [], "pettingzoo": []}
    for _ in range(4 * rounds):
        for module, spent in times.items():
            done = subprocess.run(
                [sys.executable, "-c", code.format(module)], capture_output=True, text=True, check=True
            )
            spent.append(float(done.stdout))
    medians = {module: statistics.median(spent) for module, spent in times.items()}
    rows = [(name, f"{each * 1e3:.0f}", f"{each / medians['gymnasium']:.2f} x") for name, each in medians.items()]
    print_tables([text_table("Import", ("<import", "ms of CPU", "of gymnasium"), rows)])
    return {f"import {module}": spent for module, spent in medians.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=0.4, help="CPU time of one measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each, the median is shown")
    parser.add_argument("--json", help="write the figures to this file too")
    options = parser.parse_args()
    figures = {
        **import_table(options.rounds),
        **peers_table(options.seconds, options.rounds),
        **batch_table(options.seconds, options.rounds),
        **size_table(options.seconds, options.rounds),
    }
    if options.json:
        with open(options.json, "w") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
