"""Serve a game to trainers and other programs, as an OpenEnv environment server with a page to play by hand.

Every client has a session of its own. A client's reset(seed=7, layout_seed=3) starts the same episode everywhere, and
reset(split="test", index=12) the episode 12 of textbench run.

examples:
  textbench serve frozen-lake
  textbench serve tic-tac-toe --against planner --port 9000
  textbench serve textgames:TextFrozenLake-v0 --set size=6 --set is_slippery=true --no-web
  TEXTBENCH_SERVE_TOKEN=... textbench serve snake --host 0.0.0.0 --allow-host games.example.com
"""

import re
import socket
from argparse import ArgumentParser, Namespace
from typing import Any

from benchmark.cli.arguments import add_number

LEAST_TOKEN = 8  # characters
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the game that is served, the address, and who may connect."""
    parser.add_argument("scenario", metavar="SCENARIO", help="see textbench list scenarios; or my_module:MyGame-v0")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine)")
    add_number(parser, "--port", 8000, "port; 0 takes a free one", most=65_535)
    add_number(parser, "--max-sessions", 256, "clients at once", 1)
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name that others reach this server by, or *.example.com (default: this machine's and --host alone)",
    )
    parser.add_argument(
        "--token",
        metavar="SECRET",
        help="let in only who brings it; better in $TEXTBENCH_SERVE_TOKEN (others see options)",
    )
    add_number(parser, "--idle-timeout", 3600, "seconds after which a silent session ends; 0: never", metavar="S")
    parser.add_argument("--no-web", action="store_true", help="leave out the page at /web")
    parser.add_argument("--against", metavar="SPEC", help="who has the other seats (default random)")
    parser.add_argument("--self-play", action="store_true", help="the client plays all seats, one after the other")
    parser.add_argument("--seat", metavar="PLAYER", help="which player the client is (default: the first)")
    parser.add_argument("--mode", metavar="NAME", help="template of the prompts: think (default), direct")
    add_number(parser, "--history", 0, "last turns in a prompt", metavar="K")
    parser.add_argument("--prompts", metavar="FILE", help="another wording of the prompts")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of the game in place of its own"
    )


def run(args: Namespace) -> int:
    """Serve the game until Ctrl-C."""
    import sys

    from benchmark.errors import UsageError
    from textgames.extras import missing_packages

    if missing := missing_packages("openenv", extra="openenv"):
        raise UsageError(f"textbench serve needs what isn't installed, {missing}")
    served = _served(args)
    gate = _gate(args)
    try:
        listening = listen(args.host, args.port)
    except OSError as error:
        raise UsageError(str(error)) from None
    host = f"[{args.host}]" if ":" in args.host else args.host
    url = f"http://{host}:{listening.getsockname()[1]}"

    def announce() -> None:
        print(url, flush=True)
        page = "" if args.no_web else f"; play it by hand at {url}/web"
        if gate["token"] is None and gate["bound"] not in LOOPBACK:
            print("whoever reaches this port can play: --token SECRET lets in only who brings it", file=sys.stderr)
        name = served["scenario"].name
        print(f"{name} for up to {args.max_sessions} clients{page}; Ctrl-C ends it", file=sys.stderr, flush=True)

    with listening:
        from textbench.integrations.openenv import (
            ServedGame,
        )  # takes seconds, so everything that can be wrong was said before
        from textbench.integrations.openenv.server import GameServer, make_app

        try:
            app = make_app(ServedGame(**served), max_sessions=args.max_sessions, web=not args.no_web, **gate)
        except (ValueError, TypeError) as error:
            raise UsageError(str(error)) from None
        GameServer(app, announce).serve_on(listening)
    return 0


def _gate(args: Namespace) -> dict[str, Any]:
    """Return the arguments of :class:`textbench.integrations.openenv.gate.Gate`."""
    import os

    from benchmark.errors import UsageError

    token = args.token if args.token is not None else os.environ.get("TEXTBENCH_SERVE_TOKEN") or None
    if token is not None and not (len(token) >= LEAST_TOKEN and token.isascii() and token.isprintable()):
        raise UsageError(f"the token has at least {LEAST_TOKEN} characters, ASCII without line breaks; set another one")
    for name in args.allow_host:
        if not re.fullmatch(r"(\*\.)?[\w.-]+|\[?[0-9a-fA-F:]+\]?", name):
            raise UsageError(f"--allow-host takes a name without scheme and port, got {name!r}")
    return {"bound": args.host, "allow": tuple(args.allow_host), "token": token, "idle": float(args.idle_timeout)}


def _served(args: Namespace) -> dict[str, Any]:
    """Return the arguments of :class:`textbench.integrations.openenv.ServedGame`."""
    from agents import PromptMap, PromptTexts, load_agent
    from benchmark.errors import UsageError
    from benchmark.runs.plan import find_scenario, num_players
    from textgames.registry import registered_ids

    name = f"textgames:{args.scenario}" if args.scenario in registered_ids() else args.scenario
    scenario = find_scenario(name, "serve")
    told = {"--against": args.against, "--seat": args.seat, "--self-play": args.self_play}
    if num_players(scenario) == 1 and (flags := [flag for flag, value in told.items() if value]):
        raise UsageError(f"{args.scenario} is played alone: leave out {', '.join(flags)}")
    if args.self_play and args.against is not None:
        raise UsageError("--self-play leaves no seat to --against: give one of them")
    try:
        texts = PromptTexts.default() if args.prompts is None else PromptTexts.from_file(args.prompts)
        prompts = PromptMap(args.mode or PromptMap.mode, args.history, texts)
        opponents = None if args.self_play else load_agent(args.against or "random")
    except (ValueError, TypeError, ModuleNotFoundError) as error:
        raise UsageError(str(error)) from None
    return {
        "scenario": scenario,
        "settings": _settings(args.set),
        "seat": args.seat,
        "opponents": opponents,
        "prompt_map": prompts,
    }


def _settings(pairs: list[str]) -> dict[str, Any]:
    """Return the settings of the game that ``--set`` gives."""
    from agents.common.toml import read_setting
    from benchmark.errors import UsageError

    settings = dict(read_setting(pair, "NAME=VALUE", UsageError) for pair in pairs)
    for name in settings:
        if not name.isidentifier():
            raise UsageError(f"--set takes NAME=VALUE, got the name {name!r}")
    return settings


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address; port 0 takes a free port.

    Raises:
        OSError: the port is taken or may not be used, or there is no such host here; the message says so.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, socket.SOCK_STREAM)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            server.bind(address)
        except OSError:
            server.close()
            raise
    except OSError as error:
        raise OSError(f"can't listen on {host}:{port}: {error.strerror or error}; --port 0 takes a free port") from None
    server.listen(2048)
    return server
