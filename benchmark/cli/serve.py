"""A game, served over OpenEnv's routes."""

import os
import re
import socket
import sys
from typing import Any

from agents import PromptMap, load_agent
from agents.common.toml import read_setting
from benchmark.cli.settings import Serve
from benchmark.errors import UsageError
from benchmark.runs.plan import find_scenario, num_players
from textgames.extras import missing_packages
from textgames.registry import registered_ids

LEAST_TOKEN = 8  # characters
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def run_serve(settings: Serve) -> int:
    """Serve the game until Ctrl-C."""
    if missing := missing_packages("openenv", extra="openenv"):
        raise UsageError(f"textbench serve needs what isn't installed, {missing}")
    served, gate = _served(settings), _gate(settings)
    try:
        listening = listen(settings.host, settings.port)
    except OSError as error:
        raise UsageError(str(error)) from None
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    url = f"http://{host}:{listening.getsockname()[1]}"

    def announce() -> None:
        print(url, flush=True)
        page = "" if settings.no_web else f"; play it by hand at {url}/web"
        if gate["token"] is None and gate["bound"] not in LOOPBACK:
            print(
                "anyone who reaches this port can play: --token SECRET lets in only clients that have it",
                file=sys.stderr,
            )
        told = f"{served['scenario'].name} for up to {settings.max_sessions} clients{page}; Ctrl-C ends it"
        print(told, file=sys.stderr, flush=True)

    with listening:
        # takes seconds, so everything that can be wrong was said before
        from textbench.integrations.openenv import ServedGame
        from textbench.integrations.openenv.server import GameServer, make_app

        try:
            app = make_app(ServedGame(**served), max_sessions=settings.max_sessions, web=not settings.no_web, **gate)
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from None
        GameServer(app, announce).serve_on(listening)
    return 0


def _gate(settings: Serve) -> dict[str, Any]:
    token = os.environ.get("TEXTBENCH_SERVE_TOKEN") or None if settings.token is None else settings.token
    if token is not None and not (len(token) >= LEAST_TOKEN and token.isascii() and token.isprintable()):
        raise UsageError(f"the token has at least {LEAST_TOKEN} characters, ASCII without line breaks; set another one")
    for name in settings.allow_hosts:
        if not re.fullmatch(r"(\*\.)?[\w.-]+|\[?[0-9a-fA-F:]+\]?", name):
            raise UsageError(f"--allow-host takes a name without scheme and port, got {name!r}")
    return {"bound": settings.host, "allow": settings.allow_hosts, "token": token, "idle": float(settings.idle_timeout)}


def _served(settings: Serve) -> dict[str, Any]:
    named, against = settings.scenario, settings.against
    scenario = find_scenario(f"textgames:{named}" if named in registered_ids() else named, "serve")
    told = {"--against": against, "--seat": settings.seat, "--self-play": settings.self_play}
    if num_players(scenario) == 1 and (flags := [flag for flag, value in told.items() if value]):
        raise UsageError(f"{named} is played alone: leave out {', '.join(flags)}")
    if settings.self_play and against is not None:
        raise UsageError("--self-play leaves no seat to --against: give one of them")
    of_the_game = dict(read_setting(pair, "NAME=VALUE", UsageError) for pair in settings.sets)
    for name in of_the_game:
        if not name.isidentifier():
            raise UsageError(f"--set takes NAME=VALUE, got the name {name!r}")
    try:
        prompts = PromptMap.from_file(settings.prompts, settings.mode or PromptMap.mode, settings.history)
        opponents = None if settings.self_play else load_agent(against or "random")
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    about = {"scenario": scenario, "settings": of_the_game, "seat": settings.seat}
    return about | {"opponents": opponents, "prompt_map": prompts}


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 takes a free port. An OSError says why it can't."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise OSError(f"can't listen on {host}:{port}: {why}; --port 0 takes a free port") from None
