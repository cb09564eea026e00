"""Entries: a true one is accepted, and every forgery is refused with the place where it differs."""

import json
import os
import shutil
from pathlib import Path

import pytest

from benchmark.entries.entry import folder_name
from benchmark.entries.validation import check_entry
from benchmark.runs.folder import RunFolder

EPISODES = 2


@pytest.fixture(scope="module", autouse=True)
def short_entries():
    """Entries of two episodes a scenario instead of fifty: forgeries are as easy to see, and sooner."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.entries.entry.MIN_EPISODES", EPISODES)
        yield


@pytest.fixture(scope="module")
def true_entry(tmp_path_factory, reference_cache, short_entries):
    """A whole entry of the greedy player; made once."""
    from benchmark.cli import main

    folder = tmp_path_factory.mktemp("entry")
    run, entries = str(folder / "run"), str(folder / "leaderboards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEXTBENCH_CACHE_DIR", str(reference_cache))
        assert main(["run", "--agent", "greedy", "--episodes", str(EPISODES), "--out", run, "--quiet"]) == 0
    assert main(["submit", run, "--out", entries, "--author", "somebody", "--note", "a test"]) == 0
    return Path(entries) / "greedy"


@pytest.fixture
def entry(true_entry, tmp_path):
    """A copy to tamper with."""
    return Path(shutil.copytree(true_entry, tmp_path / "greedy"))


def lines_of(entry):
    return [json.loads(line) for line in (entry / "episodes.jsonl").read_text().splitlines()]


def write_lines(entry, records):
    (entry / "episodes.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def change_manifest(entry, change):
    manifest = json.loads((entry / "manifest.json").read_text())
    change(manifest)
    (entry / "manifest.json").write_text(json.dumps(manifest))


def test_a_true_entry_is_accepted(true_entry, textbench):
    assert check_entry(true_entry).problems == []
    done = textbench("validate", true_entry.parent)
    assert done.code == 0
    assert "valid, 8 episodes replayed" in done.out


def test_an_entry_in_anothers_folder_is_refused(entry):
    (problem,) = check_entry(entry.rename(entry.parent / "someone-elses")).problems
    assert problem == "manifest.json: the agent's folder is 'greedy', this one is 'someone-elses'"


def test_an_entry_is_self_contained(true_entry):
    manifest = RunFolder.open(true_entry).manifest
    assert manifest["kind"] == "textbench-entry"
    assert (manifest["author"], manifest["note"]) == ("somebody", "a test")
    assert manifest["agents"][0]["spec"] == "greedy"
    assert manifest["textbench"]["version"]
    assert set(manifest["scenarios"]) == {"frozen-lake", "frozen-lake-slippery", "snake", "snake-poison"}
    assert all(step["response"] for record in lines_of(true_entry) for step in record["steps"])
    keys = [(record["scenario"], record["seed"]) for record in lines_of(true_entry)]
    assert keys == sorted(keys)


def won(records):
    return next(
        i for i, record in enumerate(records) if record["scenario"] == "snake" and record["returns"]["player_0"] > 1
    )


def raise_reward(records):
    records[won(records)]["steps"][2]["reward"] += 1


def raise_return(records):
    records[won(records)]["returns"]["player_0"] += 1


def raise_both(records):
    raise_reward(records)
    raise_return(records)


def claim_success(records):
    record = next(r for r in records if not r["successes"]["player_0"])
    record["successes"]["player_0"] = True


def true_is_one(records):
    records[won(records)]["successes"]["player_0"] = 1


def hide_invalid(records):
    records[0]["steps"][0]["response"] = "garbage"


def change_action(records):
    step = records[won(records)]["steps"][0]
    step["action"] = "up" if step["action"] != "up" else "down"


def swap_seeds(records):
    a, b = won(records), won(records) + 1
    records[a]["seed"], records[b]["seed"] = records[b]["seed"], records[a]["seed"]


def other_board(records):
    records[won(records)]["observations_digest"] = "0" * 32


def cut_short(records):
    records[won(records)]["steps"].pop()


def go_on_after_the_end(records):
    record = records[won(records)]
    record["steps"].append({**record["steps"][-1], "round": len(record["steps"])})


def terminated_not_truncated(records):
    record = records[won(records)]
    record["terminated"], record["truncated"] = record["truncated"], record["terminated"]


def drop_an_episode(records):
    del records[won(records)]


def play_twice(records):
    records.append(records[won(records)])


def play_another_seed(records):
    records[won(records)]["seed"] = 49_999


def unscored(records):
    records[won(records)]["error"] = "server down"


def extra_field(records):
    records[won(records)]["verified"] = True


def wrong_player(records):
    records[won(records)]["steps"][0]["player"] = "player_9"


def rounds_out_of_order(records):
    records[won(records)]["steps"][0]["round"] = 3


def negative_tokens(records):
    records[won(records)]["steps"][0]["tokens"] = [-5, 1]


def text_as_response(records):
    records[won(records)]["steps"][0]["response"] = None


@pytest.mark.parametrize(
    ("forge", "place"),
    [
        (raise_reward, "step 2: reward is"),
        (raise_return, "returns is"),
        (raise_both, "step 2: reward is"),
        (claim_success, "successes is {'player_0': True}, the replay gives {'player_0': False}"),
        (true_is_one, "successes.player_0 must be a valid boolean, got 1"),
        (hide_invalid, "step 0: valid is True, the replay gives False"),
        (change_action, "step 0: action is"),
        (swap_seeds, "the replay gives"),
        (other_board, "observations_digest is '00000000"),
        (cut_short, "but the game goes on"),
        (go_on_after_the_end, "the game was over before it"),
        (terminated_not_truncated, "terminated is"),
        (drop_an_episode, "is missing"),
        (play_twice, "the same episode again"),
        (play_another_seed, "isn't an episode of this entry"),
        (unscored, "is unscored (server down)"),
        (extra_field, "verified is unknown here"),
        (wrong_player, "steps.0.player must be one of player_0, got 'player_9'"),
        (rounds_out_of_order, "belongs to round 3, expected round 0"),
        (negative_tokens, "steps.0.tokens.0 must be greater than or equal to 0, got -5"),
        (text_as_response, "steps.0.response must be a valid string, got None"),
    ],
)
def test_a_forged_episode_is_refused_with_its_place(entry, forge, place):
    records = lines_of(entry)
    forge(records)
    write_lines(entry, records)
    problems = check_entry(entry).problems
    assert any(place in problem for problem in problems), problems
    assert all("episodes.jsonl" in problem for problem in problems)
    if "must be" in place or "unknown here" in place:  # isn't even the shape of an episode
        assert any("episodes.jsonl line " in problem for problem in problems)
    elif forge not in (drop_an_episode, claim_success):
        assert any("snake, greedy, seed 4" in problem or "frozen-lake, greedy" in problem for problem in problems)


def test_the_command_refuses_a_forged_entry(entry, textbench):
    records = lines_of(entry)
    raise_reward(records)
    write_lines(entry, records)
    done = textbench("validate", entry)
    assert (done.code, done.out) == (1, "")
    assert "refused" in done.err


def test_responses_that_are_as_good_but_arent_the_agents_are_refused(entry):
    records = lines_of(entry)
    step = records[won(records)]["steps"][0]
    step["response"] = f"<action>{step['action']}</action>"
    write_lines(entry, records)
    (problem,) = check_entry(entry).problems
    assert "step 0: the response is" in problem
    assert "the agent 'greedy' answers" in problem


def drop_scenario(manifest):
    del manifest["scenarios"]["snake-poison"]
    manifest["matchups"] = [row for row in manifest["matchups"] if row["scenario"] != "snake-poison"]


def easier_game(manifest):
    manifest["scenarios"]["snake"]["kwargs"]["num_apples"] = 30


def more_time(manifest):
    manifest["scenarios"]["snake"]["horizon"] = 80


def other_seeds(manifest):
    manifest["matchups"][0]["seeds"] = [[10_007, 10_008]]


def fewer_episodes(manifest):
    manifest["settings"]["episodes"] = 1
    for row in manifest["matchups"]:
        row["seeds"][0][1] = row["seeds"][0][0]


def own_scenario(manifest):
    manifest["scenarios"]["easy"] = manifest["scenarios"]["snake"]
    manifest["matchups"].append({"scenario": "easy", "agents": ["greedy"], "seeds": [[40_000, 40_001]]})


def other_agent(manifest):
    manifest["agents"][0]["name"] = "planner"


def two_cards(manifest):
    manifest["agents"] *= 2


def no_episodes_of(manifest):
    manifest["matchups"] = manifest["matchups"][1:]


def offset(manifest):
    manifest["settings"]["seed_offset"] = 100


@pytest.mark.parametrize(
    ("forge", "place"),
    [
        (drop_scenario, "scenario 'snake-poison' is missing"),
        (easier_game, "scenarios.snake.kwargs.num_apples is 30, the scenario's is 5"),
        (more_time, "scenarios.snake.horizon is 80, the scenario's is 8"),
        (other_seeds, "the seeds aren't 10000, 10001, ... without a gap"),
        (fewer_episodes, "1 episodes, an entry has at least 2"),
        (own_scenario, "there is no scenario 'easy'"),
        (other_agent, "agent is 'greedy', its card says 'planner'"),
        (two_cards, "an entry has the card of one agent"),
        (no_episodes_of, "no episodes of 'frozen-lake'"),
        (offset, "settings.seed_offset is 100, an entry has 0"),
    ],
)
def test_a_forged_manifest_is_refused_with_its_place(entry, forge, place):
    change_manifest(entry, forge)
    problems = check_entry(entry).problems
    assert any(problem == f"manifest.json: {place}" or problem.endswith(place) for problem in problems), problems


def step_of(records):
    return records[won(records)]["steps"][0]


IMPOSSIBLE_EPISODES = {
    "tokens beyond any float": (lambda r: step_of(r).update(tokens=[10**400, 0]), "steps.0.tokens.0 must be "),
    "tokens beyond any model": (lambda r: step_of(r).update(tokens=[10**10, 0]), "tokens.0 must be less than or equal"),
    "tokens as text": (lambda r: step_of(r).update(tokens=["5", 0]), "tokens.0 must be a valid integer, got '5'"),
    "tokens as truth": (lambda r: step_of(r).update(tokens=[True, 0]), "tokens.0 must be a valid integer, got True"),
    "half a token": (lambda r: step_of(r).update(tokens=[0.5, 0]), "tokens.0 must be a valid integer, got 0.5"),
    "three counts": (lambda r: step_of(r).update(tokens=[1, 2, 3]), "tokens must have at most 2 items"),
    "more reasoning than answer": (
        lambda r: step_of(r).update(tokens=[5, 5], reasoning_tokens=6),
        "has more reasoning tokens than completion tokens",
    ),
    "tokens of a script": (
        lambda r: step_of(r).update(tokens=[5, 5]),
        "has tokens, but the agent 'greedy' has no model",
    ),
    "more cached than used": (
        lambda r: r[won(r)]["measured"].update(cached_tokens=[9, 0]),
        "measured.cached_tokens is [9, 0], all tokens are [0, 0]",
    ),
    "cached of nobody": (
        lambda r: r[won(r)]["measured"].update(cached_by_player={"player_9": [0, 0]}),
        "measured.cached_by_player names 'player_9', who doesn't play",
    ),
    "cached by another count": (
        lambda r: r[won(r)]["measured"].update(cached_by_player={"player_0": [9, 0]}),
        "measured.cached_by_player is {'player_0': [9, 0]}, measured.cached_tokens is [0, 0]",
    ),
    "served by an escape": (
        lambda r: r[won(r)]["measured"].update(served_by={"player_0": ["\x1b[2J"]}),
        "measured.served_by says that 'player_0' was answered by ['\\x1b[2J']",
    ),
    "serving nobody": (
        lambda r: r[won(r)]["measured"].update(served_by={"player_9": ["m"]}),
        "measured.served_by says that 'player_9' was answered by ['m']",
    ),
    "seconds NaN": (lambda r: r[won(r)]["measured"].update(seconds=float("nan")), "NaN isn't a JSON number"),
    "seconds endless": (lambda r: r[won(r)]["measured"].update(seconds=float("inf")), "Infinity isn't a JSON number"),
    "seconds negative": (lambda r: r[won(r)]["measured"].update(seconds=-1), "measured.seconds must be greater than"),
    "seconds huge": (lambda r: r[won(r)]["measured"].update(seconds=1e308), "measured.seconds must be less than"),
    "a huge reward": (lambda r: step_of(r).update(reward=10**400), "steps.0.reward must be a finite number"),
    "truth as reward": (lambda r: step_of(r).update(reward=True), "steps.0.reward must be a valid number, got True"),
    "a seed with a point": (lambda r: r[won(r)].update(seed=40_002.0), "seed must be a valid integer, got 40002.0"),
    "a huge seed": (lambda r: r[won(r)].update(seed=2**63), "seed must be less than or equal to 9007199254740991"),
    "a reason to stop": (lambda r: step_of(r).update(finish_reason="won"), "finish_reason is 'won', there are ('stop'"),
    "a player more": (
        lambda r: r[won(r)].update(
            agents={"player_0": "greedy", "player_1": "greedy"},
            returns={"player_0": 1.0, "player_1": 1.0},
            successes={"player_0": True, "player_1": True},
        ),
        "isn't an episode of this entry",
    ),
    "another player": (
        lambda r: r[won(r)].update(
            agents={"me": "greedy"}, returns={"me": 9.0}, successes={"me": True}, steps=[{**step_of(r), "player": "me"}]
        ),
        "player_0 had to answer, me did",
    ),
    "a deep nest": (
        lambda r: r[won(r)].update(error=json.loads("[" * 900 + "]" * 900)),
        "recursion limit exceeded",
    ),
    "invisible agent": (
        lambda r: r[won(r)].update(agents={"player_0": "gre\u200bedy"}),
        "isn't an episode of this entry",
    ),
}


@pytest.mark.parametrize(("forge", "place"), IMPOSSIBLE_EPISODES.values(), ids=IMPOSSIBLE_EPISODES)
def test_an_impossible_figure_is_refused_with_its_line(entry, textbench, forge, place):
    records = lines_of(entry)
    forge(records)
    write_lines(entry, records)
    done = textbench("validate", entry)
    assert (done.code, done.out) == (1, "")
    assert place in done.err
    assert all(line.startswith("  episodes.jsonl") and len(line) < 600 for line in done.err.splitlines()[1:])


def test_a_key_that_stands_twice_in_a_line_is_refused(entry):
    first, rest = (entry / "episodes.jsonl").read_text().split("\n", 1)
    (entry / "episodes.jsonl").write_text(first.replace('"error"', '"seed":10000,"error"') + "\n" + rest)
    assert "episodes.jsonl line 1 isn't an episode: the key 'seed' stands twice" in check_entry(entry).problems


@pytest.mark.parametrize(
    "content", ["[" * 100_000, "\ufeff{}", "{}\x00", '{"seed": 1e', '{"seed": ' + "9" * 9000 + "}", "\ud800"]
)
def test_a_line_of_garbage_is_refused(entry, content):
    with (entry / "episodes.jsonl").open("ab") as file:
        file.write(content.encode("utf-8", "surrogatepass") + b"\n")
    (problem,) = check_entry(entry).problems
    assert problem.startswith("episodes.jsonl line 9 isn't an episode: ")
    assert len(problem) < 300


def card(manifest):
    return manifest["agents"][0]


def named(name):
    """The entry of another agent, consistently under this name."""

    def forge(manifest):
        card(manifest).update(name=name, spec="hf:somebody/model", kind="hf")
        manifest.update(agent=name, prices={})
        manifest["settings"]["agents"] = [f"{name}=hf:somebody/model"]
        for row in manifest["matchups"]:
            row["agents"] = [name]

    return forge


def of_a_model(**settings):
    """The entry of a model whose card says this besides what it should."""
    whole = {"temperature": 0.5, "top_p": 1.0, "max_tokens": 256, **settings}

    def forge(manifest):
        named("model")(manifest)
        card(manifest)["settings"] = {name: value for name, value in whole.items() if value is not None}

    return forge


IMPOSSIBLE_MANIFESTS = {
    "negative price": (
        lambda m: m.update(prices={"greedy": {"input": -1, "output": 0}}),
        "prices.greedy.input must be",
    ),
    "price as truth": (lambda m: m.update(prices={"greedy": {"input": True, "output": 0}}), "must be a valid number"),
    "huge price": (lambda m: m.update(prices={"greedy": {"input": 10**400, "output": 0}}), "prices.greedy.input must"),
    "half a price": (lambda m: m.update(prices={"greedy": {"input": 1}}), "prices.greedy.output is missing"),
    "another's price": (
        lambda m: m.update(prices={"planner": {"input": 1, "output": 1}}),
        "prices are given for 'planner', the entry is of 'greedy'",
    ),
    "a card of two temperatures": (
        lambda m: (of_a_model(temperature=1.0)(m), m["settings"].update(temperature=0.5)),
        "settings.temperature gives 0.5, the card says 1.0",
    ),
    "a temperature that nobody set": (of_a_model(temperature=1.5), "settings.temperature gives 0.5, the card says 1.5"),
    "tokens that nobody set": (of_a_model(max_tokens=4096), "settings.max_tokens gives 256, the card says 4096"),
    "a card without a temperature": (
        of_a_model(temperature=None),
        "settings.temperature gives 0.5, the card says None",
    ),
    "another kind": (lambda m: card(m).update(kind="openai"), "the card's kind is 'openai', its spec 'greedy'"),
    "a mode that nobody played": (
        lambda m: (of_a_model(mode="think")(m), m["settings"].update(mode="direct")),
        "settings.mode gives 'direct', the card says 'think'",
    ),
    "a history that nobody read": (
        lambda m: (of_a_model(history_turns=0)(m), m["settings"].update(history=4)),
        "settings.history gives 4, the card says 0",
    ),
    "a negative temperature": (of_a_model(temperature=-1), "the card's settings aren't possible: decoding.temperature"),
    "a hot temperature": (lambda m: m["settings"].update(temperature="hot"), "settings.temperature must be a number"),
    "a setting less": (lambda m: m["settings"].pop("mode"), "settings.mode is missing"),
    "a setting more": (lambda m: m["settings"].update(luck=1), "settings.luck is unknown"),
    "episodes as truth": (lambda m: m["settings"].update(episodes=True), "settings.episodes must be a valid integer"),
    "a scenario twice": (lambda m: m["settings"]["scenarios"].append("snake"), "settings.scenarios has a name twice"),
    "a scenario that wasn't asked for": (
        lambda m: m["settings"].update(scenarios=["snake"]),
        "settings.scenarios lacks 'frozen-lake', which has episodes",
    ),
    "a matchup twice": (
        lambda m: m["matchups"].append(m["matchups"][0]),
        "the matchup of greedy in 'frozen-lake' twice",
    ),
    "seeds twice": (lambda m: m["matchups"][0].update(seeds=[[10_000, 10_001]] * 2), "must be [first, last] pairs"),
    "seeds that cancel out": (
        lambda m: m["matchups"][0].update(seeds=[[0, 10**15], [10**15, 0]]),
        "must be [first, last] pairs in order",
    ),
    "endless seeds": (lambda m: m["matchups"][0].update(seeds=[[0, 10**15]]), "more than 10,000,000 seeds"),
    "seeds with a point": (lambda m: m["matchups"][0].update(seeds=[[10_000.0, 10_001]]), "must be a valid integer"),
    "another's spec": (lambda m: card(m).update(spec="planner"), "which is a player of the project, but its spec is"),
    "nobody's spec": (lambda m: m["settings"].update(agents=["random"]), "settings.agents has no agent 'greedy'"),
    "a zero-width name": (named("my\u200bmodel"), "the agent's name is 'my\\u200bmodel', accepted are"),
    "a name that turns round": (named("\u202eledom"), "agent has the invisible character U+202E"),
    "a name in other letters": (named("grееdy"), "the agent's name is 'grееdy', accepted are"),
    "a name in wide letters": (named("\uff47reedy"), "the agent's name is"),
    "a name with a new line": (named("my\nmodel"), "agent has the invisible character U+000A"),
    "a name with a space at its end": (named("model "), "the agent's name is 'model '"),
    "no name": (named(""), "the agent's name is ''"),
    "a name of a million letters": (named("x" * 10**6), "agent has 1,000,000 characters, at most 1,000"),
    "the project's name": (named("Planner"), "which is a player of the project, but its spec is 'hf:somebody/model'"),
    "a bell in the note": (lambda m: m.update(note="\x07"), "note has the invisible character U+0007"),
    "an escape in the author": (lambda m: m.update(author="\x1b[2J"), "author has the invisible character U+001B"),
    "an escape in a key": (lambda m: m["packages"].update({"\x1b[2J": "1"}), "a key of packages has the invisible"),
    "an escape on the card": (of_a_model(model="\x1b[2J"), "agents.0.settings.model has the invisible character"),
    "a huge number on the card": (of_a_model(context=10**400), "agents.0.settings.context is 1000000000"),
    "NaN on the card": (of_a_model(context=float("nan")), "NaN isn't a JSON number"),
    "a name that leaves the folder": (named(".."), "the agent's name is '..', a name begins with a letter or a digit"),
    "a name that is an option": (named("-rf"), "the agent's name is '-rf', a name begins with a letter or a digit"),
    "a hidden name": (named(".git"), "a name begins with a letter or a digit"),
    "a device's name": (named("CON"), "the agent's name is 'CON', which can't be a folder's on Windows"),
    "a device's name with an ending": (named("lpt1.txt"), "which can't be a folder's on Windows"),
    "a name of 101 letters": (named("x" * 101), "accepted are 1 to 100 letters"),
    "the name of a model that ships": (named("tiny"), "which is a player of the project, but its spec is"),
    "the name of a model that ships, larger": (named("Tiny-MSGRPO-Snake"), "which is a player of the project"),
    "another model than the spec's": (
        of_a_model(model="somebody/other"),
        "the card's model is 'somebody/other', its spec 'hf:somebody/model'",
    ),
    "another model's name": (of_a_model(model_name="other"), "the card's model_name is 'other', its spec 'hf:"),
    "another provider's model": (of_a_model(model_kind="openai"), "the card's model_kind is 'openai', its spec 'hf:"),
    "a model without a kind": (
        lambda m: (of_a_model()(m), card(m).update(kind="scripted")),
        "the card's kind is 'scripted', its spec 'hf:somebody/model'",
    ),
    "a note of a million letters": (lambda m: m.update(note="x" * 10**6), "note has 1,000,000 characters"),
    "a field more": (lambda m: m.update(verified=True), "verified is unknown here"),
    "another's game": (
        lambda m: m["scenarios"]["snake"].update(env_id="os:Snake-v0"),
        "an entry can't bring its own game",
    ),
    "an impossible game": (
        lambda m: m["scenarios"]["snake"]["kwargs"].update(num_apples=10**20),
        "the manifest's scenario 'snake' can't be made",
    ),
}


@pytest.mark.parametrize(("forge", "place"), IMPOSSIBLE_MANIFESTS.values(), ids=IMPOSSIBLE_MANIFESTS)
def test_an_impossible_manifest_is_refused_with_its_place(entry, textbench, forge, place):
    change_manifest(entry, forge)
    done = textbench("validate", entry)
    assert done.code in (1, 2)
    assert done.out == ""
    assert place in done.err
    assert "manifest" in done.err
    assert all(len(line) < 600 for line in done.err.splitlines())


def test_a_models_entry_is_accepted(entry):
    entry = entry.rename(entry.parent / "model")
    change_manifest(entry, of_a_model(stop=["</action>"], mode="think", history_turns=0))
    write_lines(entry, [{**record, "agents": {"player_0": "model"}} for record in lines_of(entry)])
    assert check_entry(entry).problems == []


TOKENS = {
    "as many as there may be": (lambda step: [150, 40], ""),
    "one for each response": (lambda step: [150, 1], "all responses have"),
    "one for each prompt": (lambda step: [1, 40], "all prompts have"),
    "a thousand million": (lambda step: [150, 10**9], "a response of 1,000,000,000 tokens, at most 256 are possible"),
    "a thousand million of a prompt": (lambda step: [10**9, 40], "a prompt of 1,000,000,000 tokens, at most 2,000,000"),
    "more than the limit": (lambda step: [150, 257], "a response of 257 tokens, at most 256 are possible"),
    "none": (lambda step: None, ""),
}


@pytest.mark.parametrize(("count", "place"), TOKENS.values(), ids=TOKENS)
def test_tokens_that_no_tokenizer_has_are_refused(entry, count, place):
    entry = entry.rename(entry.parent / "model")
    change_manifest(entry, of_a_model())
    records = [{**record, "agents": {"player_0": "model"}} for record in lines_of(entry)]
    for record in records:
        for step in record["steps"]:
            step["response"] = f"<think>I go on where it is safe.</think>{step['response']}"
            if tokens := count(step):
                step["tokens"] = tokens
    write_lines(entry, records)
    problems = check_entry(entry).problems
    assert bool(problems) == bool(place), problems
    assert all(place in problem for problem in problems)


def test_one_unreadable_entry_doesnt_hide_the_others(entry, textbench):
    broken = shutil.copytree(entry, entry.parent / "broken")
    change_manifest(broken, lambda m: m.update(schema_version=9))
    done = textbench("validate", entry.parent)
    assert done.code == 1
    assert "greedy: valid, 8 episodes replayed" in done.out
    assert "schema_version must be 1, got 9" in done.err


@pytest.mark.parametrize("name", ["manifest.json", "episodes.jsonl"])
@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "link"])
def test_an_entry_holds_its_own_files(entry, textbench, name, kind):
    (entry / name).rename(entry.parent / name)
    if kind == "folder":
        (entry / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(entry / name)
    elif kind == "link":
        (entry / name).symlink_to(entry.parent / name)
    done = textbench("validate", entry)
    assert done.code in (1, 2)
    assert name in done.err


@pytest.mark.parametrize(
    "forge",
    [
        lambda m: m.update(matchups=[{"scenario": "snake"}]),
        lambda m: m.update(matchups=5),
        lambda m: m["matchups"][0].update(seeds=[[0, 10**18]]),
        lambda m: m["matchups"][0].update(seeds="all"),
        lambda m: m.update(agents={}),
        lambda m: m["agents"].__setitem__(0, "greedy"),
        lambda m: m.update(scenarios={"snake": None}),
        lambda m: m.update(settings=[]),
        lambda m: m["agents"][0].update(settings=None),
        lambda m: m["matchups"][0].update(scenario=["snake"]),
        lambda m: m["matchups"][0].update(agents=[["greedy"]]),
    ],
)
def test_a_malformed_manifest_is_refused_without_a_traceback(entry, textbench, forge):
    change_manifest(entry, forge)
    done = textbench("validate", entry)
    assert done.code in (1, 2)
    assert "Traceback" not in done.err
    assert done.err


@pytest.mark.parametrize("garbage", [b"", b"garbage\n", b'{"schema_version": 1}\n'])
def test_a_malformed_episode_file_is_refused(entry, garbage):
    (entry / "episodes.jsonl").write_bytes(garbage)
    assert check_entry(entry).problems


def test_an_unfinished_last_line_is_refused(entry):
    content = (entry / "episodes.jsonl").read_bytes()
    (entry / "episodes.jsonl").write_bytes(content[:-1])
    assert check_entry(entry).problems == ["episodes.jsonl: the last line isn't finished"]


@pytest.mark.parametrize("name", ["..", "-rf", "CON", "x" * 101])
def test_no_entry_is_made_under_such_a_name(textbench, true_entry, workplace, name):
    source = Path(shutil.copytree(true_entry, workplace / "run"))
    change_manifest(source, lambda m: (named(name)(m), m.update(kind="textbench-run", operation={})))
    write_lines(source, [{**record, "agents": {"player_0": name}} for record in lines_of(source)])
    done = textbench("submit", source, "--out", "entries")
    assert (done.code, done.out) == (2, "")
    assert "play it under another name: textbench run --agent NAME=SPEC" in done.err
    assert not Path("entries").exists()


def test_names_become_folders():
    assert folder_name("openai:org/model-7b") == "openai-org-model-7b"
    assert folder_name("../../etc") == "etc"
    assert folder_name("..") == "agent"


def test_a_run_that_isnt_whole_makes_no_entry(textbench, true_entry, workplace):
    source = workplace / "run"
    shutil.copytree(true_entry, source)
    change_manifest(source, lambda m: m.update(kind="textbench-run", operation={}))
    write_lines(source, lines_of(source)[:-1])
    done = textbench("submit", source)
    assert done.code == 2
    assert "isn't scored, so there can be no entry; play it: textbench resume" in done.err


@pytest.mark.parametrize(
    ("forge", "command"),
    [
        (fewer_episodes, "textbench resume run --episodes 2"),
        (drop_scenario, "textbench run --agent greedy"),
        (lambda m: (named("mine")(m), drop_scenario(m)), "textbench run --agent mine=hf:somebody/model"),
    ],
)
def test_a_run_that_is_too_short_is_told_the_command_for_the_rest(textbench, true_entry, workplace, forge, command):
    source = Path(shutil.copytree(true_entry, workplace / "run"))
    change_manifest(source, lambda m: (forge(m), m.update(kind="textbench-run", operation={})))
    manifest = json.loads((source / "manifest.json").read_text())
    (agent,) = manifest["matchups"][0]["agents"]
    kept = [line for line in lines_of(source) if line["scenario"] in manifest["scenarios"]]
    write_lines(source, [{**line, "agents": {"player_0": agent}} for line in kept])
    done = textbench("submit", "run")
    assert (done.code, done.err.rstrip().rpartition("; play them: ")[2]) == (2, command)
