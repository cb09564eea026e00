"""The loop of an episode: every turn is a request of its own, made by our prompt map."""

from dataclasses import replace

import anyio.to_thread
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageUser,
    Content,
    ContentImage,
    ContentText,
    GenerateConfig,
    ModelOutput,
    get_model,
)
from inspect_ai.model._generate_config import active_generate_config  # what a task's requests are sent with
from inspect_ai.solver import Generate, Solver, TaskState, solver

from agents import EpisodeSession, PromptMap, Turn, Usage
from agents.loop.session import Opponents
from agents.models.base import CLOSE_TAG
from agents.models.reasoning import Begun
from agents.models.served.answers import completion_of
from agents.turn import FinishReason, Message, Policy, is_served, prefix_of
from textgames.scenarios import Scenario

EPISODE = "episode"
"""Where a sample's store has what became of its episode; the scorers read it."""

_MESSAGES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_FINISHES: dict[str, FinishReason] = {
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
}


@solver
def play_episode(
    scenario: Scenario, prompt_map: PromptMap, opponents: Opponents = "random", seat: str | None = None
) -> Solver:
    """Play the episode of the sample's seed with the model that is evaluated.

    A request holds what the prompt map says and nothing else; the sample's messages are all requests and responses,
    one after the other, for reading. Temperature, limits of tokens and the rest are Inspect's.
    """
    behind_servers = isinstance(opponents, Policy) and is_served(opponents)

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        model, responses = get_model(), []
        session = await anyio.to_thread.run_sync(
            lambda: EpisodeSession(
                scenario, state.metadata["seed"], seat=seat, opponents=opponents, prompt_map=prompt_map, name=str(model)
            )
        )
        state.messages = []
        while not session.over:
            messages: list[ChatMessage] = [_MESSAGES[one.role](content=_content(one)) for one in session.prompt]
            state.output = await model.generate(messages)
            turn = turn_of(state.output, model.config.merge(active_generate_config()), prefix_of(session.prompt))
            if behind_servers:  # while they think, other samples are played
                outcome = await anyio.to_thread.run_sync(session.respond, turn)
            else:
                outcome = session.respond(turn)
            state.messages += [*messages, state.output.message]
            responses.append(outcome._asdict())
        episode = session.episode
        if episode.error is not None:
            raise RuntimeError(episode.error)
        player = next(player for player, name in episode.agents.items() if name == str(model))
        told = {"player": player, "success": episode.successes[player], "truncated": episode.truncated}
        metrics = {name: dict(values) for name, values in episode.metrics.items()}
        state.store.set(EPISODE, {**told, "returns": dict(episode.returns), "metrics": metrics, "responses": responses})
        state.completed = True
        return state

    return solve


def _content(message: Message) -> str | list[Content]:
    """Return a message's content; with a picture, as Inspect's parts, which have the address that we send."""
    if not message.image:
        return message.content
    shown, _ = message.as_chat()["content"]
    return [ContentImage(image=shown["image_url"]["url"]), ContentText(text=message.content)]


def turn_of(output: ModelOutput, config: GenerateConfig, prefix: str = "") -> Turn:
    """Return a response of Inspect's model as our players give it, with the prefix that the model continued.

    As in ``textbench run`` it ends at its action, whether the server was told by ``config`` to stop there or not.
    """
    if output.error is not None:
        return Turn("", error=output.error)
    finish = _FINISHES.get(output.stop_reason, "stop")
    cut_out = {} if CLOSE_TAG in (config.stop_seqs or ()) else {"stop_reason": None}
    turn = completion_of({}, output.completion, finish, (CLOSE_TAG,), cut_out, begun=Begun(prefix))
    used = output.usage
    usage = Usage() if used is None else Usage(used.input_tokens, used.output_tokens)
    return replace(turn, response=prefix + turn.response, usage=usage)
