"""The settings of every command. Their docstring is its help; the files beside this one do its work.

Only what declarations need is imported here, so that ``--help`` answers at once.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from agents.common.settings import REQUIRED, option, part, place, settings, switch
from benchmark.errors import UsageError
from benchmark.play.options import CLUSTER, OF_ONE_AGENT, OPERATING, OPTIONS, RunOptions
from benchmark.score.document import Reading

Daily = Mapping[str, Sequence[str]]
Texts = tuple[str, ...]

Measure = Literal["normalized", "mean_return", "success_rate", "invalid_rate", "length"]

TRAINED_ON = ("--sft", "--preferences")


@settings
class Output:
    """The form of a command's output: lines for people, or one JSON document."""

    json: bool = switch("print one JSON document")
    stats: bool = switch("print every table with every figure, not a dozen lines")
    quiet: bool = switch("no progress")

    def say(self, message: str) -> None:
        if not self.quiet:
            print(message, file=sys.stderr, flush=True)

    def document(self, document: Any) -> None:
        print(json.dumps(document, indent=1))

    def folders(self, given: Sequence[str]) -> list[Path]:
        """Return the given folders, else the newest run in ``runs/``, which is then named; a UsageError if none is."""
        if given:
            return [Path(path) for path in given]
        runs = sorted(Path("runs").glob("*/manifest.json"), key=lambda file: file.stat().st_mtime)
        if not runs:
            raise UsageError("there is no run in runs/; name a run folder, or make one: textbench run")
        self.say(f"showing the newest run, {runs[-1].parent}")
        return [runs[-1].parent]


@settings
class Page:
    """Options of the commands that make a page."""

    title: str = option("textbench leaderboard", "TEXT", "the page's heading")
    max_episodes: int = option(5000, "N", "replays on the page", ge=1, le=999_999_999)


def imports() -> Any:
    """Declare the modules that the user names for a folder to be read; a folder never names them."""
    return option((), "MODULE", "a module with games of your own; none is imported since a folder names it")


def season() -> Any:
    """Declare whose entries are made or checked."""
    return option(None, "DIR", "of this season, and not of the open leaderboard")


@settings
class List:
    """List the suites, the scenarios that can be played and the agents that can play them."""

    what: Literal["suites", "scenarios", "agents"] | None = place("WHAT", "suites, scenarios or agents", None)
    output: Output = part(Output, ["json"])


@settings
class Play:
    """Play a scenario yourself, at this terminal; you see what the agents see.

    Arrow keys act at once in games with these directions; every action can be typed by its name or a clear beginning of
    it, and Enter. ? shows the rules, q quits. Where standard input isn't a terminal, every line is an action.

    examples:
      textbench play frozen-lake
      textbench play snake-duel --against planner --episode 3
    """

    scenario: str = place("SCENARIO", "see textbench list scenarios")
    episode: int = option(0, "K", "the scenario's episode K, from 0", ge=0, le=9_999_999)
    against: str | None = option(None, "SPEC", "the agent in the other seats (default greedy, or random)")
    settings: Texts = option((), "NAME=VALUE", "another setting of the game, as in --setting size=6")


@settings
class Run:
    """Play agents on scenarios into a run folder, and print how well they did.

    With nothing: random, blind, greedy, planner and embedded models on the paper's four scenarios, 50 episodes each.

    examples:
      textbench run
      textbench run --agent planner --agent openai:gpt-4o-mini --scenario snake --episodes 20
      textbench run --agent base=hf:./checkpoint --out runs/base --json
      textbench run --suite exploration --suite strategy --agent random --agent planner
      textbench run --agent openai:gpt-4o-mini --until 0.05 --dry-run
    """

    daily: ClassVar[Daily] = {
        "what is played": ("--agent", "--scenario", "--suite", "--episodes"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--max-concurrency"),
        "budget": ("--max-cost", "--dry-run"),
        "output": ("--out", "--config", "--json", "--quiet"),
    }
    options: RunOptions = part(RunOptions)
    output: Output = part(Output)
    dry_run: bool = switch("say what would be played, and play nothing")


@settings
class Resume:
    """Resume an interrupted run, or play its unscored episodes again.

    The run's manifest decides what is played; limits of time and money can be changed, and the number of episodes can
    grow. A folder made by someone else runs no code, asks no server, spends no money, fetches no weights and sends no
    secret until you allow it: a terminal asks once, and elsewhere the refusal lists the arguments to add.

    examples:
      textbench resume runs/20260131-235959-1a2b3c --max-cost 20
      textbench resume runs/20260131-235959-1a2b3c --episodes 100
    """

    daily: ClassVar[Daily] = {
        "what is resumed": ("DIR", "--episodes", "--repair"),
        "budget and speed": ("--max-cost", "--run-timeout", "--max-concurrency"),
        "trust": ("--allow", "--import", "--base-url"),
        "output": ("--json", "--stats", "--quiet"),
    }
    folder: str = place("DIR", "the run folder")
    options: RunOptions = part(
        RunOptions,
        [name for name in OPTIONS if name != "out" and name in {*OPERATING, "sets", "allow", *CLUSTER}],
        base_url="the same server, if its address holds credentials",
        episodes="extend the run to so many episodes per scenario and agent",
    )
    repair: bool = switch("set damaged lines aside and play their episodes again")
    output: Output = part(Output)
    imports: Texts = imports()


@settings
class Leaderboard:
    """Show the scores of runs and leaderboard entries: a dozen lines, or with --stats every figure.

    examples:
      textbench leaderboard                          the newest run in runs/
      textbench leaderboard runs/a runs/b leaderboards
      textbench leaderboard runs/a --stats           every table: all intervals, luck, lengths, tokens, what ranks go by
      textbench leaderboard runs/a --html page.html
    """

    sources: Texts = place("DIR", "run folders, entries, or folders of them", ())
    agents: Texts = option((), "NAME", "only this agent (several times)")
    json: bool = switch("print one JSON document", apart="form")
    stats: bool = switch("print every table with every figure, not a dozen lines", apart="form")
    markdown: bool = switch("print Markdown tables", apart="form")
    html: str | None = option(None, "FILE", "write the page with tables, comparison and replays", apart="form")
    page: Page = part(Page)
    output: Output = part(Output, ["quiet"])
    imports: Texts = imports()


@settings
class Compare:
    """Compare agents on the same seeds: paired differences with 95% intervals, a permutation test with Holm's
    correction over everything that is shown, and the number of episodes that it would take to tell the two apart.

    examples:
      textbench compare planner greedy                 two agents of the newest run
      textbench compare planner greedy --in runs/a
      textbench compare runs/before runs/after         everyone in these runs
    """

    agents: Texts = place("A", "agents' names, or run folders with all their agents")
    sources: Texts = option((), "DIR", "runs or entries that they are in", named="--in")
    scenarios: Texts = option((), "NAME", "only this scenario (several times)")
    json: bool = switch("print one JSON document", apart="form")
    markdown: bool = switch("print Markdown tables", apart="form")
    imports: Texts = imports()


@settings
class Report:
    """Write a report on runs and entries: one Markdown and one HTML file, which need nothing else to be read.

    They have the verdict, all tables, what was spent, each agent's ten costliest decisions with what it read and
    answered, the best action and the value lost (if the game has exact values), settings, seeds, versions and commands.

    examples:
      textbench report runs/a                     report.md and report.html in this folder
      textbench report runs/a runs/b --out report.html
    """

    sources: Texts = place("DIR", "runs or entries (default: the newest run)", ())
    out: str = option(".", "FILE", "a file that ends with .md or .html, or a folder for both (default: this one)")
    output: Output = part(Output, ["quiet"])
    imports: Texts = imports()


@settings
class Replay:
    """Step through an episode in the terminal: board, what the player read, response, action, what happened, reward.

    Keys: n, space, right or enter: next step; p, left or backspace: previous; g and G, or home and end: first and last;
    w: the step that lost the most value; ]: next episode; [: previous episode; j and k, down and up, page down and page
    up: scroll; q: quit. The value lost is shown where a game has exact values.

    examples:
      textbench replay                                         the newest run, from its first episode
      textbench replay runs/a --agent planner --scenario snake --seed 40003
      textbench replay runs/a --episode 12 --plain
      textbench replay runs/a --agent planner --worst          its costliest mistakes first
    """

    source: str | None = place("DIR", "run folder or entry (default: the newest run)", None)
    episode: int | None = option(None, "N", "the N-th episode in the folder, from 1")
    agent: str | None = option(None, "NAME", "only episodes of this agent")
    scenario: str | None = option(None, "NAME", "only episodes of this scenario")
    seed: int | None = option(None, "N", "only episodes with this seed")
    failed: bool = switch("only episodes that weren't a success")
    worst: bool = switch("by value lost, the most first; opens the step that lost the most")
    plain: bool = switch("print the whole episode instead of stepping through it")
    imports: Texts = imports()


@settings
class View:
    """Show the leaderboard page in a browser: tables, comparisons, replays. Served to this machine only.

    The page follows a run that is being played: tables and episodes come as they are written, without loading it again.

    examples:
      textbench view                 the newest run
      textbench view runs/a leaderboards --port 8080
    """

    sources: Texts = place("DIR", "runs or entries (default: the newest run)", ())
    port: int = option(0, "N", "port on 127.0.0.1; 0 takes a free one", ge=0, le=65_535)
    no_browser: bool = switch("only print the address")
    page: Page = part(Page)
    imports: Texts = imports()


@settings
class Submit:
    """Make a leaderboard entry of a run: the agent's card, versions, settings, seeds and every response, in one folder.

    A run of --suite planning or exploration gives an entry in the folder of that name.

    example:
      textbench submit runs/20260131-235959-1a2b3c --agent planner --out leaderboards
    """

    run: str = place("RUN", "the run folder")
    agent: str | None = option(None, "NAME", "whose entry (needed when the run has several agents)")
    out: str = option("leaderboards", "DIR", "where entries are (default leaderboards)")
    author: str = option("", "NAME", "who submits it")
    note: str = option("", "TEXT", "a line for the reader")
    season: str | None = season()
    imports: Texts = imports()


@settings
class Validate:
    """Check leaderboard entries: every episode is played again from its seed and responses, and must come out equal.

    Where the chances of a game are known, the entry's luck is told in standard deviations (z), with the probability
    that an honest player has at least so much (p). An entry with too much of it is refused. How much undue luck an
    episode must have for that is told, too: the least that is found in 80% of cases. A player that peeks less often
    isn't found.

    examples:
      textbench validate leaderboards/planner
      textbench validate leaderboards leaderboards/planning      every entry in these folders
    """

    entries: Texts = place("ENTRY", "entries, or a folder of them")
    output: Output = part(Output, ["json"])
    season: str | None = season()
    imports: Texts = imports()


@settings
class Doctor:
    """Say what is installed, which agents can run, what is missing and the command for it; ask an agent one question.

    examples:
      textbench doctor
      textbench doctor --agent openai:gpt-4o-mini
      textbench doctor --agent openai:my-model --base-url http://127.0.0.1:8000/v1
    """

    agent: str | None = option(None, "SPEC", "ask this agent for one action: tests the key and the endpoint")
    options: RunOptions = part(RunOptions, OF_ONE_AGENT)
    output: Output = part(Output, ["json"])


@settings
class Warmup:
    """Give a model a warm start: it imitates a player, and learns the form of answers and as much as that player knows.

    The teacher plays the scenario's training seeds, and the model learns its answers in the form of the response mode:
    random teaches the form alone, planner the game. Then the model is evaluated as it was and as it is now, as
    textbench run does it: a normalized score of 0 is the best play that doesn't read. The folder plays as hf:DIR and is
    trained further with model = "DIR"; it knows its prompts. The same command resumes it.

    examples:
      textbench warmup --model smollm2 --scenario frozen-lake
      textbench warmup --model smollm2 --scenario frozen-lake snake --teacher random planner --examples 4000
      textbench warmup --model hf:./base --scenario frozen-lake --mode think --full --set learning_rate=5e-5
    """

    model: str = option("smollm2", "M", "smollm2 (default), a folder, a name on the hub, gguf:PATH")
    scenarios: Texts = option(REQUIRED, "S", "scenarios to learn, in equal parts", words=True)
    teachers: Texts = option(("planner",), "T", "players to imitate, in equal parts (default planner)", words=True)
    examples: int = option(2000, "N", "decisions to learn from", ge=1)
    explore: float = option(0.5, "P", "share of random moves, at which the teacher's are still learnt", ge=0, le=1)
    mode: str = option("direct", "MODE", "response mode: direct (default) or think")
    prompts: str | None = option(None, "FILE", "another wording of the prompts (TOML)")
    legal_only: bool = switch("evaluate with legal answers alone")
    rank: int | None = option(None, "R", "rank of the LoRA adapter (default 16)", ge=1, apart="weights")
    full: bool = switch("train all weights", apart="weights")
    seed: int = option(0, "N", "of layouts, order and adapter", ge=0)
    sets: Texts = option((), "KEY=VALUE", "another setting of textbench train")
    eval_episodes: int = option(50, "N", "episodes of the evaluation", ge=0)
    out: str | None = option(None, "DIR", "the model's folder (default runs/warmup-SCENARIO)")
    output: Output = part(Output, ["json", "quiet"])


UNPLANNED = ("until", "levels", "protocols", "samples", "season")


@settings
class Plan:
    """Play a pilot of a few episodes, and say what telling two agents apart takes: episodes, dollars and hours.

    Measured are tokens, prices, seconds, and how much the agents' scores differ on equal seeds. The last line is the
    command that plays the rest of the run; the pilot's episodes count in it, and none is paid for twice.

    examples:
      textbench plan --agent planner --agent openai:gpt-4o-mini --detect 0.1
      textbench plan --agent openai:gpt-4o --agent openai:gpt-4o-mini --detect 0.1 --budget 50 --json
    """

    daily: ClassVar[Daily] = {
        "what is planned": ("--agent", "--scenario", "--suite", "--detect", "--budget", "--pilot"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--max-concurrency", "--prices"),
        "output": ("--out", "--config", "--json", "--quiet"),
    }
    detect: float = option(REQUIRED, "D", "the difference of scores to detect, such as 0.1", gt=0, le=1000)
    budget: float | None = option(None, "USD", "what pilot and run may cost together", ge=0, le=10**9)
    pilot: int = option(5, "N", "episodes of the pilot, per scenario and agent", ge=2, le=10**5)
    options: RunOptions = part(
        RunOptions,
        [name for name in OPTIONS if name not in UNPLANNED],
        episodes="plan so many per scenario and agent at most",
        max_cost="the same as --budget, as a run's file has it",
    )
    output: Output = part(Output, ["json", "quiet"])


@settings
class Inspect:
    """Compare a model's action probabilities with the solver's action values at each step of an episode.

    The probabilities are estimated from fresh responses. They are exact for local models that answer without reasoning;
    for the others, the exact probabilities after the reasoning of this episode are shown too. A step's regret is the
    return that the policy loses there in expectation.

    examples:
      textbench inspect                                   tiny on frozen-lake's first episode
      textbench inspect tiny-msgrpo-snake --scenario snake --episode 3
      textbench inspect hf:./checkpoint --samples 64 --json
      textbench inspect smollm2 --world-model --prompts world --mode direct
                                                          how true is what it says will be shown next
    """

    daily: ClassVar[Daily] = {
        "what is inspected": ("SPEC", "--scenario", "--episode", "--seed", "--samples", "--world-model", "--starts"),
        "models": ("--base-url", "--temperature", "--max-tokens", "--mode", "--set"),
        "output": ("--json",),
    }
    agent: str = place("SPEC", "the agent (default tiny)", "tiny")
    scenario: str = option("frozen-lake", "NAME", "default frozen-lake")
    episode: int = option(0, "K", "number of the episode", ge=0, apart="which")
    seed: int | None = option(None, "N", "the episode's seed, in place of its number", ge=0, apart="which")
    samples: int = option(32, "N", "fresh responses per step", ge=1)
    world_model: bool = switch("ask it what every action leads to, and compare with the true chances")
    starts: int = option(20, "N", "episodes whose positions it is asked about", ge=2, needs=("--world-model",))
    options: RunOptions = part(RunOptions, OF_ONE_AGENT)
    output: Output = part(Output, ["json"])


@settings
class Exploitability:
    """Compute what an agent loses to the opponent that knows it best, in a small game of two players.

    The agent is asked at every information set of the game: 12 in kuhn-poker, 936 in leduc-poker, 24576 in liars-dice.
    The result is exact for players that know their own probabilities (random, planner) and for local models that answer
    without reasoning (--mode direct); otherwise N responses are drawn at each information set, with an interval.
    Exploitability is half the NashConv: 0 in equilibrium, in the units of the game's return.

    examples:
      textbench exploitability random                     of uniform play in kuhn-poker: 0.4583
      textbench exploitability hf:runs/tiny-self-play-kuhn-poker/best
      textbench exploitability openai:gpt-4o-mini --samples 20 --json
    """

    agent: str = place("SPEC", "the agent")
    scenario: str = option("kuhn-poker", "NAME", "default kuhn-poker")
    samples: int = option(32, "N", "responses at each information set, if they are needed", ge=1)
    options: RunOptions = part(RunOptions, OF_ONE_AGENT)
    seed: int = option(0, "N", "of the sampling", ge=0)
    output: Output = part(Output, ["json"])


@settings
class Serve:
    """Serve a game to trainers and other programs, as an OpenEnv environment server with a page to play by hand.

    Every client has a session of its own. A client's reset(seed=7, layout_seed=3) starts the same episode everywhere,
    and reset(split="test", index=12) the episode 12 of textbench run.

    examples:
      textbench serve frozen-lake
      textbench serve tic-tac-toe --against planner --port 9000
      textbench serve textgames:TextFrozenLake-v0 --set size=6 --set is_slippery=true --no-web
      TEXTBENCH_SERVE_TOKEN=... textbench serve snake --host 0.0.0.0 --allow-host games.example.com
    """

    scenario: str = place("SCENARIO", "see textbench list scenarios; or my_module:MyGame-v0")
    host: str = option("127.0.0.1", "HOST", "address to listen on (default 127.0.0.1: this machine)")
    port: int = option(8000, "N", "port; 0 takes a free one", ge=0, le=65_535)
    max_sessions: int = option(256, "N", "clients at once", ge=1)
    allow_hosts: Texts = option((), "NAME", "another name that this server is reached by, or *.example.com")
    token: str | None = option(None, "SECRET")
    """needed by clients; better in $TEXTBENCH_SERVE_TOKEN (others see options)"""
    idle_timeout: int = option(3600, "S", "seconds after which a silent session ends; 0: never", ge=0)
    no_web: bool = switch("leave out the page at /web")
    against: str | None = option(None, "SPEC", "the agent in the other seats (default random)")
    self_play: bool = switch("the client plays all seats, one after the other")
    seat: str | None = option(None, "PLAYER", "which player the client is (default: the first)")
    mode: str | None = option(None, "NAME", "template of the prompts: think (default), direct")
    history: int = option(0, "K", "last turns in a prompt", ge=0)
    prompts: str | None = option(None, "FILE", "another wording of the prompts")
    sets: Texts = option((), "NAME=VALUE", "a setting of the game in place of its own")


@settings
class Merge:
    """Merge runs of several machines into one; episodes that several of them played are found by their seeds.

    example (two machines play different seeds of the same scenarios):
      textbench run --agent openai:MODEL --episodes 100                    on one
      textbench run --agent openai:MODEL --episodes 100 --seed-offset 100  on the other
      textbench merge runs/one runs/other --out runs/both
    """

    runs: Texts = place("RUN", "run folders")
    out: str = option(REQUIRED, "DIR", "the new run folder")
    imports: Texts = imports()


@settings
class Rescore:
    """Read the stored answers of a run again, and print what changes. No score, rank or file goes by it.

    lenient: of an answer that couldn't be read the last sentence with a name counts, if it names one legal action
    alone, whatever case, markup and punctuation. strict: the reading that is played by, as this version has it. Answers
    are read in the states in which they were given. Where a decision differs from what was executed, the rest of the
    episode was never played: so no return is given, but how many episodes differ, from which round, and, if values
    are exact, the value lost there by what was executed and by the decision.

    examples:
      textbench rescore runs/a
      textbench rescore runs/a leaderboards/planner --reading strict --json
    """

    runs: Texts = place("RUN", "runs or entries (default: the newest run)", ())
    reading: Reading = option("lenient", "HOW", "lenient (default) or strict")
    agents: Texts = option((), "NAME", "only this agent (several times)")
    output: Output = part(Output, ["json", "quiet"])
    imports: Texts = imports()


@settings
class Export:
    """Write results for other programs: CSV, Parquet, plots, and data to train on.

    examples:
      textbench export runs/a --csv episodes.csv
      textbench export runs/a --csv - --steps | head
      textbench export leaderboards --parquet results.parquet --plot scores.svg
      textbench export runs/a --sft demonstrations.jsonl --keep best
      textbench export runs/a --preferences pairs.jsonl --mode direct
      textbench export runs/a --eval-results repos --benchmark OWNER/NAME
    """

    sources: Texts = place("DIR", "runs or entries (default: the newest run)", ())
    agents: Texts = option((), "NAME", "only this agent; may be repeated")
    csv: str | None = option(None, "FILE", "one row per episode and player; - for stdout")
    parquet: str | None = option(None, "FILE", "the same as Parquet (needs the extra plots)")
    steps: bool = switch("one row per step instead, responses included", needs=("--csv", "--parquet"))
    plot: str | None = option(None, "FILE", "scores with intervals: .svg, .png, .pdf (needs the extra plots)")
    measure: Measure = option(
        "normalized", "NAME", f"what is plotted: {', '.join(get_args(Measure))} (default normalized)", needs=("--plot",)
    )
    sft: str | None = option(None, "FILE", "data to train on, as JSONL for TRL: prompts and completions; - for stdout")
    preferences: str | None = option(None, "FILE", "likewise: prompts with a better and a worse response")
    keep: Literal["all", "best", "value"] = option("all", "WHICH", needs=("--sft",))
    """all decisions (default), the best (returns above the mean), or value (actions of the largest value)"""
    text: bool = switch("as plain text, for models without a chat template", needs=TRAINED_ON)
    mode: str | None = option(None, "MODE", needs=TRAINED_ON)
    """think or direct (default: each agent's own, think for the others)"""
    eval_results: str | None = option(None, "DIR", "Hugging Face's .eval_results files, in a folder for every model")
    benchmark: str | None = option(None, "OWNER/NAME", needs=("--eval-results",))
    """the Hub's dataset that is the benchmark"""
    every_eval_ever: str | None = option(None, "DIR", "a JSON file for every model, by that schema")
    organization: str | None = option(None, "NAME", "the provider of the results", needs=("--every-eval-ever",))
    instances: bool = switch("beside it a line for every episode, responses included", needs=("--every-eval-ever",))
    imports: Texts = imports()


SCHEMAS = ("manifest", "episode", "run-config", "training-config")
"""The schemas of the product. An installed package adds those of its commands' documents under the group
``textbench.schemas`` of entry points, each a type that pydantic reads."""


def schema_names() -> tuple[str, ...]:
    """Return the names of all schemas, those of installed packages among them."""
    from textgames.plugins import installed

    return tuple(dict.fromkeys((*SCHEMAS, *installed("textbench.schemas"))))


@settings
class Schema:
    """Print the JSON Schema of a file or document that textbench reads or writes.

    examples:
      textbench schema episode              of one line of episodes.jsonl
      textbench schema --out docs/schemas   write all of them, as NAME.json
    """

    name: str | None = place("NAME", "which; without a name the error lists them", None, choices=schema_names)
    out: str | None = option(None, "DIR", "write the schemas into this folder instead")
