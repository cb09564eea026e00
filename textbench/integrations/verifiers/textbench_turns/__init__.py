"""How a turn reaches the model: one request with this turn's prompt, and nothing of the turns before it.

The harnesses of verifiers continue one growing conversation. Here every turn is a conversation of its own, so that each
becomes a branch of the trace, and each branch a training sample, whose prompt doesn't grow with the episode.
"""

from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI
from pydantic import Field

__all__ = ["TurnHarness"]


class TurnHarnessConfig(vf.HarnessConfig):
    """Settings of the harness, under ``--env.player.harness``."""

    id: vf.ID = "textbench-turns"
    max_retries: int = Field(5, ge=0)
    """Retries of a request that the server didn't answer, or answered with 408, 409, 429 or 5xx."""


class TurnHarness(vf.Harness[TurnHarnessConfig]):
    """Sends each turn on its own, from this process: no program is started, and none needs a container."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def session(self, *args: Any, **kwargs: Any) -> "TurnSession":
        return TurnSession(self, *args, **kwargs)

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
    ) -> vf.ProgramResult:
        """Return one turn on the task's own prompt, for tasks that have one."""
        session = await self.session(ctx, trace, runtime, endpoint, secret, mcp_urls, data)
        try:
            return await session.ask(opening(data))
        finally:
            await session.close()


class TurnSession(vf.HarnessSession):
    """The connection of one player in one episode."""

    def __init__(self, harness: TurnHarness, *args: Any, **kwargs: Any) -> None:
        super().__init__(harness, *args, **kwargs)
        # how long a response may take is the agent's to say (--env.player.timeout.rollout)
        self._client = AsyncOpenAI(
            base_url=self.endpoint, api_key=self.secret, timeout=None, max_retries=harness.config.max_retries
        )

    async def ask(self, messages: vf.Messages) -> vf.ProgramResult:
        """Send one conversation. What the model answers is recorded on the trace by verifiers, on the way."""
        system = self.data.system_prompt
        wire = [{"role": "system", "content": system}] if system else []
        wire += [message.model_dump(include={"role", "content"}) for message in messages]
        # not as a stream: verifiers refuses those that don't end as OpenAI's do, such as those of transformers serve
        await self._client.chat.completions.create(
            model=self.ctx.model,
            messages=wire,  # type: ignore[arg-type]  # dictionaries, as the protocol has them
        )
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")

    async def _run(self, messages: vf.Messages | None) -> vf.ProgramResult:
        return await self.ask(opening(self.data) if messages is None else messages)

    async def close(self) -> None:
        await super().close()
        await self._client.close()


def opening(data: vf.TaskData) -> vf.Messages:
    """Return the conversation by which a task opens."""
    if data.prompt is None:
        raise ValueError(f"the task {data.name or data.idx!r} has no prompt; open it with the first turn")
    return [vf.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else data.prompt
