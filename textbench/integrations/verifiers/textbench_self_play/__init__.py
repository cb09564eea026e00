"""The games of textbench with every seat an agent: ``vf-eval textbench --env.id textbench-self-play``.

All seats are played by the run's model unless one names its own (``--env.player-1.model``). Each has a trace of its
own, stamped with its name, with its own return as the reward.
"""

from contextlib import AsyncExitStack
from typing import Self

import verifiers.v1 as vf
from pydantic import model_validator
from textbench_verifiers.env import SEAT, Starts, answer, played_by, record
from textbench_verifiers.taskset import TextbenchTask

__all__ = ["SelfPlayEnv"]


class SelfPlayConfig(vf.EnvConfig):
    """The players, under ``--env``: the seats that a game doesn't have stay empty."""

    player_0: vf.AgentConfig = SEAT
    player_1: vf.AgentConfig = SEAT
    player_2: vf.AgentConfig = SEAT
    player_3: vf.AgentConfig = SEAT
    player_4: vf.AgentConfig = SEAT
    player_5: vf.AgentConfig = SEAT
    player_6: vf.AgentConfig = SEAT

    @model_validator(mode="after")
    def _have_seats(self) -> Self:
        for scenario in played_by(self).scenarios.values():
            if without := [player for player in scenario.game().players if player not in type(self).model_fields]:
                raise ValueError(f"{scenario.name} has players without a seat: {', '.join(without)}")
        return self


class SelfPlayEnv(vf.Env[SelfPlayConfig]):
    """An environment in which every seat is an agent's, with a trace for each."""

    def __init__(self, config: SelfPlayConfig) -> None:
        super().__init__(config)
        self._starts = Starts(config)

    async def setup(self, agents: vf.Agents) -> None:
        """Leave seats that have a model of their own out of training."""
        for name in type(self.config).model_fields:
            seat = getattr(self.config, name)
            if isinstance(seat, vf.AgentConfig) and seat.model is not None:
                getattr(agents, name).trainable = False

    async def run(self, task: TextbenchTask, agents: vf.Agents) -> None:
        session = self._starts.session(task)
        async with AsyncExitStack() as open_seats:
            seats = {
                player: await open_seats.enter_async_context(getattr(agents, player).interaction(task))
                for player in session.returns
            }
            while (player := session.player) is not None:
                response = await answer(seats[player], session)
                if response is None:
                    break
                session.respond(response)
            if failed := [player for player, seat in seats.items() if seat.trace.errors]:
                raise RuntimeError(
                    f"the episode isn't scored, as {failed[0]} gave no response: {seats[failed[0]].trace.last_error}"
                )
        for player, seat in seats.items():
            record(seat.trace, session, player)
