"""The episodes of a page: every step with its board, observation and prompt, rebuilt by replaying the record."""

from collections.abc import Iterator, Mapping
from typing import Any

from agents.common.refusals import shown
from agents.episode import Episode
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import ending, replay_if_unchanged, requests_of
from benchmark.score.beside import losses_in
from benchmark.score.document import EpisodeView, StepColumns
from benchmark.score.move_losses import MoveLosses
from benchmark.score.results import ResultColumns
from textgames.scenarios import Scenario


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
