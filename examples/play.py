"""Play one episode of a text game in Gymnasium's usual loop, with random moves or your own.

    python examples/play.py
    python examples/play.py TextSnake-v0 --seed 3 --yourself

A model would be sent the text that is printed here, and its whole response would be given to ``env.step``.
"""

import argparse
import random

import gymnasium as gym

import textgames

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
games = textgames.registered_ids()
parser.add_argument("id", nargs="?", default="TextFrozenLake-v0", choices=games, metavar="ID", help=", ".join(games))
parser.add_argument("--seed", type=int, default=7, help="seeds the board, the chances and the random moves")
parser.add_argument("--yourself", action="store_true", help="type the moves")
options = parser.parse_args()

env = gym.make(options.id)
chances = random.Random(options.seed)
observation, info = env.reset(seed=options.seed)
print(env.unwrapped.instructions)

total, terminated, truncated = 0.0, False, False
while not (terminated or truncated):
    print(f"\n{observation}\n")
    if options.yourself:
        response = input(f"{env.unwrapped.action_help}: ")
    elif info["legal_actions"]:
        response = f"<think>I roll a die.</think><action>{chances.choice(info['legal_actions'])}</action>"
    else:
        response = "<think>Nothing is listed here.</think>"  # unreadable: the environment plays at random instead
    observation, reward, terminated, truncated, info = env.step(response)
    total += reward
    print(f"{response}\nexecuted {info['action']!r}, reward {reward:g}")

print(f"\n{observation}\n\nreturn {total:g}, success {info['success']}")
