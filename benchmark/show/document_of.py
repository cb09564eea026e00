"""The document of a leaderboard page: :func:`results_document`. Its types are in ``benchmark.score.document``."""

from typing import cast

from benchmark.runs.authorship import tier_of
from benchmark.runs.manifest import ENTRY_KIND
from benchmark.runs.provenance import code_version
from benchmark.score.comparison import board_family, compare_best
from benchmark.score.document import SCHEMA_VERSION, AgentView, MeetingView, ScenarioView, SourceView, ViewDocument
from benchmark.score.overall import Overall, suite_rows
from benchmark.score.ratings import meetings
from benchmark.score.references import References
from benchmark.score.results import ResultColumns
from benchmark.score.samples import without_samples
from benchmark.score.scores import rating_rows, score_rows, shown_figures
from benchmark.show.board import board_tables
from benchmark.show.episode_views import episode_views
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
