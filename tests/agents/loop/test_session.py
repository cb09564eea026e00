"""An episode that is played from outside is the episode that the loop plays."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from agents import EpisodeSession, EpisodeTask, PromptMap, PromptTexts, Turn, load_agent, rollout
from agents.episode import Episode
from textgames import SCENARIOS

ONE_PLAYER = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) == 1]
SEVERAL = [name for name, scenario in SCENARIOS.items() if len(scenario.game().players) > 1]
LONG = ("cleanup-small",)
SOME_SLOW = [pytest.param(name, marks=[pytest.mark.slow] * (name in LONG)) for name in SEVERAL]


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


def essence(episode: Episode) -> tuple[object, ...]:
    steps = [(s.index, s.player, s.observation, s.turn.response, s.action, s.valid, s.reward) for s in episode.steps]
    return (steps, episode.returns, episode.successes, episode.terminated, episode.truncated, episode.metrics)


@pytest.mark.parametrize("name", ONE_PLAYER)
def test_episode_is_that_of_the_loop(name):
    task = EpisodeTask.of(name, SCENARIOS[name].first_seed + 3)
    (expected,) = rollout(RANDOM, [task])
    episode, sums = played(EpisodeSession(name, task.seed))
    assert essence(episode) == essence(expected)
    assert sums == pytest.approx(episode.returns)


@pytest.mark.parametrize("name", SOME_SLOW)
def test_opponents_play_inside_or_outside(name):
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


@pytest.mark.parametrize("name", ["seed", "layout_seed"])
def test_a_seed_that_is_none_is_no_fault_of_the_game(name):
    for value in (-3, 1.5, "x", True):
        with pytest.raises(ValueError, match=f"^{name} must be a whole number of at least 0, got {value!r}$"):
            EpisodeSession("snake", **{name: value})


def test_prompts_are_those_of_the_map():
    session = EpisodeSession("frozen-lake", 1_000_000, prompt_map=PromptMap("direct"))
    assert session.messages == [m.as_chat() for m in PromptMap("direct")(session.request)]
    session.respond("<action>right</action>")
    assert len(session.messages) == 1  # no history unless it is asked for
    remembers = EpisodeSession("frozen-lake", 1_000_000, prompt_map=PromptMap("direct", history_turns=None))
    remembers.respond("<action>right</action>")
    assert [message["role"] for message in remembers.messages] == ["user", "assistant", "user"]


def test_outcome_tells_what_became_of_a_response():
    session = EpisodeSession("frozen-lake", 1_000_000, format_penalty=1.0)
    assert session.respond("no idea").unreadable is not None
    assert session.returns == {"player_0": -1.0}
    outcome = session.respond("<action>down</action>")
    assert (outcome.valid, outcome.action, outcome.unreadable) == (True, "down", None)


def test_turn_with_an_error_leaves_the_episode_unscored():
    session = EpisodeSession("frozen-lake", 1_000_000, name="mine")
    outcome = session.respond(Turn("", error="the server is gone"))
    assert (session.over, outcome.valid) == (True, None)
    assert "mine" in str(session.episode.error)


def test_nobody_is_asked_when_it_is_over():
    session = EpisodeSession("frozen-lake", 1_000_000)
    with pytest.raises(RuntimeError, match="isn't over"):
        session.episode  # noqa: B018
    episode, _ = played(session)
    assert session.player is None
    assert episode.agents == {"player_0": "outside"}
    with pytest.raises(RuntimeError, match="is over"):
        session.respond("left")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seat": "player_9"}, "unknown seat"),
        ({"seat": "player_1", "opponents": None}, "leaves the other seats empty"),
        ({"opponents": {"player_0": "random"}}, "no player for player_1"),
        ({"opponents": "plannner"}, "plannner"),
        ({"no_such_setting": 1}, "no_such_setting"),
        ({"protocol": "tools"}, "'tools' is for models that textbench asks itself"),
    ],
)
def test_what_is_wrong_is_said(options, message):
    with pytest.raises((ValueError, TypeError), match=message):
        EpisodeSession("tic-tac-toe", **options)


def test_many_threads_share_the_environments():
    def play(seed: int) -> tuple[object, ...]:
        return essence(played(EpisodeSession("frozen-lake", seed))[0])

    seeds = range(1_000_000, 1_000_032)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(play, seeds)) == [play(seed) for seed in seeds]


def test_a_player_may_be_out_before_it_is_asked():
    session = EpisodeSession("werewolf-5", 23, seat="player_0")
    assert session.over
    assert (session.player, session.reader) == (None, "player_0")
    assert session.instructions == SCENARIOS["werewolf-5"].game().instructions("player_0")
    with pytest.raises(RuntimeError, match="is over"):
        session.respond("anything")


def test_the_reader_is_who_was_asked_last():
    session = EpisodeSession("tic-tac-toe", 1_000_000, opponents=None)
    readers = []
    while not session.over:
        assert session.reader == session.player
        assert session.instructions == session.request.instructions
        readers.append(session.reader)
        session.respond(RANDOM.act([session.request])[0].response)
    assert set(readers) == {"player_0", "player_1"}
    assert session.reader == readers[-1]


def test_a_response_ends_at_its_action():
    """As an engine would have stopped there, which a server that is sent a message can't know."""
    session = EpisodeSession("frozen-lake", 10_000)
    outcome = session.respond("<think>no <action>left</action></think><action>right</action> or <action>up</action>")
    assert (outcome.valid, outcome.action) == (True, "right")
    assert session.steps[0].turn.response.endswith("<action>right</action>")
    prompts = PromptMap("think", None, PromptTexts.from_file("prefixed"))
    session = EpisodeSession("frozen-lake", 10_000, prompt_map=prompts)
    assert session.messages[-1]["content"].startswith("<think>")
    assert session.respond("no <action>left</action></think><action>right</action>").action == "right"


def test_what_is_written_after_a_prefix_is_the_rest_of_the_response():
    prompts = PromptMap("direct", None, PromptTexts.from_file("prefixed"))
    session = EpisodeSession("frozen-lake", 1_000_000, prompt_map=prompts)
    assert session.messages[-1] == {"role": "assistant", "content": "<action>"}
    outcome = session.respond("right</action>")
    assert (outcome.valid, outcome.action) == (True, "right")
    assert session.steps[0].turn.response == "<action>right</action>" == session.messages[1]["content"]
    outcome = session.respond(Turn("<action>left</action>"))  # whose response is whole
    assert (outcome.valid, outcome.action) == (True, "left")
