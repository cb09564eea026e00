"""The episodes of a page: every step with its board, observation and prompt, rebuilt by replaying the record."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from agents.common.refusals import shown
from agents.episode import Episode
from agents.prompt import PromptMap
from agents.prompt_texts import PromptTexts
from agents.turn import TurnRequest
from benchmark.errors import UsageError
from benchmark.runs.folder import RunFolder
from benchmark.runs.replay import Replay, ending, replay_if_unchanged, requests_of
from benchmark.score.document import EpisodeView, PromptMessageView, PromptPiece, StepColumns
from benchmark.score.results import ResultColumns
from textgames.scenarios import Scenario

NONE = -1
_SLOT = "\x00observation\x00"
_STEPS = 7_777_777_777  # a number of moves left that no prompt has, to find its place
_SLOTS = re.compile(f"({_SLOT}|{_STEPS})")


class TextTable:
    """Equal texts stored once; boards and observations repeat a lot."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    @property
    def texts(self) -> list[str]:
        return list(self._places)

    def place(self, text: str | None) -> int:
        """Return the index at which the text is stored; -1 if there is none."""
        return NONE if text is None else self._places.setdefault(text, len(self._places))


def episode_views(results: ResultColumns, max_episodes: int, texts: TextTable) -> Iterator[EpisodeView]:
    """Yield the first episodes of every scenario, of the first line-ups, with the same seeds for all agents."""
    shown = _shown_seeds(results, max_episodes)
    # each scenario has the same share of the episodes
    tables = max(1, max_episodes // max(1, len(results.scenarios)))
    lineups: dict[str, set[tuple[str, ...]]] = {name: set() for name in results.scenarios}
    seen = set()
    number = 0
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
                seen.add(key)
                scenario = results.scenarios[record.scenario]
                yield _episode_view(number, record, agents, scenario, prompt_maps, texts)
                number += 1


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
    texts: TextTable,
) -> EpisodeView:
    replayed = replay_if_unchanged(record, scenario)
    steps, unknown = record.steps, [NONE] * len(record.steps)

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
        ending=texts.place(ending(record, replayed)),
        final_board=texts.place(replayed.board(replayed.episode.end_state) or None) if replayed else NONE,
        final_observation=texts.place(replayed.final_observations.get(next(iter(agents)))) if replayed else NONE,
        steps=StepColumns(
            round=[step.index for step in steps],
            player=[step.player for step in steps],
            board=[texts.place(replayed.board(s.state) or None) for s in replayed.steps] if replayed else unknown,
            observation=[texts.place(s.observation or None) for s in replayed.steps] if replayed else unknown,
            prompt=_prompts(replayed, agents, scenario, prompt_maps, texts) if replayed else unknown,
            reasoning=[texts.place(step.turn.reasoning.strip() or None) for step in steps],
            response=[texts.place(step.turn.response) for step in steps],
            action=[step.action for step in steps],
            valid=[step.valid for step in steps],
            unreadable=[step.unreadable for step in steps],
            reward=[step.reward for step in steps],
            happened=[texts.place(replayed.happened(s) or None) for s in replayed.steps] if replayed else unknown,
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


def prompt_pieces(prompt_map: PromptMap, scenario: Scenario) -> list[PromptMessageView]:
    """Return the prompt of a first step, with slots where the observation and the moves left go."""
    game = scenario.game()
    player = game.players[0]
    request = TurnRequest(_SLOT, game.instructions(player), game.actions, (), player, _STEPS)
    slots = {_SLOT: PromptPiece(slot="observation"), str(_STEPS): PromptPiece(slot="steps_left")}
    return [
        PromptMessageView(
            role=message.role,
            pieces=[slots.get(text) or PromptPiece(text=text) for text in _SLOTS.split(message.content) if text],
        )
        for message in prompt_map(request)
    ]


def fill_pieces(messages: list[PromptMessageView], observation: str, steps_left: int | None) -> str:
    """Join the contents of the messages by blank lines, as the page does."""
    filled = {"observation": observation, "steps_left": str(steps_left)}
    return "\n\n".join(
        "".join(filled[piece["slot"]] if "slot" in piece else piece["text"] for piece in message["pieces"])
        for message in messages
    )


def _prompts(
    replayed: Replay,
    agents: Mapping[str, str],
    scenario: Scenario,
    prompt_maps: Mapping[str, PromptMap | None],
    texts: TextTable,
) -> list[int]:
    """Return the place of each step's whole prompt, or -1 if the pieces give it."""
    known = {player: prompt_maps.get(agent) for player, agent in agents.items()}
    if not any(known.values()):
        return [NONE] * len(replayed.steps)
    pieces = {player: prompt_pieces(one, scenario) for player, one in known.items() if one is not None}
    places = []
    for step, request in requests_of(replayed):
        prompt_map = known[step.player]
        whole = None
        if prompt_map is not None:
            whole = "\n\n".join(message.content for message in prompt_map(request))
            left = scenario.horizon - step.index  # as the page has it
            if whole == fill_pieces(pieces[step.player], step.observation, left):
                whole = None
        places.append(texts.place(whole))
    return places
