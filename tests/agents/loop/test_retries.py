"""Answering again: in every loop, of every kind of player, with what was wrong in the conversation."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

from agents import EpisodeSession, LanguageAgentPolicy, PromptMap, ScriptedModel
from agents.episode import EpisodeTask, invalid_rate
from agents.loop.rollout import rollout
from agents.prompt_texts import PromptTexts
from agents.protocol import MOST_RETRIES, read_protocol, same_protocol
from agents.turn import Refused, Turn, request_in
from tests.agents.helpers import essence
from tests.benchmark.players_for_tests import Hesitant, Mute
from textgames import SCENARIOS, UnreadableReason


def tasks(name="snake", episodes=6, protocol="retry", **more):
    scenario = SCENARIOS[name]
    return [EpisodeTask.of(scenario, scenario.seed(k), protocol=protocol, **more) for k in range(episodes)]


class Served(Hesitant):
    """The same player as if its model were a server: asked request by request, at its own pace."""

    async def act_async(self, request):
        await asyncio.sleep((request.seed[0] % 3) * 0.001)
        return self.answer(request)


@pytest.mark.parametrize("name", ["snake", "snake-duel", "tic-tac-toe"])
def test_all_loops_ask_again_alike(name):
    one = sorted(map(essence, rollout(Hesitant(), tasks(name), max_concurrency=1)))
    assert any(refused for _, _, steps, *_ in one for *_, refused in steps)
    mixed = dict(zip(SCENARIOS[name].game().players, (Served(), Hesitant()), strict=False))  # one behind a server
    for policies in (Hesitant(), Served(), mixed):
        assert sorted(map(essence, rollout(policies, tasks(name), max_concurrency=4))) == one


def test_every_answer_has_a_seed_of_its_own():
    """A model that samples would else say the same again."""
    seeds = []

    class Watching(Mute):
        def act(self, requests):
            seeds.extend(request.seed for request in requests)
            return super().act(requests)

    (episode,) = rollout(Watching(), tasks(episodes=1, protocol="retry:4"))
    assert len(set(seeds)) == 5
    assert seeds[0] == (40_000, 0, 0)  # as in every protocol
    assert invalid_rate(episode.steps) == 1.0
    assert sum(turn.usage.prompt_tokens for step in episode.steps for turn in step.turns) == 50


def test_the_conversation_is_the_prompt_the_answer_and_the_complaint():
    conversations, texts = (
        [],
        ["<action>fly</action>", "<action>left</action><action>up</action>", "<action>up</action>"],
    )

    def say(prompt, decoding, seed):
        conversations.append(prompt)
        return texts[len(conversations) - 1]

    policy = LanguageAgentPolicy(ScriptedModel(say))
    session = EpisodeSession("frozen-lake", 10_000, protocol="retry")
    for unreadable in ("unknown_name", "several_tags", None):
        (turn,) = policy.act([session.request])
        outcome = session.respond(turn)
        assert (outcome.valid, outcome.unreadable) == (unreadable is None, unreadable)
    first, second, third = conversations
    assert (second[: len(first)], third[: len(second)]) == (first, second)
    assert [message.role for message in third] == ["user", "assistant", "user", "assistant", "user"]
    assert "isn't an action of this game" in second[-1].content
    assert "left, down, right, up" in second[-1].content
    assert "more than one action tag" in third[-1].content
    assert session.request.history == ()  # the next decision stands for itself again
    assert not session.request.refused


@pytest.mark.parametrize("reason", UnreadableReason)
def test_there_is_a_complaint_for_every_reason(reason):
    game = SCENARIOS["snake"].game()
    request = request_in(game, game.initial_state(np.random.default_rng(0)), "player_0")
    asked = replace(request, refused=(Refused(Turn("what it said"), str(reason)),))
    *_, said, complaint = PromptMap()(asked)
    assert (said.role, said.content, complaint.role) == ("assistant", "what it said", "user")
    assert PromptTexts.default().reasons[str(reason)] in complaint.content
    assert "$" not in complaint.content
    own = replace(PromptTexts.default(), complaint="No: $reason!", reasons={str(reason): "so it is"})
    assert PromptMap(texts=own)(asked)[-1].content == "No: so it is!"
    # cards of earlier runs hold prompt texts without these parts
    old = replace(PromptTexts.default(), complaint="", reasons={})
    assert PromptMap(texts=old)(asked)[-1] == complaint


@pytest.mark.parametrize("name", SCENARIOS)
def test_unlisted_prompts_have_no_list_of_the_legal_moves(name):
    """Nothing but the rules and the observation names actions, which are the same in both."""

    def asked(protocol, mode, moves):
        (task,) = tasks(name, 1, protocol, moves=moves)
        session = EpisodeSession(task, opponents=None, prompt_map=PromptMap(mode))
        if protocol == "retry":
            session.respond("?")
            assert session.request.refused or session.player != session.seat
        text = "\n".join(message["content"] for message in session.messages)
        for known in (session.request.instructions, session.request.observation):
            text = text.replace(known, "")
        return session.request.legal_actions, text

    for protocol, mode in (("random", "think"), ("random", "direct"), ("retry", "think")):
        (legal, listed), (_, unlisted) = (asked(protocol, mode, moves) for moves in ("listed", "unlisted"))
        if not legal:  # nothing was listed: what stands there is how to write an action
            assert listed == unlisted
            continue
        assert ", ".join(legal) in listed
        assert "the actions that the rules above allow now" in unlisted
        assert sum(f" {action}," in unlisted or f" {action}." in unlisted for action in legal) == 0


def test_protocols_are_read_from_their_names():
    assert read_protocol(f"retry:{MOST_RETRIES}+both") == ("forfeit", MOST_RETRIES, "both")
    assert same_protocol("retry:02+image") == "retry+image"
    for name in ("retry:", "retry:21", "random:1", "noop"):
        with pytest.raises(ValueError, match=r"protocol must be one of|more answers"):
            read_protocol(name)
