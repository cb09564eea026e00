"""Checking a leaderboard entry: every episode is played again from its seed and responses, and must come out equal.

Nothing that an entry claims is believed: not its scenarios' settings, not which episodes there are, not one reward.
Claims that no replay can show (names, token counts, seconds, prices) must at least be possible, readable, and in
agreement with the rest of the entry. The author of the responses can only be checked for the project's own players, by
asking them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from agents.common.reading import LineTooLongError, read_lines
from agents.common.refusals import shown
from agents.episode import Episode
from agents.models.base import Decoding
from agents.models.served.dialect import OMITTABLE
from agents.protocol import LEGAL_ONLY, OF_MODELS
from agents.turn import FinishReason, total_usage
from benchmark.entries.alike import likeness_warnings, problems_beside, shipped_problem
from benchmark.entries.authors import author_problems, differences, kind_problems
from benchmark.entries.entry import Terms, name_problem, open_terms
from benchmark.errors import UsageError
from benchmark.play.agents.options import AgentSpec
from benchmark.play.agents.players import is_larger, is_shipped
from benchmark.play.options import ADDED, COUNTING, RunOptions
from benchmark.runs.authorship import RERUN, taken_on_trust, tier_of
from benchmark.runs.folder import EPISODES_NAME, RunFolder, folder_name
from benchmark.runs.manifest import ENTRY_KIND, MANIFEST_NAME, Manifest, strict_json
from benchmark.runs.plan import Plan, scenario_to_json
from benchmark.runs.provenance import data_digest
from benchmark.runs.record import MAX_SEED, Key, key_of, recorded
from benchmark.runs.replay import ReplayError, replay
from benchmark.score.luck_check import LuckCheck, LuckPower, LuckTally, luck_problems
from benchmark.score.stopping import looks
from textgames.scenarios import Scenario, known_scenario

MOST_LETTERS = (24, 12)
"""In a token of prompts and of responses, in the mean over an entry: boards have runs of equal signs."""
MOST_REASONING = 10**6  # tokens of one response whose reasoning isn't shown
MOST_PROMPT = 2 * 10**6  # tokens of one prompt: more than models read
LOCAL = ("hf", "vllm")
"""Kinds whose responses are all of what was generated: never more than ``max_tokens``."""
MAX_PROBLEMS = 20  # reading stops after so many
OWN_MODELS = ("openai", "litellm", "hf", "vllm")
"""The project's own kinds: every decoding setting is known to reach the model, or the record says that it didn't."""
LONGEST_TEXT = 1000  # characters of a manifest's texts but the prompts


class TokenTally:
    """Adds up the tokens of an entry's episodes, and the letters that they stand for, of prompts and completions.

    Most tokenizers aren't known here, but a token is a piece of a text: over a whole entry a token of any tokenizer has
    some three or four letters. Counts decide what a score cost.
    """

    def __init__(self) -> None:
        self._tokens, self._letters = [0, 0], [0, 0]
        self._most = [(0, ""), (0, "")]  # of one answer, and its place

    def add(self, episode: Episode) -> None:
        """Count one episode that was played again; answers that give no tokens don't matter."""
        for index, step in enumerate(episode.steps):
            place = f"{episode.scenario}, seed {episode.seed}, step {index}"
            for turn in step.turns:
                written = turn.response + turn.reasoning + turn.tool_calls + turn.cut
                for i, text in enumerate((step.observation, written) if any(turn.usage[:2]) else ()):
                    self._tokens[i] += turn.usage[i]
                    self._letters[i] += len(text)
                    self._most[i] = max(self._most[i], (turn.usage[i], place), key=lambda one: one[0])

    def problems(self, card: Mapping[str, Any]) -> Iterator[str]:
        limit = card["settings"].get("max_tokens")
        longest = limit if card["kind"] in LOCAL and isinstance(limit, int) else MOST_REASONING
        for i, (what, most) in enumerate((("prompt", MOST_PROMPT), ("response", longest))):
            count, place = self._most[i]
            if count > most:
                yield f"{place}: a {what} of {count:,} tokens, at most {most:,} are possible"
            if self._letters[i] > MOST_LETTERS[i] * self._tokens[i] > 0:
                yield (
                    f"all {what}s have {self._tokens[i]:,} tokens for {self._letters[i]:,} letters; no tokenizer has "
                    f"so few, a token is at most {MOST_LETTERS[i]} letters long in the mean"
                )


@dataclass
class Verdict:
    """The result of the check of an entry; problems, warnings and the like are one sentence each."""

    # at most MAX_PROBLEMS, each with its place; nothing for a good entry
    problems: list[str] = field(default_factory=list)
    # {scenario: how much luck it had} of the scenarios with chance, if every episode was looked at
    luck: Mapping[str, LuckCheck] = field(default_factory=dict)
    # {scenario: how much undue luck that check would have found} of the same ones
    power: Mapping[str, LuckPower] = field(default_factory=dict)
    # who vouches for its responses, a tier of benchmark.runs.authorship; none of an entry that is refused
    authorship: str | None = None
    warnings: list[str] = field(default_factory=list)  # for a reader to look at
    on_trust: list[str] = field(default_factory=list)  # what no check can tell
    unchecked: list[str] = field(default_factory=list)  # what should have been checked and couldn't be here


def check_entry(path: Path, terms: Terms | None = None, beside: Path | None = None) -> Verdict:
    """Check an entry by ``terms``, by default those of the open leaderboard whose folder it lies in.

    ``beside`` is the folder of the other entries, by default its own. A UsageError is raised if it isn't an entry.
    """
    folder = RunFolder.open(path)
    manifest, own_name = folder.manifest, path.resolve().name
    if manifest["kind"] != ENTRY_KIND:
        raise UsageError(f"{path} is a run, not an entry; make one: textbench submit {path} --agent NAME")
    plan = Plan.from_manifest(manifest)
    # The episodes are looked at only if the manifest is sound: without trusted definitions there is nothing to replay
    # against.
    terms = terms or open_terms(path.resolve().parent.name)
    problems = list(islice(manifest_problems(manifest, plan, terms), MAX_PROBLEMS))
    links = [file.name for file in (path / MANIFEST_NAME, folder.episodes_path) if file.is_symlink()]
    problems += (f"{name}: is a link, an entry holds its own files" for name in links)
    if not problems and own_name != (name := folder_name(manifest["agent"])):
        # submit makes no other; else one agent could stand twice on a board
        problems.append(f"{MANIFEST_NAME}: the agent's folder is {name!r}, this one is {shown(own_name)}")
    beside = beside or path.resolve().parent
    if not problems:
        problems += (f"{MANIFEST_NAME}: {each}" for each in problems_beside(manifest["agent"], beside, own_name))
    tally, tokens = LuckTally(plan.scenarios), TokenTally()
    try:
        problems = problems or list(islice(_episode_problems(folder, plan, tally, tokens), MAX_PROBLEMS))
    except LineTooLongError as error:
        problems = [f"{EPISODES_NAME}: a line isn't an episode: {error}"]
    if problems:
        return Verdict(problems)
    luck, card = tally.checks(), manifest["agents"][0]
    anew = is_shipped(card["spec"]) and not is_larger(card["spec"])  # its tokens are counted anew
    counts = () if anew else tokens.problems(card)
    found = [*luck_problems(luck), *counts, *islice(author_problems(folder, plan), MAX_PROBLEMS)]
    verdict = Verdict(found[:MAX_PROBLEMS], luck, tally.powers())
    if not verdict.problems:
        verdict.authorship = RERUN if anew else tier_of(path)
        verdict.warnings = [*likeness_warnings(folder, plan, beside)]
        verdict.on_trust = taken_on_trust(verdict.authorship, is_larger(card["spec"]))
    return verdict


def manifest_problems(manifest: Manifest, plan: Plan, terms: Terms | None = None) -> Iterator[str]:
    """Yield what is wrong with an entry's claims about itself."""
    terms = terms or open_terms()
    if len(manifest["agents"]) != 1:
        yield f"{MANIFEST_NAME}: an entry has the card of one agent"
        return
    card = manifest["agents"][0]
    if card["name"] != manifest.get("agent"):
        yield f"{MANIFEST_NAME}: agent is {shown(manifest.get('agent'))}, its card says {shown(card['name'])}"
        return
    for problem in (
        *_text_problems(manifest, ""),
        *_card_problems(card),
        *_settings_problems(manifest["settings"], card, plan, terms),
        *_scenario_problems(manifest["scenarios"], terms),
        *_seed_problems(plan, card["name"], manifest, terms),
    ):
        yield f"{MANIFEST_NAME}: {problem}"
    if (claimed := manifest.get("season")) != terms.mark:
        wanted = "no season" if terms.mark is None else f"the season {terms.mark['name']!r}"
        known = "none" if claimed is None else f"{shown(claimed['name'])} with the digest {claimed['sha256'][:12]}"
        yield f"{MANIFEST_NAME}: season is {known}, an entry of {wanted} is checked; see textbench validate --season"
    if strangers := sorted(manifest.get("prices", {}).keys() - {card["name"]}):
        yield f"{MANIFEST_NAME}: prices are given for {shown(strangers[0])}, the entry is of {card['name']!r}"


def _text_problems(value: Any, place: str) -> Iterator[str]:
    """Yield texts that look like something else than they are, and numbers that no table can hold."""
    if isinstance(value, dict | list):
        for name, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _text_problems(str(name), f"a key of {place or 'the manifest'}")
            if name != "prompt_map":  # prompts have many lines, and whatever letters their author wants
                yield from _text_problems(item, f"{place}.{name}" if place else str(name))
    elif isinstance(value, str):
        invisible = next((letter for letter in value if not letter.isprintable()), None)
        if invisible is not None:
            yield f"{place} has the invisible character U+{ord(invisible):04X}"
        if len(value) > LONGEST_TEXT:
            yield f"{place} has {len(value):,} characters, at most {LONGEST_TEXT:,} are accepted"
    elif isinstance(value, int | float) and abs(value) > MAX_SEED:
        yield f"{place} is {shown(value)}, too large for a number of a manifest"


def _card_problems(card: dict[str, Any]) -> Iterator[str]:
    settings = card["settings"]
    yield from filter(None, (name_problem(card["name"]), shipped_problem(card["name"], card["spec"])))
    yield from kind_problems(card)
    prompt_map = settings.get("prompt_map")
    if prompt_map is not None and settings.get("prompt_map_digest") != data_digest(prompt_map):
        yield "prompt_map_digest isn't the digest of the prompt map"
    names = ("temperature", "top_p", "max_tokens", "stop")
    try:
        Decoding(**{name: settings[name] for name in names if name in settings})
    except (TypeError, ValueError) as error:
        yield f"the card's settings aren't possible: {error}"


def _settings_problems(settings: dict[str, Any], card: dict[str, Any], plan: Plan, terms: Terms) -> Iterator[str]:
    odd = sorted((set(settings) ^ set(COUNTING)) - set(ADDED))
    if odd:
        yield f"settings.{odd[0]} is {'missing' if odd[0] in COUNTING else 'unknown'}"
        return
    try:
        RunOptions.of(settings, {name: f"settings.{name}" for name in settings})
    except UsageError as error:
        yield str(error)
        return
    for name, wanted in {"seed_offset": terms.seed_offset, **terms.settings}.items():
        if settings[name] != wanted:
            yield f"settings.{name} is {shown(settings[name])}, an entry has {wanted!r}"
    if settings.get("resample") is not None:  # else the best of many samples could be chosen
        yield f"settings.resample is {shown(settings['resample'])}, an entry has the samples of its seeds"
    for name in ("agents", "scenarios"):
        if len(set(settings[name])) < len(settings[name]):
            yield f"settings.{name} has a name twice: {shown(settings[name])}"
    if AgentSpec(card["name"], card["spec"]) not in map(AgentSpec.parse, settings["agents"]):
        yield f"settings.agents has no agent {card['name']!r} with the spec {shown(card['spec'])}"
    for name in plan.scenarios:
        if name not in settings["scenarios"]:
            yield f"settings.scenarios lacks {shown(name)}, which has episodes"
    own_model = card["kind"] in OWN_MODELS
    for name, protocol in OF_MODELS.items() if own_model else ():
        if bool(card["settings"].get(name)) != (settings["protocol"] == protocol):
            yield f"settings.protocol is {settings['protocol']!r}, and the card says otherwise of {name}"
    for name in ("temperature", "top_p", "max_tokens", "mode", "history"):
        on_card = card["settings"].get("history_turns" if name == "history" else name)
        wanted = (settings.get("agent_options") or {}).get(card["name"], {}).get(name, settings[name])
        if wanted is None and own_model:  # it wasn't set, so it is what these kinds have by themselves
            wanted = getattr(Decoding(), name, None)
        if wanted is not None and on_card != wanted and (own_model or on_card is not None):
            yield f"settings.{name} gives {wanted!r}, the card says {shown(on_card)}"


def _scenario_problems(claimed: dict[str, Any], terms: Terms) -> Iterator[str]:
    for name in terms.scenarios:
        if name not in claimed:
            yield f"scenario {name!r} is missing"
    for name, definition in claimed.items():
        if terms.exact and name not in terms.scenarios:
            yield f"scenario {shown(name)} isn't one of {', '.join(terms.scenarios)}"
        known = known_scenario(name)
        if known is None:
            yield f"there is no scenario {shown(name)}"
            continue
        for path, ours, theirs in differences(scenario_to_json(known), definition, f"scenarios.{name}"):
            yield f"{path} is {shown(theirs)}, the scenario's is {ours!r}"


def _seed_problems(plan: Plan, agent: str, manifest: Manifest, terms: Terms) -> Iterator[str]:
    episodes, until = (manifest["settings"].get(name) for name in ("episodes", "until"))
    # a run that grew until its intervals were narrow stopped at one of its planned looks
    grown = until is not None and isinstance(episodes, int)
    counts = looks(episodes, manifest.get("extended", ())) if grown else [episodes]
    for matchup, seeds in plan.seeds.items():
        name, count = matchup.scenario, len(seeds)
        known = known_scenario(name)
        if known is None:
            continue  # which has been reported
        if agent not in matchup.agents:
            yield f"{name}: {agent!r} doesn't play in it"
        first = known.first_seed + terms.seed_offset
        if list(seeds) != list(range(first, first + count)):
            yield f"{name}: the seeds aren't {first}, {first + 1}, ... without a gap"
        if count < terms.episodes or (terms.exact and count != terms.episodes):
            yield f"{name}: {count} episodes, an entry has {'' if terms.exact else 'at least '}{terms.episodes}"
        if count not in counts:
            yield f"{name}: {count} episodes, settings.episodes is {shown(episodes)}"
    for name in terms.scenarios:
        if (name, (agent,)) not in plan.seeds:
            yield f"no episodes of {name!r}"


def _episode_problems(folder: RunFolder, plan: Plan, tally: LuckTally, tokens: TokenTally) -> Iterator[str]:
    if not folder.episodes_path.is_file() or not folder.episodes_path.stat().st_size:
        yield f"{EPISODES_NAME} is missing or empty"
        return
    missing = dict.fromkeys(plan.episodes())
    seen: set[Key] = set()
    with folder.episodes_path.open("rb") as lines:
        for number, line in enumerate(read_lines(lines), start=1):
            place = f"{EPISODES_NAME} line {number}"
            if not line.endswith(b"\n"):
                yield f"{EPISODES_NAME}: the last line isn't finished"
                return
            try:
                strict_json(line)  # the quick parser of records lets a key stand twice in an object
                record = folder.parse(line)
            except ValueError as error:
                yield f"{place} isn't an episode: {error}"
                continue
            key = key_of(record)
            if key in missing:
                del missing[key]
                seen.add(key)
                scenario = plan.scenarios[record.scenario]  # which is the table's, played by the entry's protocol
                problems = (*_measure_problems(record), *replay_problems(record, scenario, tally, tokens))
            else:
                problems = ("the same episode again" if key in seen else "isn't an episode of this entry",)
            yield from (f"{place} ({key}): {problem}" for problem in problems)
    yield from (f"{EPISODES_NAME}: {key} is missing" for key in missing)


def _measure_problems(record: Episode) -> Iterator[str]:
    """Yield what contradicts itself among the figures that no replay can give."""
    measured, players = record.measured, record.agents.keys()
    total = total_usage(turn.usage for step in record.steps for turn in step.turns)
    counted, cached = [total.prompt_tokens, total.completion_tokens], measured.get("cached_tokens", [0, 0])
    if any(part > whole for part, whole in zip(cached, counted, strict=True)):
        yield f"measured.cached_tokens is {cached}, all tokens are {counted}"
    by_player = measured.get("cached_by_player")
    if by_player is not None and [sum(tokens[i] for tokens in by_player.values()) for i in (0, 1)] != cached:
        yield f"measured.cached_by_player is {by_player}, measured.cached_tokens is {cached}"
    for name in ("cached_by_player", "discarded_tokens", "cpu_seconds"):
        if strange := measured.get(name, {}).keys() - players:
            yield f"measured.{name} names {shown(min(strange))}, who doesn't play"
    for player, models in measured.get("served_by", {}).items():
        if player not in players or not all(model.isprintable() for model in models):
            yield f"measured.served_by says that {shown(player)} was answered by {shown(models)}"
    for player, number in measured.get("provider_cached_tokens", {}).items():
        prompts = sum(turn.usage.prompt_tokens for step in record.steps_of(player) for turn in step.turns)
        if number > prompts:
            yield f"measured.provider_cached_tokens of {shown(player)} is {number}, all its prompts have {prompts}"
    for player, names in measured.get("left_out", {}).items():
        if player not in players or not set(names) <= set(OMITTABLE):
            yield f"measured.left_out says that {shown(player)} was asked without {shown(names)}"
    for index, turn in ((i, turn) for i, step in enumerate(record.steps) for turn in step.turns):
        if turn.usage.reasoning_tokens > turn.usage.completion_tokens:
            yield f"step {index}: has more reasoning tokens than completion tokens"
        if turn.finish_reason not in get_args(FinishReason):
            yield f"step {index}: finish_reason is {shown(turn.finish_reason)}, there are {get_args(FinishReason)}"


def replay_problems(
    record: Episode, scenario: Scenario, tally: LuckTally | None = None, tokens: TokenTally | None = None
) -> Iterator[str]:
    """Yield where a record differs from what its own seed and responses give; its luck and tokens go to the tallies."""
    if record.error is not None:
        yield f"is unscored ({record.error})"
        return
    try:
        played = replay(record, scenario)
    except ReplayError as error:
        yield str(error)
        return
    if tally is not None:
        tally.add(record.scenario, played)
    if tokens is not None:
        tokens.add(played.episode)
    again = recorded(played.episode)
    if not played.over:
        yield f"ends after {len(played.steps)} responses, but the game goes on"
    if list(record.agents) != list(again.returns):
        yield f"agents has the players {', '.join(record.agents)}, the game has {', '.join(again.returns)}"
    for index, (claimed, step) in enumerate(zip(record.steps, played.steps, strict=True)):
        for name in ("action", "valid", "unreadable", "reward"):
            told, ours = getattr(claimed, name), getattr(step, name)
            if told != ours:
                ours = str(ours) if isinstance(ours, str) else ours  # of an enumeration
                yield f"step {index}: {name} is {shown(told)}, the replay gives {ours!r}"
        if scenario.protocol == LEGAL_ONLY and played.asked[index].legal_actions and not step.valid:
            yield f"step {index}: {shown(claimed.turn.response)} is no legal answer, and the protocol is {LEGAL_ONLY}"
        for before, now in zip(claimed.refused, step.refused, strict=True):
            if before.unreadable != now.unreadable:
                yield f"step {index}: refused for {shown(before.unreadable)}, the replay gives {now.unreadable!r}"
    for name in ("returns", "successes", "terminated", "truncated", "observations_digest"):
        if (told := getattr(record, name)) != getattr(again, name):
            yield f"{name} is {shown(told)}, the replay gives {getattr(again, name)!r}"
    if record.metrics and record.metrics != again.metrics:  # a record of before games had metrics is as good
        yield f"metrics is {shown(record.metrics)}, the replay gives {again.metrics!r}"
