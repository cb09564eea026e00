"""Answering again: in every loop, of every kind of player, with what was wrong in the conversation."""

import asyncio
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from agents import EpisodeSession, LanguageAgentPolicy, PromptMap, ScriptedModel
from agents.episode import EpisodeTask, invalid_rate
from agents.loop.rollout import rollout
from agents.prompt_texts import PromptTexts
from agents.protocol import MOST_RETRIES, read_protocol, same_protocol
from agents.turn import Refused, Turn, request_in
from tests.benchmark.stubborn_players import Hesitant, Mute
from textgames import SCENARIOS, UnreadableReason


def tasks(name="snake", episodes=6, protocol="retry", **more):
    scenario = SCENARIOS[name]
    return [EpisodeTask.of(scenario, scenario.seed(k), protocol=protocol, **more) for k in range(episodes)]


def told(episode):
    steps = [
        (step.player, step.turn.response, [(each.turn.response, each.unreadable) for each in step.refused], step.action)
        for step in episode.steps
    ]
    return episode.seed, steps, episode.returns


class Served(Hesitant):
    """The same player as if its model were a server: asked request by request, at its own pace."""

    async def act_async(self, request):
        await asyncio.sleep((request.seed[0] % 3) * 0.001)
        return self.answer(request)


@pytest.mark.parametrize("name", ["snake", "snake-duel", "tic-tac-toe"])
def test_all_loops_ask_again_alike(name):
    one = sorted(map(told, rollout(Hesitant(), tasks(name), max_concurrency=1)))
    assert any(refused for _, steps, _ in one for _, _, refused, _ in steps)
    assert sorted(map(told, rollout(Hesitant(), tasks(name), max_concurrency=6))) == one
    assert sorted(map(told, rollout(Served(), tasks(name), max_concurrency=4))) == one
    players = SCENARIOS[name].game().players
    mixed = dict(zip(players, (Served(), Hesitant()), strict=False))  # one behind a server, the other in this process
    assert sorted(map(told, rollout(mixed, tasks(name), max_concurrency=4))) == one


@pytest.mark.parametrize("name", ["snake", "snake-duel", "tic-tac-toe"])
@pytest.mark.parametrize("opponents", [None, Hesitant()])
def test_a_session_asks_again(name, opponents):
    for task, episode in zip(tasks(name), sorted(rollout(Hesitant(), tasks(name)), key=lambda e: e.seed), strict=True):
        session, outside = EpisodeSession(task, opponents=opponents, name="hesitant"), Hesitant()
        while not session.over:
            player, before = session.player, session.request
            outcome = session.respond(outside.answer(before))
            if outcome.valid is False and session.player == player and session.request.refused:
                assert (outcome.action, outcome.reward) == ("", 0.0)
                assert session.request.refused[-1].unreadable == outcome.unreadable
                assert session.request.observation == before.observation
                assert session.messages[-2]["content"] == session.request.refused[-1].turn.response
        assert told(session.episode) == told(episode)


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


def test_a_providers_error_while_answering_again_ends_the_episode_unscored():
    class Failing(Mute):
        def act(self, requests):
            return [Turn("", error="down") if request.refused else Turn("?") for request in requests]

    (episode,) = rollout(Failing(), tasks(episodes=1))
    assert episode.error == "round 0, player_0 (mute): down"
    assert not episode.steps


def test_the_conversation_is_the_prompt_the_answer_and_the_complaint():
    conversations = []

    class Model(ScriptedModel):
        def generate(self, prompts, decoding, seeds):
            conversations.extend(prompts)
            texts = ["<action>fly</action>", "<action>left</action><action>up</action>", "<action>up</action>"]
            return [Turn(texts[(len(prompt) - 1) // 2]) for prompt in prompts]

    policy = LanguageAgentPolicy(Model([]))
    session = EpisodeSession("frozen-lake", 10_000, protocol="retry")
    for valid in (False, False, True):
        (turn,) = policy.act([session.request])
        assert session.respond(turn).valid is valid
    first, second, third = conversations
    assert (second[: len(first)], third[: len(second)]) == (first, second)
    assert [message.role for message in third] == ["user", "assistant", "user", "assistant", "user"]
    assert "isn't an action of this game" in second[-1].content
    assert "left, down, right, up" in second[-1].content
    assert "more than one action tag" in third[-1].content
    assert session.request.history == ()  # the next decision stands for itself again
    assert not session.request.refused


def test_the_next_turns_remember_the_answer_that_counted():
    session = EpisodeSession("frozen-lake", 10_000, protocol="retry", prompt_map=PromptMap(history_turns=2))
    session.respond("?")
    session.respond("left")
    assert [response for _, response in session.request.history] == ["left"]


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


def test_texts_of_before_complain_in_the_packages_own_words():
    """Cards of earlier runs hold prompt texts without these parts."""
    default = PromptTexts.default()
    data = {part: text for part, text in default.as_data().items() if part not in ("unlisted", "complaint", "reasons")}
    old = PromptTexts(**data)
    assert old.as_data() == data
    messages = []
    for prompts in (PromptMap(texts=old), PromptMap()):
        session = EpisodeSession("frozen-lake", 10_000, protocol="retry", moves="unlisted", prompt_map=prompts)
        session.respond("?")
        messages.append(session.messages)
    assert messages[0] == messages[1]


@pytest.mark.parametrize("name", SCENARIOS)
def test_unlisted_prompts_have_no_list_of_the_legal_moves(name):
    """Nothing but the rules and the observation names actions, which are the same in both."""
    for protocol, mode in product(("random", "retry"), ("think", "direct")):
        sessions = [
            EpisodeSession(
                SCENARIOS[name], SCENARIOS[name].first_seed, opponents=None, prompt_map=PromptMap(mode), moves=moves,
                protocol=protocol,
            )
            for moves in ("listed", "unlisted")
        ]  # fmt: skip
        if protocol == "retry":
            for session in sessions:
                session.respond("?")
                assert session.request.refused or session.player != session.seat
        listed, unlisted = ("\n".join(message["content"] for message in session.messages) for session in sessions)
        request = sessions[1].request
        for known in (request.instructions, request.observation):
            listed, unlisted = listed.replace(known, ""), unlisted.replace(known, "")
        legal = request.legal_actions
        if not legal:  # nothing was listed: what stands there is how to write an action
            assert listed == unlisted
            continue
        assert ", ".join(legal) in listed
        assert ", ".join(legal) not in unlisted
        assert "the actions that the rules above allow now" in unlisted
        assert sum(f" {action}," in unlisted or f" {action}." in unlisted for action in legal) == 0


def test_protocols_are_read_from_their_names():
    assert read_protocol("retry") == ("forfeit", 2, "text")
    assert read_protocol(f"retry:{MOST_RETRIES}+both") == ("forfeit", MOST_RETRIES, "both")
    assert read_protocol("random+image") == ("random", 0, "image")
    assert same_protocol("retry:2") == same_protocol("retry:02") == "retry"
    assert same_protocol("retry:2+image") == "retry+image"
    assert same_protocol("retry:5") == "retry:5"
    for name in ("", "retry:", "retry:x", "retry:21", "retry:-1", "random:1", "noop"):
        with pytest.raises(ValueError, match=r"protocol must be one of|more answers"):
            read_protocol(name)
