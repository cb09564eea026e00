"""How one task becomes one episode: an agent of verifiers plays one seat, the opponents play inside."""

import asyncio
from typing import Self

import numpy as np
import verifiers.v1 as vf
from pydantic import model_validator
from textbench_turns import TurnHarnessConfig

from agents import EpisodeSession, load_agent
from agents.episode import invalid_rate
from agents.load import options_taken
from agents.models.base import CLOSE_TAG
from agents.models.served.answers import with_stop_string
from agents.turn import Policy, prefix_of
from textbench_verifiers.taskset import TextbenchConfig, TextbenchTask
from textgames import TRAINING_SEEDS
from textgames.names import did_you_mean

SEAT = vf.AgentConfig(harness=TurnHarnessConfig(), runtime=vf.SubprocessConfig())
"""An agent whose requests are sent from this process, so that it needs no container."""


class TextbenchEnvConfig(vf.EnvConfig):
    """Settings of who plays, under ``--env``."""

    player: vf.AgentConfig = SEAT
    """The agent."""
    seat: str | None = None
    """The seat that the agent plays in games of several players (default: the first)."""
    opponents: str = "random"
    """The agent in the other seats, as textbench run knows them, such as random, planner or tiny."""

    @model_validator(mode="after")
    def _can_be_seated(self) -> Self:
        try:
            options_taken(self.opponents)
        except (ValueError, ModuleNotFoundError) as error:
            raise ValueError(f"opponents: {error}") from error
        for scenario in () if self.seat is None else played_by(self).scenarios.values():
            players = scenario.game().players
            if self.seat not in players:
                near = did_you_mean(str(self.seat), players)
                raise ValueError(f"seat={self.seat!r}{near}: {scenario.name} has {', '.join(players)}")
        return self


class TextbenchEnv(vf.Env[TextbenchEnvConfig]):
    """An environment for one agent; if others play as well, they do so inside."""

    def __init__(self, config: TextbenchEnvConfig) -> None:
        super().__init__(config)
        self._starts = Starts(config)
        self._opponents: Policy = load_agent(config.opponents)
        self._one_at_a_time = asyncio.Lock()  # opponents keep what they have computed, and needn't bear threads

    async def run(self, task: TextbenchTask, agents: vf.Agents) -> None:
        async with self._one_at_a_time:
            session = await asyncio.to_thread(
                self._starts.session, task, seat=self.config.seat, opponents=self._opponents
            )
        seat = session.player
        async with agents.player.interaction(task) as player:
            while not session.over and (response := await answer(player, session)) is not None:
                if len(session.returns) == 1:
                    session.respond(response)
                else:
                    async with self._one_at_a_time:
                        await asyncio.to_thread(session.respond, response)
        record(player.trace, session, seat)


class Starts:
    """Begins the episodes of an environment's tasks."""

    def __init__(self, config: vf.EnvConfig) -> None:
        self._prompt_map = played_by(config).prompt_map()
        self._rng = np.random.default_rng()  # of transitions that every rollout draws anew

    def session(
        self, task: TextbenchTask, *, seat: str | None = None, opponents: Policy | None = None
    ) -> EpisodeSession:
        seed = TRAINING_SEEDS[int(self._rng.integers(len(TRAINING_SEEDS)))]
        return EpisodeSession(task.episode(seed), seat=seat, opponents=opponents, prompt_map=self._prompt_map)


def played_by(config: vf.EnvConfig) -> TextbenchConfig:
    """Return the taskset's configuration, or raise a ``ValueError`` if it is another taskset's."""
    taskset = config.taskset
    if not isinstance(taskset, TextbenchConfig):
        raise ValueError(f"this environment plays the taskset textbench, not {taskset.id!r}: vf-eval textbench")
    return taskset


async def answer(player: vf.Interaction, session: EpisodeSession) -> str | None:
    """Return the agent's answer to the prompt of this turn, or ``None`` if its run has ended (a limit, or an error).

    As in ``textbench run``, a response ends at the close of its first action, which servers cut off if it is a stop
    string (``--sampling.stop '["</action>"]'``).
    """
    segment = await player.turn(session.messages)
    if segment.terminated:
        return None
    call = player.trace.calls[-1]
    (reply,) = segment.messages
    text = reply.content if isinstance(reply.content, str) else ""
    sampling = call.sampling.model_dump() if call.sampling is not None else {}
    cut_out = {} if sampling.get("stop") and call.finish_reason == "stop" else {"stop_reason": None}
    return with_stop_string(text, (CLOSE_TAG,), cut_out, prefix_of(session.prompt))


def record(trace: vf.Trace, session: EpisodeSession, seat: str | None) -> None:
    """Put the outcome of a seat on its trace: the return as its reward; success and the share of invalid responses.

    An episode that a limit of the agent ended (``max_turns``) has the return so far, and no success. One that an error
    ended has no reward: it is neither lost nor won.
    """
    if not trace.ok or seat is None:
        return
    steps = session.steps_of(seat)
    trace.record_reward("return", session.returns[seat])
    trace.record_metric("success", float(session.over and session.episode.successes[seat]))
    trace.record_metric("invalid_rate", invalid_rate(steps))
    trace.record_metrics(session.episode.metrics.get(seat, {}) if session.over else {})
    trace.info["textbench"] = {  # what it takes to find the episode again, and what was played in it
        "scenario": session.task.scenario,
        "seed": session.task.seed,
        "layout_seed": session.task.layout_seed,
        "seat": seat,
        "complete": session.over,
        "actions": [step.action for step in steps],
    }
