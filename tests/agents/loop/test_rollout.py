"""The loop: equal results in any order and at any concurrency, refills, errors, time-outs, and nothing left running."""

import asyncio
import gc
import hashlib
import itertools
import threading
import time

import pytest

import textgames
from agents import EpisodeTask, LanguageAgentPolicy, PromptMap, ScriptedModel, Turn, load_agent
from agents.loop.rollout import rollout

WORDS = ("left", "<action>down</action>", "<think>so</think><action> Right </action>", "up", "no action here")


def response(seed):
    """A response that depends on the decision's seed alone; one in five is unreadable."""
    return WORDS[hashlib.sha256(repr(seed).encode()).digest()[0] % len(WORDS)]


def local_policy(name="local", **settings):
    return LanguageAgentPolicy(ScriptedModel(lambda prompt, decoding, seed: response(seed), name), **settings)


class Server:
    """A model behind a server whose answers take their own time."""

    name = "served"

    def __init__(self, respond=response, delay=lambda seed: 0.0):
        self.respond, self.delay = respond, delay
        self.in_flight = self.peak = self.cancelled = self.closed = 0

    async def generate_async(self, prompt, decoding, seed):
        self.in_flight += 1
        self.peak = max(self.peak, self.in_flight)
        try:
            await asyncio.sleep(self.delay(seed))
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.in_flight -= 1
        answer = self.respond(seed)
        return answer if isinstance(answer, Turn) else Turn(answer)

    async def aclose(self):
        self.closed += 1


def policy_of(respond, served):
    """The same model in this process or behind a server."""
    return LanguageAgentPolicy(
        Server(respond) if served else ScriptedModel(lambda _, __, seed: respond(seed), "served")
    )


def tasks(names=("frozen-lake", "snake", "snake-duel"), episodes=8):
    return [EpisodeTask.of(name, seed) for name in names for seed in range(500, 500 + episodes)]


def content(episodes):
    return sorted(
        (
            episode.scenario,
            episode.seed,
            [(s.index, s.player, s.observation, s.turn.response, s.action, s.valid, s.reward) for s in episode.steps],
            episode.returns,
            episode.successes,
            episode.terminated,
            episode.truncated,
            episode.error,
        )
        for episode in episodes
    )


@pytest.fixture(scope="module")
def expected():
    return content(rollout(local_policy(), tasks(), max_concurrency=1))


# ---------------------------------------------------------------- what is played


def test_an_episode_is_that_of_the_environment():
    """Replayed by hand through the public environment with the same responses, every number agrees."""
    for episode in rollout(local_policy(), tasks(("frozen-lake-slippery", "snake-long"))):
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
        assert episode.agents == {"player_0": "local"}
        assert (episode.error, episode.layout_seed) == (None, None)


def test_what_a_player_is_told():
    asked = []

    class Player:
        name = "witness"
        history_turns = 2

        def act(self, requests):
            asked.extend(requests)
            return [Turn("nonsense") for _ in requests]

    (episode,) = rollout(Player(), [EpisodeTask.of("snake", 3, noise=(7, 8))])
    game = textgames.SCENARIOS["snake"].game()
    assert len(asked) == len(episode.steps) == 8
    for number, request in enumerate(asked):
        assert request.observation == episode.steps[number].observation
        assert request.instructions == game.instructions("player_0")
        assert request.legal_actions == game.actions
        assert request.steps_left == 8 - number
        assert request.seed == (3, 7, 8, number, 0)
        assert request.player == "player_0"
        assert type(request.game) is type(game)
        shown = [(step.observation, "nonsense") for step in episode.steps[max(number - 2, 0) : number]]
        assert list(request.history) == shown


def test_history_reaches_the_prompt_when_it_is_on():
    for turns, messages in ((0, 1), (1, 3), (None, 15)):
        policy = local_policy(prompt_map=PromptMap(history_turns=turns))
        longest = next(e for e in rollout(policy, tasks(("snake",), 20)) if len(e.steps) == 8)
        assert len(longest.steps[7].turn.prompt) == messages


def test_a_shared_layout_starts_equal_and_then_differs():
    group = [EpisodeTask.of("snake", seed, layout_seed=42) for seed in range(6)]
    episodes = list(rollout(local_policy(), group))
    assert len({episode.steps[0].observation for episode in episodes}) == 1
    assert len({tuple(step.turn.response for step in episode.steps) for episode in episodes}) > 1
    assert {episode.layout_seed for episode in episodes} == {42}
    still = [EpisodeTask.of("snake", 1, layout_seed=42, noise=(n,)) for n in range(6)]
    assert len({e.steps[0].turn.response for e in rollout(local_policy(), still)}) > 1


def test_settings_reach_the_environment():
    task = EpisodeTask.of("frozen-lake", 5, format_penalty=1.0, max_steps=2)
    (episode,) = rollout(LanguageAgentPolicy(ScriptedModel(["?", "?"])), [task])
    assert [step.reward for step in episode.steps] == [-1.0, -1.0]
    assert [step.unreadable for step in episode.steps] == ["no_tag", "no_tag"]
    assert episode.truncated
    assert not episode.terminated
    bare = EpisodeTask.of("TextFrozenLake-v0", 5, max_steps=2, size=5)
    (episode,) = rollout(LanguageAgentPolicy(ScriptedModel(["?", "?"])), [bare])
    assert episode.scenario == "TextFrozenLake-v0"
    assert "5 wide" in episode.steps[0].observation


# ---------------------------------------------------------------- equal however it is played


def test_steps_of_a_round_are_in_the_players_order_whoever_else_is_live():
    seats = {"player_0": load_agent("random"), "player_1": load_agent("greedy")}
    duels = [EpisodeTask.of("snake-duel", 70_000 + k) for k in range(12)]
    alone, together = (content(rollout(seats, duels, max_concurrency=most)) for most in (1, 12))
    assert together == alone
    for *_, steps, _, _, _, _, _ in together:
        assert [step[:2] for step in steps] == sorted(step[:2] for step in steps)


@pytest.mark.parametrize("max_concurrency", [3, 64])
def test_lock_step_results_do_not_depend_on_concurrency(expected, max_concurrency):
    assert content(rollout(local_policy(), tasks()[::-1], max_concurrency=max_concurrency)) == expected


@pytest.mark.parametrize("max_concurrency", [1, 3, 64])
def test_a_server_plays_the_same_episodes_in_whatever_order_it_answers(expected, max_concurrency):
    server = Server(delay=lambda seed: sum(seed) % 5 / 2000)
    episodes = content(rollout(LanguageAgentPolicy(server, name="local"), tasks(), max_concurrency=max_concurrency))
    assert episodes == expected
    assert server.peak <= max_concurrency * 2  # two players of one episode are asked together
    assert (server.in_flight, server.closed) == (0, 1)


def test_a_local_player_against_a_served_one_plays_the_same(expected):
    duels = [EpisodeTask.of("snake-duel", seed) for seed in range(500, 508)]
    policies = {"player_0": LanguageAgentPolicy(Server(delay=lambda seed: seed[-2] / 5000)), "player_1": local_policy()}
    mixed = content(rollout(policies, duels, max_concurrency=5))
    assert mixed == [episode for episode in expected if episode[0] == "snake-duel"]


# ---------------------------------------------------------------- batches and refills


def test_live_episodes_advance_in_one_batch_that_is_refilled():
    sizes, seen = [], []

    class Player:
        name = "counter"

        def act(self, requests):
            sizes.append(len(requests))
            seen.extend(request.seed for request in requests)
            return [Turn("right") for _ in requests]

    episodes = list(rollout(Player(), tasks(("frozen-lake",), 30), max_concurrency=8))
    rounds = sum(len(episode.steps) for episode in episodes)
    assert len(episodes) == 30
    assert len(seen) == len(set(seen)) == rounds  # every decision once, finished episodes never again
    assert max(sizes) == sizes[0] == 8
    full = [size for size in sizes if size == 8]
    assert len(full) * 8 >= rounds - 8 * 8  # only the last episodes leave places empty


@pytest.mark.parametrize("make", [local_policy, lambda: LanguageAgentPolicy(Server())])
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


def test_on_step_is_told_every_step():
    for policy in (local_policy(), LanguageAgentPolicy(Server(), name="local")):
        assert list(rollout(policy, [])) == []
        told = []
        episodes = list(rollout(policy, tasks(), on_step=lambda task, step, told=told: told.append((task.seed, step))))
        assert len(told) == sum(len(episode.steps) for episode in episodes)
        assert {seed for seed, _ in told} == {task.seed for task in tasks()}


# ---------------------------------------------------------------- when something goes wrong


@pytest.mark.parametrize("served", [False, True])
def test_a_providers_error_ends_its_episode_and_no_other(served):
    def failing(seed):
        return Turn("", finish_reason="error", error="status 500") if seed[-2] == 2 and seed[0] % 2 else "left"

    # a lake without holes: nothing else ends an episode before the third round
    lake = {"desc": ["SFF", "FFF", "FFG"], "max_steps": 5}
    episodes = rollout(policy_of(failing, served), [EpisodeTask.of("TextFrozenLake-v0", s, **lake) for s in range(6)])
    by_seed = {episode.seed: episode for episode in episodes}
    assert len(by_seed) == 6
    for seed, episode in by_seed.items():
        if seed % 2:
            assert episode.error == "round 2, player_0 (served): status 500"
            assert (len(episode.steps), episode.terminated, episode.truncated) == (2, False, False)
        else:
            assert (episode.error, len(episode.steps), episode.truncated) == (None, 5, True)


@pytest.mark.parametrize("served", [False, True])
def test_an_error_of_the_program_is_raised(served):
    def broken(seed):
        raise ZeroDivisionError("in the player")

    with pytest.raises(ZeroDivisionError, match="in the player"):
        list(rollout(policy_of(broken, served), tasks()))
    assert [thread.name for thread in threading.enumerate() if thread.name == "rollout"] == []


def test_a_broken_local_player_among_served_ones_is_raised_too(monkeypatch):
    class Lazy:
        name = "lazy"

        def act(self, requests):
            return []

    policies = {"player_0": LanguageAgentPolicy(Server()), "player_1": Lazy()}
    with pytest.raises(RuntimeError, match="lazy returned 0 turns for 1 requests"):
        list(rollout(policies, [EpisodeTask.of("snake-duel", 1)]))
    with pytest.raises(RuntimeError, match="lazy returned 0 turns for 1 requests"):
        list(rollout(Lazy(), [EpisodeTask.of("snake", 1)]))

    async def act(self, requests):
        return []

    for answer, said in (
        (lambda self, requests: None, r"lazy\.act returned a NoneType; accepted: a list, an agents\.Turn\(response\)"),
        (lambda self, requests: "up", r"lazy\.act returned a str; accepted"),
        (lambda self, requests: Turn("up"), r"lazy\.act returned a Turn; accepted"),
        (lambda self, requests: ["up"], r"lazy returned a str; accepted: agents\.Turn\(response\) for every request"),
        (act, r"a coroutine; .* async def act_async\(request\)"),
    ):
        monkeypatch.setattr(Lazy, "act", answer)
        with pytest.raises(TypeError, match=said):
            list(rollout(Lazy(), [EpisodeTask.of("snake", 1)]))


@pytest.mark.parametrize("answer", ["up", None, Turn(None)])
def test_what_a_player_of_servers_answers_is_looked_at_too(answer):
    class Served:
        name = "served"

        def act(self, requests):
            return [answer for _ in requests]

        async def act_async(self, request):
            return answer

    said = r"served returned .*; accepted: agents\.Turn\(response\) for every request, with a text"
    with pytest.raises(TypeError, match=said):
        list(rollout(Served(), [EpisodeTask.of("snake", 1)]))


def test_closing_cancels_what_is_in_flight_and_leaves_nothing_running():
    server = Server(delay=lambda seed: 0.0 if seed[0] == 500 else 60.0)
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
    server = Server(delay=lambda seed: 60.0)
    with pytest.raises(TimeoutError, match="out of time with 8 episodes in flight"):
        list(rollout(LanguageAgentPolicy(server), tasks(("snake",)), timeout=0.2))
    assert (server.cancelled, server.closed) == (8, 1)

    class Slow:
        name = "slow"

        def act(self, requests):
            time.sleep(0.06)
            return [Turn("left") for _ in requests]

    with pytest.raises(TimeoutError, match="out of time with"):
        list(rollout(Slow(), tasks(("snake",)), timeout=0.1))


def test_it_works_inside_a_running_event_loop():
    async def notebook_cell():
        return content(rollout(LanguageAgentPolicy(Server(), name="local"), tasks(("snake",))))

    assert len(asyncio.run(notebook_cell())) == 8


@pytest.mark.parametrize(
    ("policies", "options", "error", "said"),
    [
        ({"player_0": local_policy()}, {}, ValueError, "no policy for player_1 of 'snake-duel': policies has player_0"),
        ({}, {}, ValueError, "policies has none"),
        (3, {}, TypeError, "a policy has a name and act"),
        (local_policy(), {"max_concurrency": 0}, ValueError, "max_concurrency must be a whole number of at least 1"),
        (local_policy(), {"timeout": 0}, ValueError, "timeout is a number of seconds above 0"),
    ],
)
def test_bad_arguments(policies, options, error, said):
    with pytest.raises(error, match=said):
        list(rollout(policies, [EpisodeTask.of("snake-duel", 1)], **options))


def test_bad_tasks():
    with pytest.raises(ValueError, match=r"unknown scenario 'snaek'; did you mean 'snake'\?"):
        EpisodeTask.of("snaek", 1)
    with pytest.raises(TypeError, match="has no setting 'sise'"):
        list(rollout(local_policy(), [EpisodeTask.of("frozen-lake", 1, sise=4)]))


class Busy:
    """Takes a hundredth of a second of a core for every batch."""

    name, history_turns = "busy", 0

    def __init__(self):
        self.batches = 0

    def act(self, requests):
        self.batches += 1
        end = time.process_time() + 0.01
        while time.process_time() < end:
            pass
        return [Turn("left")] * len(requests)


def test_the_seconds_of_a_core_are_those_of_each_players_calls():
    """Shared among a batch's episodes, so that their sum is that of the calls, whatever the concurrency."""
    busy, games = Busy(), tasks(["snake-duel"], 4)
    played = list(rollout({"player_0": busy, "player_1": load_agent("random")}, games, max_concurrency=3))
    spent = [sum(episode.cpu_seconds[player] for episode in played) for player in ("player_0", "player_1")]
    assert spent[0] >= 0.01 * busy.batches
    assert spent[1] > 0
    served = {"player_0": local_policy(), "player_1": policy_of(response, served=True)}
    assert all(set(episode.cpu_seconds.values()) == {0.0} for episode in rollout(served, games))
