"""Entries: a true one is accepted, and every forgery is refused with the place where it differs."""

import json
import os
import shutil
from copy import deepcopy
from pathlib import Path

import pytest

from agents import Episode, Step, Turn, Usage
from benchmark.entries.entry import folder_name
from benchmark.entries.validation import TokenTally, check_entry
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from tests.benchmark.helpers import PLAYERS, change_manifest, lines_of, play_and_submit, write_lines

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
    run, about = ("--agent", "greedy", "--episodes", str(EPISODES)), ("--author", "somebody", "--note", "a test")
    folder = tmp_path_factory.mktemp("entry")
    return play_and_submit(folder, reference_cache, ["greedy"], *run, about=about) / "greedy"


@pytest.fixture
def entry(true_entry, tmp_path):
    return Path(shutil.copytree(true_entry, tmp_path / "greedy"))


def as_run(source, forge):
    """Make a run of an entry, forged; the lines are those of its agent and scenarios."""
    manifest = change_manifest(source, lambda m: (forge(m), m.update(kind="textbench-run", operation={})))
    (agent,) = manifest["matchups"][0]["agents"]
    kept = [line for line in lines_of(source) if line["scenario"] in manifest["scenarios"]]
    write_lines(source, [{**line, "agents": {"player_0": agent}} for line in kept])


def test_a_true_entry_is_accepted_and_self_contained(true_entry, textbench):
    assert check_entry(true_entry).problems == []
    done = textbench("validate", true_entry.parent)
    assert (done.code, "valid, 8 episodes replayed" in done.out) == (0, True)
    manifest = RunFolder.open(true_entry).manifest
    assert manifest["kind"] == "textbench-entry"
    assert (manifest["author"], manifest["note"]) == ("somebody", "a test")
    assert manifest["agents"][0]["spec"] == "greedy"
    assert manifest["textbench"]["version"]
    assert set(manifest["scenarios"]) == {"frozen-lake", "frozen-lake-slippery", "snake", "snake-poison"}
    assert all(step["response"] for record in lines_of(true_entry) for step in record["steps"])
    keys = [(record["scenario"], record["seed"]) for record in lines_of(true_entry)]
    assert keys == sorted(keys)


# ---------------------------------------------------------------- episodes


def won(records):
    """Return the place of a record in which snake was won."""
    return next(i for i, one in enumerate(records) if one["scenario"] == "snake" and one["returns"]["player_0"] > 1)


def change(edit):
    """Change the record in which snake was won, by a function of it."""
    return lambda records: edit(records[won(records)])


def in_record(**fields):
    return change(lambda one: one.update(fields))


def in_step(**fields):
    return change(lambda one: one["steps"][0].update(fields))


def in_measured(**fields):
    return change(lambda one: one["measured"].update(fields))


def claim_success(records):
    next(one for one in records if not one["successes"]["player_0"])["successes"]["player_0"] = True


def another_player(record):
    step = {**record["steps"][0], "player": "me"}
    record.update(agents={"me": "greedy"}, returns={"me": 9.0}, successes={"me": True}, steps=[step])


FORGED_EPISODES = {
    "a reward": (change(lambda one: one["steps"][2].update(reward=9.0)), "step 2: reward is"),
    "a return": (change(lambda one: one["returns"].update(player_0=99.0)), "returns is"),
    "a success": (claim_success, "successes is {'player_0': True}, the replay gives {'player_0': False}"),
    "an invalid answer": (in_step(response="garbage"), "step 0: valid is True, the replay gives False"),
    "an action": (in_step(action="none"), "step 0: action is"),
    "another's words": (
        change(lambda one: one["steps"][0].update(response=f"<action>{one['steps'][0]['action']}</action>")),
        "the agent 'greedy' answers",
    ),
    "another board": (in_record(observations_digest="0" * 32), "observations_digest is '00000000"),
    "an end too early": (change(lambda one: one["steps"].pop()), "but the game goes on"),
    "an end too late": (
        change(lambda one: one["steps"].append({**one["steps"][-1], "round": len(one["steps"])})),
        "the game was over before it",
    ),
    "another end": (change(lambda one: one.update(terminated=not one["terminated"])), "terminated is"),
    "an episode less": (lambda r: r.pop(won(r)), "is missing"),
    "an episode twice": (lambda r: r.append(r[won(r)]), "the same episode again"),
    "another seed": (in_record(seed=49_999), "isn't an episode of this entry"),
    "an error": (in_record(error="server down"), "is unscored (server down)"),
    "a field more": (in_record(verified=True), "verified is unknown here"),
    "rounds out of order": (in_step(round=3), "belongs to round 3, expected round 0"),
    "negative tokens": (in_step(tokens=[-5, 1]), "steps.0.tokens.0 must be greater than or equal to 0, got -5"),
    "much reasoning": (in_step(tokens=[5, 5], reasoning_tokens=6), "has more reasoning tokens than completion tokens"),
    "tokens of a script": (in_step(tokens=[5, 5]), "has tokens, but the agent 'greedy' has no model"),
    "more cached than used": (in_measured(cached_tokens=[9, 0]), "cached_tokens is [9, 0], all tokens are [0, 0]"),
    "seconds of nobody": (in_measured(cpu_seconds={"player_9": 0.5}), "names 'player_9', who doesn't play"),
    "cached otherwise": (in_measured(cached_by_player={"player_0": [9, 0]}), "measured.cached_tokens is [0, 0]"),
    "cached unread": (in_measured(provider_cached_tokens={"player_0": 9}), "is 9, all its prompts have 0"),
    "served by an escape": (in_measured(served_by={"player_0": ["\x1b[2J"]}), "answered by ['\\x1b[2J']"),
    "seconds NaN": (in_measured(seconds=float("nan")), "NaN isn't a JSON number"),
    "a reason to stop": (in_step(finish_reason="won"), "finish_reason is 'won', there are ('stop'"),
    "another player": (change(another_player), "player_0 had to answer, me did"),
}


@pytest.mark.parametrize(("forge", "place"), FORGED_EPISODES.values(), ids=FORGED_EPISODES)
def test_a_forged_episode_is_refused_with_its_place(entry, forge, place):
    records = lines_of(entry)
    forge(records)
    write_lines(entry, records)
    problems = check_entry(entry).problems
    assert any(place in problem for problem in problems), problems
    assert all(problem.startswith("episodes.jsonl") and len(problem) < 600 for problem in problems)
    if "must be" in place or "unknown here" in place:  # isn't even the shape of an episode
        assert any("episodes.jsonl line " in problem for problem in problems)
    elif place.startswith(("step ", "returns", "terminated", "observations")):
        assert any("snake, greedy, seed 4" in problem for problem in problems)


@pytest.mark.parametrize(
    "content",
    ["[" * 100_000, "\ufeff{}", "{}\x00", '{"seed": 1e', '{"seed": ' + "9" * 9000 + "}", "\ud800", "a key twice"],
)
def test_a_line_of_garbage_is_refused(entry, content):
    if content == "a key twice":
        first, _ = (entry / "episodes.jsonl").read_text().split("\n", 1)
        content = first.replace('"error"', '"seed":10000,"error"')
    with (entry / "episodes.jsonl").open("ab") as file:
        file.write(content.encode("utf-8", "surrogatepass") + b"\n")
    (problem,) = check_entry(entry).problems
    assert '"error"' not in content or problem.endswith("the key 'seed' stands twice")
    assert problem.startswith("episodes.jsonl line 9 isn't an episode: ")
    assert len(problem) < 300


def test_a_file_that_is_empty_or_ends_early_and_a_folder_of_another_are_refused(entry):
    content = (entry / "episodes.jsonl").read_bytes()
    for written, said in ((content[:-1], "the last line isn't finished"), (b"", "is missing or empty")):
        (entry / "episodes.jsonl").write_bytes(written)
        (problem,) = check_entry(entry).problems
        assert problem in (f"episodes.jsonl: {said}", f"episodes.jsonl {said}")
    (entry / "episodes.jsonl").write_bytes(content)
    (problem,) = check_entry(entry.rename(entry.parent / "someone-elses")).problems
    assert problem == "manifest.json: the agent's folder is 'greedy', this one is 'someone-elses'"


# ---------------------------------------------------------------- manifests


def card(manifest):
    return manifest["agents"][0]


def drop_scenario(manifest):
    del manifest["scenarios"]["snake-poison"]
    manifest["matchups"] = [row for row in manifest["matchups"] if row["scenario"] != "snake-poison"]


def fewer_episodes(manifest):
    manifest["settings"]["episodes"] = 1
    for row in manifest["matchups"]:
        row["seeds"][0][1] = row["seeds"][0][0]


def own_scenario(manifest):
    manifest["scenarios"]["easy"] = manifest["scenarios"]["snake"]
    manifest["matchups"].append({"scenario": "easy", "agents": ["greedy"], "seeds": [[40_000, 40_001]]})


def named(name):
    """The entry of another agent, consistently under this name."""

    def forge(manifest):
        card(manifest).update(name=name, spec="hf:somebody/model", kind="hf")
        manifest.update(agent=name, prices={})
        manifest["settings"]["agents"] = [f"{name}=hf:somebody/model"]
        for row in manifest["matchups"]:
            row["agents"] = [name]

    return forge


def of_a_model(kind=None, setting=None, **settings):
    """The entry of a model whose card says this besides what it should, and whose run has that setting."""
    whole = {"temperature": 0.5, "top_p": 1.0, "max_tokens": 256, **settings}

    def forge(manifest):
        named("model")(manifest)
        card(manifest)["settings"] = {name: value for name, value in whole.items() if value is not None}
        card(manifest)["kind"] = kind or "hf"
        manifest["settings"].update(setting or {})

    return forge


def setting(**settings):
    return lambda manifest: manifest["settings"].update(settings)


def top(**fields):
    return lambda manifest: manifest.update(fields)


def seeds(*ranges):
    return lambda manifest: manifest["matchups"][0].update(seeds=[*ranges])


def apples(count):
    return lambda manifest: manifest["scenarios"]["snake"]["kwargs"].update(num_apples=count)


OURS = "which is a player of the project"
FORGED_MANIFESTS = {
    "a scenario less": (drop_scenario, "scenario 'snake-poison' is missing"),
    "an easier game": (apples(30), "scenarios.snake.kwargs.num_apples is 30, the scenario's is 5"),
    "other seeds": (seeds([10_007, 10_008]), "the seeds aren't 10000, 10001, ... without a gap"),
    "fewer episodes": (fewer_episodes, "1 episodes, an entry has at least 2"),
    "an own scenario": (own_scenario, "there is no scenario 'easy'"),
    "another agent": (lambda m: card(m).update(name="planner"), "agent is 'greedy', its card says 'planner'"),
    "two cards": (lambda m: m["agents"].append(card(m)), "an entry has the card of one agent"),
    "no episodes": (lambda m: m["matchups"].pop(0), "no episodes of 'frozen-lake'"),
    "an offset": (setting(seed_offset=100), "settings.seed_offset is 100, an entry has 0"),
    "other samples": (setting(resample=3), "settings.resample is 3, an entry has the samples of its seeds"),
    "another's price": (top(prices={"planner": {"input": 1, "output": 1}}), "prices are given for 'planner'"),
    "two temperatures": (of_a_model(temperature=1.0, setting={"temperature": 0.5}), "gives 0.5, the card says 1.0"),
    "no temperature": (of_a_model(temperature=None), "settings.temperature gives 0.5, the card says None"),
    "another kind": (lambda m: card(m).update(kind="openai"), "the card's kind is 'openai', its spec 'greedy'"),
    "an unread history": (of_a_model(history_turns=0, setting={"history": 4}), "history gives 4, the card says 0"),
    "uncalled tools": (of_a_model(tools=True), "settings.protocol is 'random', and the card says otherwise of tools"),
    "a negative temperature": (of_a_model(temperature=-1), "the card's settings aren't possible: decoding.temperature"),
    "a setting more": (setting(luck=1), "settings.luck is unknown"),
    "a scenario twice": (lambda m: m["settings"]["scenarios"].append("snake"), "settings.scenarios has a name twice"),
    "a scenario unasked": (setting(scenarios=["snake"]), "settings.scenarios lacks 'frozen-lake', which has episodes"),
    "a matchup twice": (lambda m: m["matchups"].append(m["matchups"][0]), "of greedy in 'frozen-lake' twice"),
    "seeds that cancel out": (seeds([0, 10**15], [10**15, 0]), "must be [first, last] pairs in order"),
    "another's spec": (lambda m: card(m).update(spec="planner"), f"{OURS}, but its spec is"),
    "nobody's spec": (setting(agents=["random"]), "settings.agents has no agent 'greedy'"),
    "a zero-width name": (named("my\u200bmodel"), "the agent's name is 'my\\u200bmodel', accepted are"),
    "a name of a million letters": (named("x" * 10**6), "agent has 1,000,000 characters, at most 1,000"),
    "an escape in a key": (lambda m: m["packages"].update({"\x1b[2J": "1"}), "a key of packages has the invisible"),
    "a huge number on the card": (of_a_model(context=10**400), "agents.0.settings.context is 1000000000"),
    "a name that leaves the folder": (named(".."), "the agent's name is '..', a name begins with a letter or a digit"),
    "the name of a model that ships": (named("tiny"), f"{OURS}, but its spec is"),
    "another model": (of_a_model(model="somebody/other"), "the card's model is 'somebody/other', its spec 'hf:"),
    "another provider's model": (of_a_model(model_kind="openai"), "the card's model_kind is 'openai', its spec 'hf:"),
    "a field more": (top(verified=True), "verified is unknown here"),
    "a stranger's game": (lambda m: m["scenarios"]["snake"].update(env_id="os:S-v0"), "can't bring its own game"),
    "an impossible game": (apples(10**20), "the manifest's scenario 'snake' can't be made"),
    "a card without settings": (lambda m: card(m).update(settings=None), "settings must be a valid dictionary"),
}


@pytest.mark.parametrize(("forge", "place"), FORGED_MANIFESTS.values(), ids=FORGED_MANIFESTS)
def test_a_forged_manifest_is_refused_with_its_place(entry, forge, place):
    change_manifest(entry, forge)
    try:
        problems = check_entry(entry).problems
    except UsageError as error:  # it isn't even the shape of an entry
        problems = [str(error)]
    assert any(place in problem for problem in problems), problems
    assert all("manifest" in problem and len(problem) < 600 for problem in problems)


TOKENS = {
    "as many as there may be": ([150, 40], ""),
    "one for each response": ([150, 1], "all responses have"),
    "one for each prompt": ([1, 40], "all prompts have"),
    "a thousand million of a prompt": ([10**9, 40], "a prompt of 1,000,000,000 tokens, at most 2,000,000"),
    "more than the limit": ([150, 257], "a response of 257 tokens, at most 256 are possible"),
}


def as_a_models(entry, forge):
    """Make an entry of ours one of a model, and return its place and its lines."""
    entry = entry.rename(entry.parent / "model")
    change_manifest(entry, forge)
    return entry, [{**record, "agents": {"player_0": "model"}} for record in lines_of(entry)]


def test_a_models_entry_is_accepted(entry):
    entry, records = as_a_models(entry, of_a_model(stop=["</action>"], mode="think", history_turns=0))
    write_lines(entry, records)
    assert check_entry(entry).problems == []


@pytest.mark.parametrize(("tokens", "place"), TOKENS.values(), ids=TOKENS)
def test_tokens_that_no_tokenizer_has_are_refused(entry, tokens, place):
    entry, records = as_a_models(entry, of_a_model())
    for step in (step for record in records for step in record["steps"]):
        step |= {"response": f"<think>I go on where it is safe.</think>{step['response']}", "tokens": tokens}
    write_lines(entry, records)
    problems = check_entry(entry).problems
    assert bool(problems) == bool(place), problems
    assert all(place in problem for problem in problems)


@pytest.mark.parametrize(("tokens", "possible"), [(400, True), (8, False)])
def test_reasoning_that_is_shown_counts_among_the_letters_of_a_response(tokens, possible):
    """8 tokens are enough for the response alone, and too few for the 1,200 letters of reasoning before it."""
    turn = Turn("<action>right</action>", usage=Usage(20, tokens), reasoning="right or " * 133 + "up.")
    step = Step(0, "player_0", "The player is at row 0, column 0.", turn, "right", True, None, 0.0)
    tally = TokenTally()
    tally.add(Episode("frozen-lake", 10_000, None, {"player_0": "me"}, (step,), {}, {}, True, False))
    found = [*tally.problems({"kind": "openai", "settings": {"max_tokens": 256}})]
    assert (found == []) == possible
    assert possible or "all responses have 8 tokens for 1,222 letters" in found[0]


def test_a_forged_and_an_unreadable_entry_dont_hide_the_others(entry, textbench):
    forged, broken = (shutil.copytree(entry, entry.parent / name) for name in ("forged/greedy", "broken"))
    change_manifest(broken, top(schema_version=9))
    records = lines_of(forged)
    claim_success(records)
    write_lines(forged, records)
    refused = textbench("validate", forged)
    assert (refused.code, refused.out, "successes is" in refused.err) == (1, "", True)
    done = textbench("validate", entry.parent)
    assert done.code == 1
    assert "greedy: valid, 8 episodes replayed" in done.out
    assert "schema_version must be 1, got 9" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("name", ["manifest.json", "episodes.jsonl"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_an_entry_holds_its_own_files(entry, textbench, name, kind):
    (entry / name).rename(entry.parent / name)
    if kind == "folder":
        (entry / name).mkdir()
    elif kind == "pipe":
        os.mkfifo(entry / name)
    else:
        (entry / name).symlink_to(entry.parent / name)
    done = textbench("validate", entry)
    assert done.code in (1, 2)
    assert name in done.err


# ---------------------------------------------------------------- submitting


def test_names_become_folders_of_their_own():
    assert folder_name("openai:org/model-7b") == "openai-org-model-7b"
    assert (folder_name("../../etc"), folder_name("..")) == ("etc", "agent")


@pytest.mark.parametrize("name", ["..", "-rf", "CON", "x" * 101])
def test_no_entry_is_made_under_such_a_name(textbench, true_entry, workplace, name):
    source = Path(shutil.copytree(true_entry, workplace / "run"))
    as_run(source, named(name))
    done = textbench("submit", source, "--out", "entries")
    assert (done.code, done.out) == (2, "")
    assert "play it under another name: textbench run --agent NAME=SPEC" in done.err
    assert not Path("entries").exists()


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        (fewer_episodes, "play them: textbench resume run --episodes 2"),
        (drop_scenario, "play them: textbench run --agent greedy"),
        (lambda m: (named("mine")(m), drop_scenario(m)), "play them: textbench run --agent mine=hf:somebody/model"),
        (None, "isn't scored, so there can be no entry; play it: textbench resume run"),
    ],
)
def test_a_run_that_is_too_short_is_told_the_command_for_the_rest(textbench, true_entry, workplace, forge, said):
    source = Path(shutil.copytree(true_entry, workplace / "run"))
    as_run(source, forge or (lambda m: None))
    if forge is None:
        write_lines(source, lines_of(source)[:-1])
    done = textbench("submit", "run")
    assert (done.code, done.err.rstrip()[-len(said) :]) == (2, said)


# ---------------------------------------------------------------- protocols


def submitted(textbench, *options):
    run = ("run", "--agent", f"hesitant={PLAYERS}:Hesitant", "--episodes", EPISODES, "--out", "r", "--quiet")
    done = textbench(*run, *options)
    assert done.code == 0, done.err
    assert textbench("submit", "r", "--out", "entries").code == 0
    return Path("entries/hesitant")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["random", "retry:1", "default", "forfeit"])
def test_an_entry_of_every_protocol_is_accepted_and_can_claim_no_other(textbench, protocol):
    """What was executed tells by what it was played."""
    entry = submitted(textbench, "--protocol", protocol)
    assert check_entry(entry).problems == []
    scores = json.loads(textbench("leaderboard", "entries", "--json").out)["scores"]
    assert {row["protocol"] for row in scores} == {protocol}
    for other in {"random", "default", "forfeit", "retry"} - {protocol.partition(":")[0]}:
        change_manifest(entry, lambda m, other=other: m["settings"].update(protocol=other))
        assert check_entry(entry).problems, other


def test_forged_retries_are_refused(textbench):
    entry = submitted(textbench, "--protocol", "retry")
    records = lines_of(entry)
    places = [(i, j) for i, record in enumerate(records) for j, step in enumerate(record["steps"]) if "refused" in step]
    record, number = places[0]

    def problems(change):
        forged = deepcopy(records)
        change(forged[record]["steps"][number])
        copy = Path(shutil.copytree(entry, Path("forged") / entry.name, dirs_exist_ok=True))
        write_lines(copy, forged)
        return " ".join(check_entry(copy).problems)

    assert not problems(lambda step: None)
    assert "may give 3" in problems(lambda step: step.update(refused=step["refused"] * 4))
    assert "can be read" in problems(
        lambda step: step["refused"][0].update(response="left" if record < 2 * EPISODES else "up")
    )
    assert "refused for 'no_tag', the replay gives 'empty'" in problems(
        lambda step: step["refused"][0].update(unreadable="no_tag")
    )
    assert "refused" in problems(lambda step: step["refused"][0].update(tokens=[1]))
    assert "finish_reason" in problems(lambda step: step["refused"][0].update(finish_reason="bored"))
