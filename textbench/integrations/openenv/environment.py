"""A game as an OpenEnv environment: one episode after the other, for one session."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from secrets import randbelow
from threading import Lock
from typing import Any
from uuid import uuid4

import anyio.to_thread
from fastmcp import FastMCP
from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import EnvironmentMetadata

from agents import EpisodeSession, PromptMap
from agents.loop.session import Opponents, Outcome
from agents.turn import Policy, is_served
from textbench.integrations.openenv.client import TextbenchAction, TextbenchObservation, TextbenchState
from textgames.names import did_you_mean
from textgames.scenarios import TRAINING_SEEDS, Scenario
from textgames.settings import taken_by

TEST_TASKS = 10_000
"""Tasks of the split ``test``: the first episodes of ``textbench run``."""

MOST_BUTTONS = 60  # of the web interface; what has more actions is typed there


class UnknownTaskError(IndexError):
    """There is no such split or index."""


class NoEpisodeError(RuntimeError):
    """A step was asked for outside an episode."""


@dataclass(frozen=True)
class ServedGame:
    """What all sessions of a server play.

    Attributes:
        scenario: the game, its settings and the seeds of its episodes.
        settings: of the environment, in place of the scenario's.
        seat: in a game of several players, who is played by the client; the first one when not given.
        opponents: who plays the other seats; ``None``: the client plays all of them, one after the other.
        prompt_map: makes :attr:`TextbenchObservation.messages`.
        turns: entered while the opponents inside may be asked.
    """

    scenario: Scenario
    settings: Mapping[str, Any] = field(default_factory=dict)
    seat: str | None = None
    opponents: Opponents | None = "random"
    prompt_map: PromptMap = field(default_factory=PromptMap)
    turns: AbstractContextManager[Any] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        inside = list(self.opponents.values()) if isinstance(self.opponents, Mapping) else [self.opponents]
        served = [isinstance(one, Policy) and is_served(one) for one in inside]
        # an opponent of this process is asked by one session at a time; one behind a server, by all of them at once
        object.__setattr__(self, "turns", nullcontext() if all(served) else Lock())

    def seeds(self, split: str) -> range:
        """Return the seeds of a split's tasks."""
        first = self.scenario.first_seed
        splits = {"train": range(len(TRAINING_SEEDS)), "test": range(first, first + TEST_TASKS)}
        if split not in splits:
            raise UnknownTaskError(
                f"no split {split!r}{did_you_mean(str(split), splits)}; there are {', '.join(splits)}"
            )
        return splits[split]

    def task_seed(self, split: str, index: int) -> int:
        """Return the seed of a task."""
        seeds = self.seeds(split)
        if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(seeds):
            raise UnknownTaskError(f"the split {split!r} has the tasks 0 to {len(seeds) - 1}, got {index!r}")
        return seeds[index]

    def session(
        self, seed: int, layout_seed: int | None = None, seat: str | None = None, **prompts: Any
    ) -> EpisodeSession:
        """Begin an episode; ``seat``, ``mode`` and ``history_turns`` are given if they aren't the server's."""
        with self.turns:
            return EpisodeSession(
                self.scenario,
                seed,
                layout_seed=layout_seed,
                seat=self.seat if seat is None else seat,
                opponents=self.opponents,
                prompt_map=replace(self.prompt_map, **prompts),
                **self.settings,
            )


class TextbenchEnvironment(Environment[TextbenchAction, TextbenchObservation, TextbenchState]):
    """The episodes of one session."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, game: ServedGame) -> None:
        super().__init__()
        self.game = game
        self._session: EpisodeSession | None = None
        self._episode_id: str | None = None
        self._responses = 0
        self._one_call = Lock()  # of a tool at a time

    def reset(
        self,
        seed: int | None = None,
        episode_id: str | None = None,
        layout_seed: int | None = None,
        split: str | None = None,
        index: int | None = None,
        seat: str | None = None,
        mode: str | None = None,
        history: int | None = None,
        **unknown: Any,
    ) -> TextbenchObservation:
        """Start an episode.

        Args:
            seed: drives the layout, unless ``layout_seed`` or a task is given, and the transitions; a training seed
                is drawn when not given. Equal seeds and equal responses give equal episodes.
            episode_id: what :attr:`state` calls the episode.
            layout_seed: fixes the initial state alone: episodes that share it and differ in ``seed`` are a group.
            split: ``"train"`` or ``"test"``, with ``index``: the task to play, whose seed is the episode's. With a
                ``seed`` besides, the task fixes the initial state and ``seed`` drives the rest: a group of a task.
            index: of the task in its split.
            seat, mode, history: who is played by this client, which template ends the prompts and how many of the last
                turns they repeat, if it isn't the server's choice.

        Raises:
            ValueError: an argument that doesn't exist, or a value that isn't accepted.
            UnknownTaskError: no such split or task.
        """
        if unknown:
            name = next(iter(unknown))
            known = taken_by(TextbenchEnvironment.reset, arguments=1).named
            raise ValueError(f"reset has no argument {name!r}{did_you_mean(name, known)}; it takes {', '.join(known)}")
        if split is not None or index is not None:
            if layout_seed is not None:
                raise ValueError("a task has its own layout: give layout_seed, or split and index")
            task = self.game.task_seed("test" if split is None else split, 0 if index is None else index)
            seed, layout_seed = (task, None) if seed is None else (seed, task)
        if seed is None:
            seed = TRAINING_SEEDS[randbelow(len(TRAINING_SEEDS))]
        prompts = {"mode": mode, "history_turns": history}
        given = {name: value for name, value in prompts.items() if value is not None}
        self._session = self.game.session(seed, layout_seed, seat, **given)
        self._episode_id, self._responses = episode_id or str(uuid4()), 0
        return self._observation(self._session, None)

    def step(self, action: TextbenchAction, timeout_s: float | None = None, **_: Any) -> TextbenchObservation:
        """Give the response of the player who is asked, or raise :class:`NoEpisodeError`."""
        session = self._session
        if session is None:
            raise NoEpisodeError(
                "no episode was started: call reset() first (among the tools new_episode), in the same session (POST "
                "/reset and POST /step are a session each; the client and the WebSocket /ws keep theirs)"
            )
        if session.over:
            raise NoEpisodeError("the episode is over: call reset() for another one")
        with self.game.turns:
            outcome = session.respond(action.message)
        self._responses += 1
        return self._observation(session, outcome)

    def _observation(self, session: EpisodeSession, outcome: Outcome | None) -> TextbenchObservation:
        """Return what the client reads after a reset (without an outcome) or a step."""
        reader = session.reader
        told: dict[str, Any] = {} if outcome is None else outcome._asdict()
        if outcome is None and session.over:  # out before anybody outside was asked
            told["reward"] = session.returns[reader]
        if session.over:
            episode = session.episode
            told |= {"done": True, "truncated": episode.truncated, "success": episode.successes[reader]}
            told["metadata"] = {"returns": episode.returns, "metrics": episode.metrics}
            text = session.last_observation(reader)
        else:
            request = session.request
            text = request.observation
            told |= {"messages": session.messages, "legal_actions": list(request.legal_actions)}
            told["steps_left"] = request.steps_left
        return TextbenchObservation(text=text, instructions=session.instructions, player=reader, **told)

    @cached_property
    def mcp_server(self) -> FastMCP:
        """The tools of the session, on ``/mcp``: ``new_episode``, and ``act``, which describes the game's rules."""
        server = FastMCP(self.game.scenario.name)
        game = self.game.scenario.game()
        rules = game.instructions(self.game.seat or game.players[0])

        async def new_episode(seed: int | None = None) -> dict[str, Any]:
            return await self._call(lambda: self.reset(seed=seed))

        async def act(action: str) -> dict[str, Any]:
            return await self._call(lambda: self.step(TextbenchAction(message=action)))

        server.tool(new_episode, description="Begin an episode, and read the first observation.")
        server.tool(act, description=f"Play one move: the name of an action. The game's rules:\n\n{rules}")
        return server

    async def _call(self, play: Callable[[], TextbenchObservation]) -> dict[str, Any]:
        def played() -> TextbenchObservation:
            with self._one_call:
                return play()

        observation = await anyio.to_thread.run_sync(played)
        told: dict[str, Any] = observation.model_dump(
            exclude={"messages", "instructions", "metadata"}, exclude_none=True
        )
        return told

    @property
    def state(self) -> TextbenchState:
        name, session = self.game.scenario.name, self._session
        if session is None:
            return TextbenchState(scenario=name)
        return TextbenchState(
            episode_id=self._episode_id,
            step_count=self._responses,
            scenario=name,
            seed=session.task.seed,
            layout_seed=session.task.layout_seed,
            player=session.player,
            returns=session.returns,
            done=session.over,
        )

    def list_splits(self) -> list[dict[str, str]]:
        return [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]

    def num_tasks(self, split: str) -> int:
        return len(self.game.seeds(split))

    def get_task(self, split: str, index: int) -> dict[str, Any]:
        """Return a task, which ``reset(split=..., index=...)`` plays, or ``reset(seed=...)`` with its seed."""
        seed, name = self.game.task_seed(split, index), self.game.scenario.name
        return {"id": f"{name}-{seed}", "split": split, "index": index, "scenario": name, "seed": seed}

    def get_task_range(self, split: str, start: int | None = None, stop: int | None = None) -> list[dict[str, Any]]:
        return [self.get_task(split, index) for index in range(self.num_tasks(split))[start:stop]]

    def list_tasks(self, split: str) -> list[dict[str, Any]]:
        return self.get_task_range(split)

    def get_metadata(self) -> EnvironmentMetadata:
        from benchmark.runs.provenance import code_version

        scenario, game = self.game.scenario, self.game.scenario.game()
        return EnvironmentMetadata(
            name=scenario.name,
            description=f"{scenario.name} ({scenario.env_id}), a text game of textbench",
            readme_content=f"# {scenario.name}\n\n{game.instructions(game.players[0])}\n",
            version=code_version()["version"],
            author="The textbench developers",
        )

    def render_web(self, observation: dict[str, Any]) -> str:
        """Return the observation as it is, in the web interface."""
        line = ""
        if observation.get("unreadable"):
            line = f"not valid ({observation['unreadable']}); played instead: {observation['action'] or 'nothing'}"
        elif observation.get("action"):
            line = f"played: {observation['action']}"
        if observation.get("done"):
            line += f"; over, {'a success' if observation.get('success') else 'no success'}"
        return f"<pre>{escape(observation['text'])}</pre><p>{escape(line.lstrip('; '))}</p>"

    def web_actions(self, observation: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return a button for every legal action, if they can be listed."""
        actions = observation.get("legal_actions", [])
        return [(name, {"message": name}) for name in actions] if len(actions) <= MOST_BUTTONS else []
