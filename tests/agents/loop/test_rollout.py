"""The loop: equal results in any order and at any concurrency, refills, errors, time-outs, and nothing left running."""

import asyncio
import gc
import hashlib
import itertools
import threading
import time

import pytest

import textgames
from agents import EpisodeTask, LanguageAgentPolicy, ScriptedModel, Turn, load_agent
from agents.baselines.random import RandomPlayer
from agents.loop.rollout import rollout
from tests.agents.helpers import Listener, Server, essence

WORDS = ("left", "<action>down</action>", "<think>so</think><action> Right </action>", "up", "no action here")


def response(seed):
    """A response that depends on the decision's seed alone; one in five is unreadable."""
    return WORDS[hashlib.sha256(repr(seed).encode()).digest()[0] % len(WORDS)]


def policy_of(respond=response, *, served=False, **settings):
    """The same model in this process or behind a server."""
    model = Server(respond) if served else ScriptedModel(lambda prompt, decoding, seed: respond(seed), "served")
    return LanguageAgentPolicy(model, **settings)


def tasks(names=("frozen-lake", "snake", "snake-duel"), episodes=8):
    return [EpisodeTask.of(name, seed) for name in names for seed in range(500, 500 + episodes)]


def content(episodes):
    return sorted(map(essence, episodes))


@pytest.fixture(scope="module")
def expected():
    return content(rollout(policy_of(), tasks(), max_concurrency=1))


def test_an_episode_is_that_of_the_environment():
    for episode in rollout(policy_of(), tasks(("frozen-lake-slippery", "snake-long"))):
        env = textgames.SCENARIOS[episode.scenario].parallel_env()
        observations, _ = env.reset(seed=episode.seed)
        total = 0.0
        for index, step in enumerate(episode.steps):
            assert (step.index, step.player, step.observation) == (index, "player_0", observations["player_0"])
            observations, rewards, terminated, truncated, infos = env.step({"player_0": step.turn.response})
            info = infos["player_0"]
            assert (step.action, step.valid, step.unreadable) == (info["action"], info["valid"], info["unreadable"])
            assert step.reward == rewards["player_0"]
            total += rewards["player_0"]
        assert env.agents == []
        assert (episode.terminated, episode.truncated) == (terminated["player_0"], truncated["player_0"])
        assert episode.returns == {"player_0": total}
        assert episode.successes == {"player_0": info["success"]}
        assert episode.agents == {"player_0": "served"}
        assert (episode.error, episode.layout_seed) == (None, None)


def test_what_a_player_is_told():
    player = Listener("nonsense", history_turns=2)
    (episode,) = rollout(player, [EpisodeTask.of("snake", 3, noise=(7, 8))])
    game = textgames.SCENARIOS["snake"].game()
    assert len(player.asked) == len(episode.steps) == 8
    for number, request in enumerate(player.asked):
        assert request.observation == episode.steps[number].observation
        assert request.instructions == game.instructions("player_0")
        assert request.legal_actions == game.actions
        assert request.steps_left == 8 - number
        assert request.seed == (3, 7, 8, number, 0)
        assert request.player == "player_0"
        assert type(request.game) is type(game)
        shown = [(step.observation, "nonsense") for step in episode.steps[max(number - 2, 0) : number]]
        assert list(request.history) == shown
        assert list(request.history_steps_left) == [8 - earlier for earlier in range(max(number - 2, 0), number)]


def test_a_shared_layout_starts_equal_and_then_differs():
    group = [EpisodeTask.of("snake", seed, layout_seed=42) for seed in range(6)]
    still = [EpisodeTask.of("snake", 1, layout_seed=42, noise=(n,)) for n in range(6)]
    for tasks_of_one_layout in (group, still):
        episodes = list(rollout(policy_of(), tasks_of_one_layout))
        assert {episode.layout_seed for episode in episodes} == {42}
        assert len({episode.steps[0].observation for episode in episodes}) == 1
        assert len({tuple(step.turn.response for step in episode.steps) for episode in episodes}) > 1


def test_steps_of_a_round_are_in_the_players_order_whoever_else_is_live():
    seats = {"player_0": load_agent("random"), "player_1": load_agent("greedy")}
    duels = [EpisodeTask.of("snake-duel", 70_000 + k) for k in range(6)]
    alone, together = (content(rollout(seats, duels, max_concurrency=most)) for most in (1, 6))
    assert together == alone
    assert all([step[:2] for step in steps] == sorted(step[:2] for step in steps) for _, _, steps, *_ in together)


@pytest.mark.parametrize("max_concurrency", [3, 64])
def test_the_same_episodes_are_played_in_whatever_order_and_by_servers_too(expected, max_concurrency):
    assert content(rollout(policy_of(), tasks()[::-1], max_concurrency=max_concurrency)) == expected
    server = Server(response, lambda seed: sum(seed) % 5 / 2000)

    async def notebook_cell():  # in which an event loop is running already
        policy = LanguageAgentPolicy(server, name="served")
        return content(rollout(policy, tasks(), max_concurrency=max_concurrency))

    assert asyncio.run(notebook_cell()) == expected
    assert server.peak <= max_concurrency * 2  # two players of one episode are asked together
    assert (server.in_flight, server.closed) == (0, 1)


def test_live_episodes_advance_in_one_batch_that_is_refilled():
    player = Listener("right")
    episodes = list(rollout(player, tasks(("frozen-lake",), 30), max_concurrency=8))
    rounds = sum(len(episode.steps) for episode in episodes)
    sizes, seen = [len(batch) for batch in player.batches], [request.seed for request in player.asked]
    assert len(episodes) == 30
    assert len(seen) == len(set(seen)) == rounds  # every decision once, finished episodes never again
    assert max(sizes) == sizes[0] == 8
    assert sizes.count(8) * 8 >= rounds - 8 * 8  # only the last episodes leave places empty


@pytest.mark.parametrize("make", [policy_of, lambda: policy_of(served=True)])
def test_tasks_are_taken_one_by_one_and_only_when_the_consumer_comes_back(make):
    taken = 0

    def endless():
        nonlocal taken
        for seed in itertools.count():
            taken += 1
            yield EpisodeTask.of("frozen-lake", seed)

    episodes = rollout(make(), endless(), max_concurrency=4)
    assert taken == 0
    for done in range(1, 20):
        next(episodes)
        assert taken <= 4 + done - 1  # the place of the episode in hand isn't given away yet
        time.sleep(0.001)
    episodes.close()


@pytest.mark.parametrize("served", [False, True])
def test_a_providers_error_ends_its_episode_and_no_other(served):
    def failing(seed):
        return Turn("", finish_reason="error", error="status 500") if seed[-2] == 2 and seed[0] % 2 else "left"

    # a lake without holes: nothing else ends an episode before the third round
    lake = {"desc": ["SFF", "FFF", "FFG"], "max_steps": 5}
    lakes = [EpisodeTask.of("TextFrozenLake-v0", seed, **lake) for seed in range(6)]
    episodes = list(rollout(policy_of(failing, served=served), lakes))
    assert len(episodes) == 6
    for episode in episodes:
        if episode.seed % 2:
            assert episode.error == "round 2, player_0 (served): status 500"
            assert (len(episode.steps), episode.terminated, episode.truncated) == (2, False, False)
        else:
            assert (episode.error, len(episode.steps), episode.truncated) == (None, 5, True)


@pytest.mark.parametrize("served", [False, True])
def test_an_error_of_a_local_player_is_raised_among_served_ones_too(served):
    lazy = type("Lazy", (), {"name": "lazy", "act": lambda self, requests: []})()
    with pytest.raises(RuntimeError, match="lazy returned 0 turns for 1 requests"):
        list(rollout({"player_0": policy_of(served=served), "player_1": lazy}, [EpisodeTask.of("snake-duel", 1)]))
    assert [thread.name for thread in threading.enumerate() if thread.name == "rollout"] == []


async def later():
    return []


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda self, requests: "up", r"odd\.act returned a str; accepted: a list, an agents\.Turn\(response\)"),
        (lambda self, requests: ["up"], r"odd returned a str; accepted: agents\.Turn\(response\) for every request"),
        (lambda self, requests: later(), r"a coroutine; .* async def act_async\(request\)"),
    ],
)
def test_what_is_no_list_of_turns_is_refused_with_what_is_accepted(act, said):
    with pytest.raises(TypeError, match=said):
        list(rollout(type("Odd", (), {"name": "odd", "act": act})(), [EpisodeTask.of("snake", 1)]))
    for answer in ("up", Turn(None)):  # of a player of servers, too
        served = policy_of(served=True)
        served.act_async = lambda request, answer=answer: answer
        with pytest.raises(TypeError, match=r"served returned .*; accepted: agents\.Turn\(response\) for every"):
            list(rollout(served, [EpisodeTask.of("snake", 1)]))


def test_closing_cancels_what_is_in_flight_and_leaves_nothing_running():
    server = Server(response, lambda seed: 0.0 if seed[0] == 500 else 60.0)
    thresholds = gc.get_threshold()
    episodes = rollout(LanguageAgentPolicy(server), tasks(("frozen-lake",)), max_concurrency=8)
    assert next(episodes).seed == 500
    started = time.perf_counter()
    episodes.close()
    assert time.perf_counter() - started < 30  # the answers would have taken a minute
    assert (server.cancelled, server.in_flight, server.closed) == (7, 0, 1)
    assert [thread.name for thread in threading.enumerate() if thread.name == "rollout"] == []
    assert gc.get_threshold() == thresholds
    assert gc.get_freeze_count() == 0


def test_a_run_out_of_time_is_cancelled():
    server = Server(response, lambda seed: 60.0)
    with pytest.raises(TimeoutError, match="out of time with 8 episodes in flight"):
        list(rollout(LanguageAgentPolicy(server), tasks(("snake",)), timeout=0.2))
    assert (server.cancelled, server.closed) == (8, 1)
    slow = policy_of(lambda seed: time.sleep(0.06) or "left")
    with pytest.raises(TimeoutError, match="out of time with"):
        list(rollout(slow, tasks(("snake",), 1), timeout=0.1))


@pytest.mark.parametrize(
    ("policies", "options", "error", "said"),
    [
        ({"player_0": policy_of()}, {}, ValueError, "no policy for player_1 of 'snake-duel': policies has player_0"),
        (3, {}, TypeError, "a policy has a name and act"),
        (policy_of(), {"max_concurrency": 0}, ValueError, "max_concurrency must be a whole number of at least 1"),
        (policy_of(), {"timeout": 0}, ValueError, "timeout is a number of seconds above 0"),
    ],
)
def test_bad_arguments(policies, options, error, said):
    with pytest.raises(error, match=said):
        list(rollout(policies, [EpisodeTask.of("snake-duel", 1)], **options))
    with pytest.raises(ValueError, match=r"unknown scenario 'snaek'; did you mean 'snake'\?"):
        EpisodeTask.of("snaek", 1)


def test_the_seconds_of_a_core_are_those_of_each_players_calls():
    """Shared among a batch's episodes, so that their sum is that of the calls, whatever the concurrency."""
    batches = []

    class Busy(RandomPlayer):
        def act(self, requests):
            batches.append(time.process_time() + 0.01)
            while time.process_time() < batches[-1]:
                pass
            return super().act(requests)

    games = tasks(["snake-duel"], 4)
    played = list(rollout({"player_0": Busy(), "player_1": RandomPlayer()}, games, max_concurrency=3))
    spent = [sum(episode.cpu_seconds[player] for episode in played) for player in ("player_0", "player_1")]
    assert spent[0] >= 0.01 * len(batches)
    assert spent[1] > 0
    served = {"player_0": policy_of(), "player_1": policy_of(served=True)}
    assert all(set(episode.cpu_seconds.values()) == {0.0} for episode in rollout(served, games))
