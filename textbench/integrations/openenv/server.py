"""Serving a game over OpenEnv's routes, until Ctrl-C."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import uvicorn
from fastapi import Request
from fastapi.responses import JSONResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

from textbench.integrations.openenv.client import TextbenchAction, TextbenchObservation, TextbenchState
from textbench.integrations.openenv.environment import (
    NoEpisodeError,
    ServedGame,
    TextbenchEnvironment,
    UnknownTaskError,
)
from textbench.integrations.openenv.gate import IDLE_SECONDS, MOST_BYTES, Gate

MAX_SESSIONS = 256
IDLE_SOCKET_SECONDS = 30.0  # until a connection has sent a whole request, or another one after the last


def make_app(game: ServedGame, *, max_sessions: int = MAX_SESSIONS, web: bool = True, **gate: Any) -> Any:
    """Make the FastAPI application of a game, with OpenEnv's routes, behind a :class:`~.gate.Gate` of these arguments.

    At most ``max_sessions`` clients play at once; with ``web`` there is a page at ``/web`` to play by hand.

    Raises:
        ValueError, TypeError: the game can't be played as it is set up.
    """
    game.session(game.scenario.first_seed)  # what is wrong with it is said now, not to the first client
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # the page's library tells its makers otherwise
    from openenv.core.env_server import create_fastapi_app, create_web_interface_app
    from openenv.core.env_server.types import ConcurrencyConfig

    app = (create_web_interface_app if web else create_fastapi_app)(
        partial(TextbenchEnvironment, game),
        TextbenchAction,
        TextbenchObservation,
        env_name=game.scenario.name,
        # a session of the tools isn't a connection, so it ends when nothing was asked of it for so long
        concurrency_config=ConcurrencyConfig(
            max_concurrent_envs=max_sessions, session_timeout=gate.get("idle", IDLE_SECONDS) or None
        ),
        state_cls=TextbenchState,
    )
    # OpenEnv tells clients of its WebSocket what was wrong by itself; its HTTP routes would answer 500
    for kind, status in {ValueError: 400, TypeError: 400, UnknownTaskError: 400, NoEpisodeError: 409}.items():
        app.add_exception_handler(kind, partial(_error_response, status))
    app.add_middleware(Gate, **gate)  # the outermost: mounted applications and WebSockets are behind it, too
    return app


async def _error_response(status: int, request: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"detail": str(error)}, status_code=status)


class PatientOnce(H11Protocol):
    """A connection that is closed if it sends no whole head of a request in time; uvicorn would wait for ever."""

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._look()

    def _look(self) -> None:
        if self.transport.is_closing() or self.transport.get_protocol() is not self:  # a WebSocket by now
            return
        now = self.loop.time()
        if self.cycle is not None and not self.cycle.response_complete:
            self._idle_since = now
        elif now - self._idle_since >= IDLE_SOCKET_SECONDS:
            self.transport.close()
            return
        self.loop.call_later(min(1.0, IDLE_SOCKET_SECONDS / 4), self._look)


class GameServer(uvicorn.Server):
    """Serves an application until the process is interrupted; ``announce`` is called when it answers."""

    def __init__(self, app: Any, announce: Callable[[], None]) -> None:
        config = uvicorn.Config(app, log_level="warning", ws_max_size=MOST_BYTES, http=PatientOnce)
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._announce()

    def serve_on(self, listening: socket.socket) -> None:
        """Serve on a socket until Ctrl-C, or until ``should_exit`` is set."""
        with suppress(KeyboardInterrupt):  # uvicorn raises it when everything is closed
            self.run([listening])
