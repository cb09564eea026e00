"""A real server in a thread, real clients, and a player that both sides can be."""

import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from agents import Turn, TurnRequest
from benchmark.cli.serve import listen
from textbench.integrations.openenv import ServedGame, TextbenchEnv, TextbenchObservation
from textbench.integrations.openenv.server import GameServer, make_app

ROOT = Path(__file__).parents[3]


def choose(text: str, legal_actions: Sequence[str]) -> str:
    """An action that depends on what is read alone; now and then an answer that names none."""
    digest = hashlib.sha256(text.encode()).digest()
    return "no idea" if digest[0] < 16 else legal_actions[digest[1] % len(legal_actions)]


class Chooser:
    """The same as a player of ours."""

    name = "chooser"

    def act(self, requests: Sequence[TurnRequest | str]) -> list[Turn]:
        asked = [request for request in requests if isinstance(request, TurnRequest)]
        return [Turn(choose(request.observation, request.legal_actions)) for request in asked]


@contextmanager
def served(game: ServedGame, **options: Any) -> Iterator[str]:
    """The address of a server of this game."""
    started = threading.Event()
    server = GameServer(make_app(game, **{"web": False, **options}), started.set)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.serve_on, args=(listening,))
        thread.start()
        try:
            assert started.wait(60)
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(30)


@contextmanager
def a_process(*arguments: str, token: str | None = None) -> Iterator[str]:
    """The address of ``textbench serve`` as a process, with its page, whose library warns of much in ours."""
    environment = {**os.environ, "TEXTBENCH_SERVE_TOKEN": token} if token else None
    command = [Path(sys.executable).parent / "textbench", "serve", *arguments, "--port", "0"]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment, cwd=ROOT
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


def play(url: str, **reset: Any) -> tuple[list[float], TextbenchObservation]:
    """One episode in a session of its own: the rewards, and the last observation."""
    with TextbenchEnv(url).sync() as env:
        result = env.reset(**reset)
        rewards = []
        while not result.done:
            result = env.step(choose(result.observation.text, result.observation.legal_actions))
            rewards.append(result.reward)
    return rewards, result.observation
