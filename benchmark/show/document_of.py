"""The document of a leaderboard page: :func:`results_document`. Its types are in ``benchmark.score.document``.

Every step of an episode has its board, observation and prompt, rebuilt by replaying the record.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from agents.common.refusals import shown
from agents.episode import Episode
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from benchmark.errors import UsageError
from benchmark.runs.authorship import tier_of
from benchmark.runs.folder import RunFolder
from benchmark.runs.manifest import ENTRY_KIND
from benchmark.runs.provenance import code_version
from benchmark.runs.replay import ending, replay_if_unchanged, requests_of
from benchmark.score.beside import losses_in
from benchmark.score.comparison import board_family, compare_best
from benchmark.score.document import (
    SCHEMA_VERSION,
    AgentView,
    EpisodeView,
    MeetingView,
    ScenarioView,
    SourceView,
    StepColumns,
    ViewDocument,
)
from benchmark.score.move_losses import MoveLosses
from benchmark.score.overall import Overall, suite_rows
from benchmark.score.ratings import meetings
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.score.samples import without_samples
from benchmark.score.scores import rating_rows, score_rows, shown_figures
from benchmark.show.board import board_tables
from benchmark.show.table import Scored
from textgames.scenarios import Scenario

MOST_PAIRED = 30  # agents of whom every pair is tested over all scenarios: those that a matrix shows at once


def results_document(
    results: ResultColumns,
    *,
    title: str = "textbench leaderboard",
    max_episodes: int = 5000,
    references: References | None = None,
) -> ViewDocument:
    """Make the document of results.

    With ``max_episodes`` so many are kept with their steps, while scores are over all of them; with 0 the comparisons
    are left out, too. Normalised scores are by ``references``, by default those of the results.
    """
    references = references or References(results)
    every, results = results, without_samples(results)
    over_all = Overall(results, references)
    overall = over_all.rows()
    agents = [row["agent"] for row in overall]
    ranked = [row["agent"] for row in overall if row["rank"] is not None]
    scores = score_rows(results, references)
    shown = {(row["agent"], row["scenario"]): shown_figures(row) for row in scores}
    document = ViewDocument(
        schema_version=SCHEMA_VERSION,
        title=title,
        textbench_version=code_version()["version"],
        sources=[_source_view(results, index) for index in range(len(results.sources))],
        agents=[_agent_view(results, name) for name in agents],
        scenarios=[_scenario_view(scenario) for scenario in results.scenarios.values()],
        scores=scores,
        overall=overall,
        overall_scenarios=over_all.names,
        suites=suite_rows(results, references),
        comparisons=compare_best(results, agents, shown) if max_episodes else [],
        overall_pairs=over_all.pairs(ranked[:MOST_PAIRED]) if max_episodes and len(over_all.names) > 1 else [],
        comparisons_family=board_family(results),
        ratings=rating_rows(results),
        meetings=[
            MeetingView(scenario=scenario, a=a, b=b, wins=wins, draws=draws, losses=losses)
            for scenario, games in results.games.items()
            for (a, b), (wins, draws, losses) in meetings(games).items()
        ],
        reliability=[],
        episodes=list(episode_views(results, max_episodes)) if max_episodes else [],
        episodes_planned=results.planned,
        episodes_total=results.played,
    )
    scored = Scored(results, references, agents, scores, overall, every)
    beside = {table.key: rows for table in board_tables() if (rows := table.find(scored))}
    return cast("ViewDocument", {**document, **beside})


def _source_view(results: ResultColumns, index: int) -> SourceView:
    path, manifest = results.sources[index]
    sessions = manifest.get("sessions") or [{}]
    code = manifest["textbench"]
    return SourceView(
        name=path.resolve().name,
        kind="entry" if manifest["kind"] == ENTRY_KIND else "run",
        textbench_version=str(code.get("version", "unknown")),
        commit=code.get("commit"),
        dirty=code.get("dirty"),
        started=sessions[0].get("started") or "",
        finished=sessions[-1].get("finished"),
        complete=results.source_complete[index],
        season=manifest["season"]["name"] if "season" in manifest else None,
    )


def _agent_view(results: ResultColumns, name: str) -> AgentView:
    card = results.agents[name]
    path, manifest = results.sources[results.agent_source[name]]
    return AgentView(
        name=name,
        spec=card["spec"],
        kind=card["kind"],
        source=results.agent_source[name],
        authorship=tier_of(path) if manifest["kind"] == ENTRY_KIND else None,
        settings={key: value for key, value in card["settings"].items() if key != "prompt_map"},
    )


def _scenario_view(scenario: Scenario) -> ScenarioView:
    game = scenario.game()
    return ScenarioView(
        name=scenario.name,
        env_id=scenario.env_id,
        kwargs=dict(scenario.kwargs),
        horizon=scenario.horizon,
        first_seed=scenario.first_seed,
        training=scenario.training,
        protocol=scenario.protocol,
        moves=scenario.moves,
        num_players=len(game.players),
        actions=list(game.actions),
        instructions=game.instructions(game.players[0]),
        palette=dict(game.palette),
        board_labels=None if game.board_labels is None else [list(names) for names in game.board_labels],
        success_means=game.success_means,
        legend=dict(getattr(game, "legend", {})),
    )


def episode_views(results: ResultColumns, max_episodes: int) -> Iterator[EpisodeView]:
    """Yield the first episodes of every scenario, of the first line-ups, with the same seeds for all agents."""
    shown = _shown_seeds(results, max_episodes)
    # each scenario has the same share of the episodes
    tables = max(1, max_episodes // max(1, len(results.scenarios)))
    lineups: dict[str, set[tuple[str, ...]]] = {name: set() for name in results.scenarios}
    seen: set[tuple[str, tuple[str, ...], int]] = set()
    for (path, manifest), names, places in zip(results.sources, results.names, results.places, strict=True):
        prompt_maps = {names[card["name"]]: prompt_map_of(card) for card in manifest["agents"] if card["name"] in names}
        wanted = (offset for scenario, seed, offset in places if seed in shown[scenario])
        for record in RunFolder(path, manifest).records_at(wanted):
            agents = {player: names.get(name, name) for player, name in record.agents.items()}
            key = (record.scenario, tuple(agents.values()), record.seed)
            everyone_listed = all(name in results.agents for name in agents.values())
            if everyone_listed and key not in seen:
                if len(lineups[key[0]]) >= tables and key[1] not in lineups[key[0]]:
                    continue
                lineups[key[0]].add(key[1])
                scenario, losses = results.scenarios[record.scenario], losses_in(results, record.scenario)
                yield _episode_view(len(seen), record, agents, scenario, prompt_maps, losses)
                seen.add(key)


def _shown_seeds(results: ResultColumns, max_episodes: int) -> dict[str, set[int]]:
    tables = dict.fromkeys(results.scenarios, 0)
    seeds: dict[str, set[int]] = {name: set() for name in results.scenarios}
    for (_, scenario), cell in results.cells.items():
        tables[scenario] += 1
        seeds[scenario].update(map(int, cell.columns["seed"]))
    for _, manifest in results.sources:
        for row in manifest["matchups"]:
            tables[row["scenario"]] += len(row["agents"]) > 1  # a round robin has more tables than agents
    each = max(1, max_episodes // max(1, sum(tables.values())))
    return {name: set(sorted(found)[:each]) for name, found in seeds.items()}


def _episode_view(
    number: int,
    record: Episode,
    agents: dict[str, str],
    scenario: Scenario,
    prompt_maps: Mapping[str, PromptMap | None],
    losses: MoveLosses | None,
) -> EpisodeView:
    replayed = replay_if_unchanged(record, scenario)
    steps, unknown = record.steps, list[Any]([None] * len(record.steps))
    prompts = unknown
    if replayed:
        maps = {player: prompt_maps.get(agent) for player, agent in agents.items()}
        asked = ((maps[step.player], request) for step, request in requests_of(replayed))
        prompts = [prompt_map and [message[:2] for message in prompt_map(request)] for prompt_map, request in asked]
    decisions = losses.of_replay(replayed) if losses and replayed else []
    return EpisodeView(
        id=number,
        scenario=record.scenario,
        seed=record.seed,
        agents=agents,
        returns=record.returns,
        successes=record.successes,
        terminated=record.terminated,
        truncated=record.truncated,
        error=record.error,
        ending=ending(record, replayed),
        final_board=replayed.board(replayed.episode.end_state) or None if replayed else None,
        final_observation=replayed.final_observations.get(next(iter(agents))) if replayed else None,
        steps=StepColumns(
            round=[step.index for step in steps],
            player=[step.player for step in steps],
            board=[replayed.board(s.state) or None for s in replayed.steps] if replayed else unknown,
            observation=[s.observation or None for s in replayed.steps] if replayed else unknown,
            prompt=prompts,
            reasoning=[step.turn.reasoning.strip() or None for step in steps],
            response=[step.turn.response for step in steps],
            action=[step.action for step in steps],
            valid=[step.valid for step in steps],
            unreadable=[step.unreadable for step in steps],
            reward=[step.reward for step in steps],
            happened=[replayed.happened(s) or None for s in replayed.steps] if replayed else unknown,
            lost=[round(one.lost, 6) for one in decisions] or unknown,
            best=[one.best for one in decisions] or unknown,
            finish_reason=[step.turn.finish_reason for step in steps],
        ),
    )


def prompt_map_of(card: Mapping[str, Any]) -> PromptMap | None:
    """Return the prompt map that an agent's card describes; ``None`` for players without a model."""
    settings = card["settings"].get("prompt_map")
    if not settings:
        return None
    try:
        return PromptMap(settings["mode"], settings["history_turns"], PromptTexts.from_data(settings["texts"]))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(
            f"the card of {shown(card['name'])} in the manifest has prompts that can't be read: prompt_map needs mode, "
            f"history_turns and texts, and it is {shown(settings)} ({error!r})"
        ) from None
