"""An agent loop of verl that plays episodes without growing histories: every step is a sequence of its own.

verl's trainers with a transfer queue (``verl.trainer.ppo.v1``, those of ``trainer.use_v1``) take as many sequences of
one rollout as it has: with ``samples="all"`` every step is one, and each has the advantage of the episode's return over
those of its group, as in MS-GRPO. The other trainers take exactly one: with ``samples="one"`` it is a step drawn from
the episode, so that a group of n rollouts has the returns of n episodes. The file of
``actor_rollout_ref.rollout.agent.agent_loop_config_path`` configures it::

    - name: textbench
      _target_: textbench.integrations.verl.agent_loop.GameAgentLoop
      mode: think
      opponents: random
      samples: one
      settings: {format_penalty: 1.0}
"""

from collections.abc import Mapping
from typing import Any, Literal
from uuid import uuid4

import numpy as np
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopMetrics, AgentLoopOutput

from agents import EpisodeSession, PromptMap
from textbench.integrations.starts import Start, begin, figures


# It isn't registered by verl's decorator: a worker imports this module when it makes its first loop, and the decorator
# would then replace what the file says, so that every later episode of that worker was played with the defaults.
class GameAgentLoop(AgentLoopBase):
    """Plays an episode from the start that its row names (:func:`textbench.integrations.verl.start_rows`).

    Args:
        mode: the response mode.
        opponents: of a game of several players, an agent or ``{player: agent}``.
        samples: ``"all"`` steps of an episode, or ``"one"``; see the module.
        settings: of the environment, in place of the scenario's: ``{"format_penalty": 1.0}``.
    """

    def __init__(
        self,
        *args: Any,
        mode: str = "think",
        opponents: Any = "random",
        samples: Literal["all", "one"] = "one",
        settings: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        if samples not in ("all", "one"):
            raise ValueError(f"samples is 'all' or 'one', got {samples!r}")
        self._prompt_map, self._samples, self._settings = PromptMap(mode), samples, settings
        self._opponents = opponents if isinstance(opponents, str) else dict(opponents)

    async def run(self, sampling_params: dict[str, Any], **columns: Any) -> AgentLoopOutput | list[AgentLoopOutput]:
        """Play the row's episode with the server that verl samples from; the columns are the row's."""
        # a row without its layout would silently be layout 0, as all others: a KeyError is raised
        start = Start(str(columns["scenario"]), int(columns["layout_seed"]), str(columns["seat"]))
        # transitions differ within a group, whose rows are all the same
        session = begin(start, None, self._prompt_map, self._opponents, self._settings)
        steps: list[AgentLoopOutput] = []
        while not session.over:
            steps.append(await self._step(session, sampling_params))
        if not steps:  # out before it was asked: a return, and no token to learn from
            end = self.tokenizer.eos_token_id
            steps = [
                AgentLoopOutput(prompt_ids=[end], response_ids=[end], response_mask=[0], metrics=AgentLoopMetrics())
            ]
        kept = steps if self._samples == "all" else [steps[int(np.random.default_rng().integers(len(steps)))]]
        told = figures(session.episode, session.seat)
        for output in kept:
            output.reward_score = session.returns[session.seat]
            output.extra_fields = {"reward_extra_info": told, "turn_scores": [], "tool_rewards": []}
        return kept if self._samples == "all" else kept[0]

    async def _step(self, session: EpisodeSession, sampling_params: dict[str, Any]) -> AgentLoopOutput:
        prompt_ids = await self.ct_build_initial_tokens(session.messages)
        answer = await self.server_manager.generate(
            request_id=uuid4().hex, prompt_ids=prompt_ids, sampling_params=sampling_params
        )
        ids = list(answer.token_ids)[: self.rollout_config.response_length]
        session.respond(self.tokenizer.decode(ids, skip_special_tokens=True))
        return AgentLoopOutput(
            prompt_ids=prompt_ids,
            response_ids=ids,
            response_mask=[1] * len(ids),
            response_logprobs=list(answer.log_probs)[: len(ids)] if answer.log_probs else None,
            num_turns=2,
            metrics=AgentLoopMetrics(),
            extra_fields={},
        )
