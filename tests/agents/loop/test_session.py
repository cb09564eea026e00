"""An episode that is played from outside is the episode that the loop plays."""

from dataclasses import replace

import pytest

from agents import EpisodeSession, EpisodeTask, PromptMap, PromptTexts, Turn, load_agent, rollout
from agents.episode import Episode
from tests.agents.helpers import essence
from textgames import SCENARIOS

GAMES = ["mastermind", "snake-duel", "kuhn-poker", "werewolf-5", "gathering-duel"]
RANDOM = load_agent("random")


def played(session: EpisodeSession) -> tuple[Episode, dict[str, float]]:
    """The episode as the random player answers, and the sum of every player's rewards."""
    sums: dict[str, float] = {}
    while not session.over:
        player = session.player
        assert player is not None
        outcome = session.respond(RANDOM.act([session.request])[0].response)
        sums[player] = sums.get(player, 0.0) + outcome.reward
    return session.episode, sums


@pytest.mark.parametrize("name", GAMES)
def test_an_episode_is_that_of_the_loop_with_opponents_inside_or_outside(name):
    task = EpisodeTask.of(name, SCENARIOS[name].first_seed + 1)
    (expected,) = rollout(RANDOM, [task])
    seat = SCENARIOS[name].game().players[-1]
    episode, sums = played(EpisodeSession(name, task.seed, seat=seat, opponents="random"))
    assert essence(episode) == essence(expected)
    assert sums == pytest.approx({seat: episode.returns[seat]})
    session = EpisodeSession(task, opponents=None)
    episode, _ = played(session)
    assert essence(episode) == essence(expected)
    assert session.returns == episode.returns


def test_nobody_is_asked_when_it_is_over():
    session = EpisodeSession("frozen-lake", 1_000_000, name="mine")
    with pytest.raises(RuntimeError, match="isn't over"):
        session.episode  # noqa: B018
    outcome = session.respond(Turn("", error="the server is gone"))
    assert (session.over, outcome.valid, session.player) == (True, None, None)
    assert "mine" in str(session.episode.error)  # and unscored
    assert session.episode.agents == {"player_0": "mine"}
    with pytest.raises(RuntimeError, match="is over"):
        session.respond("left")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seat": "player_9"}, "unknown seat"),
        ({"seed": -3}, "^seed must be a whole number of at least 0, got -3$"),
        ({"seat": "player_1", "opponents": None}, "leaves the other seats empty"),
        ({"opponents": {"player_0": "random"}}, "no player for player_1"),
        ({"opponents": "plannner"}, "did you mean 'planner'"),
        ({"no_such_setting": 1}, "no_such_setting"),
        ({"protocol": "tools"}, "'tools' is for models that textbench asks itself"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EpisodeSession("tic-tac-toe", **options)


def test_the_reader_is_the_seat_that_is_asked_or_was_last():
    out = EpisodeSession("werewolf-5", 23, seat="player_0")
    assert (out.over, out.player, out.reader) == (True, None, "player_0")
    assert out.instructions == SCENARIOS["werewolf-5"].game().instructions("player_0")
    session = EpisodeSession("tic-tac-toe", 1_000_000, opponents=None)
    readers = []
    while not session.over:
        assert (session.reader, session.instructions) == (session.player, session.request.instructions)
        readers.append(session.reader)
        session.respond(RANDOM.act([session.request])[0].response)
    assert set(readers) == {"player_0", "player_1"}
    assert session.reader == readers[-1]


def test_a_response_is_the_rest_after_its_prefix_and_ends_at_its_action():
    """As an engine would have stopped there, which a server that is sent a message can't know."""
    prompts = PromptMap("direct", None, PromptTexts.from_file("prefixed"))
    session = EpisodeSession("frozen-lake", 1_000_000, prompt_map=prompts)
    assert session.messages[-1] == {"role": "assistant", "content": "<action>"}
    assert session.respond("right</action> or <action>up</action>") == (0.0, True, "right", None)
    assert session.steps[0].turn.response == "<action>right</action>" == session.messages[1]["content"]
    assert session.respond(Turn("<action>left</action>")).action == "left"  # whose response is whole
    thinks = EpisodeSession("frozen-lake", 10_000, prompt_map=replace(prompts, mode="think"))
    assert thinks.messages[-1]["content"] == "<think>"
    assert thinks.respond("no <action>left</action></think><action>right</action>").action == "right"
