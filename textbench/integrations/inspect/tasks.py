"""A scenario as a task: a sample is an episode, its id the episode's seed."""

from typing import Any

from inspect_ai import Task
from inspect_ai._util.error import PrerequisiteError  # what Inspect's command line prints as a sentence
from inspect_ai.dataset import MemoryDataset, Sample

from agents import EpisodeSession, PromptMap, load_agent
from agents.protocol import STANDARD, check_moves, same_protocol
from benchmark.errors import UsageError
from benchmark.runs.plan import find_scenarios
from textbench.integrations.inspect.scorers import episode_return, failed, invalid, success
from textbench.integrations.inspect.solver import play_episode
from textgames.scenarios import Scenario
from textgames.settings import check_whole


def scenario_task(
    scenario: Scenario | str,
    *,
    episodes: int = 50,
    seed_offset: int = 0,
    mode: str = "think",
    history: int = 0,
    prompts: str | None = None,
    opponents: Any = "random",
    seat: str | None = None,
    protocol: str = STANDARD["protocol"],
    moves: str = STANDARD["moves"],
    twin: int = 0,
) -> Task:
    """Return the episodes that ``textbench run`` plays, on the same seeds, as a task.

    Args:
        scenario: one of the tables, or one of your own; by name also ``"my_module:MyGame-v0"``.
        episodes: how many samples.
        seed_offset: the first of them is this episode of the scenario.
        mode: which template ends the prompts (``"think"``, ``"direct"``).
        history: how many of the last turns a prompt repeats; 0 for prompts that stand for themselves.
        prompts: a file with another wording.
        opponents: in games of several players, who has the other seats: any agent of ``textbench run``.
        seat: in such games, whom Inspect's model plays; the first player when not given.
        protocol: what an unreadable response leads to, as in ``textbench run``.
        moves: ``"listed"`` or ``"unlisted"``: whether prompts list the legal moves.
        twin: the number of the twin that is played, on the same seeds; 0 for the game itself.

    Raises:
        PrerequisiteError: a name or a value that isn't accepted; Inspect prints it as it is.
    """
    try:
        for name, number, least in (("episodes", episodes, 1), ("seed_offset", seed_offset, 0), ("twin", twin, 0)):
            check_whole(name, number, least, None)
        if isinstance(scenario, str):
            (scenario,) = find_scenarios([scenario]).values()
        if twin:
            scenario = scenario.twin(twin)
        scenario = scenario._replace(protocol=same_protocol(protocol), moves=check_moves(moves))
        prompt_map = PromptMap.from_file(prompts, mode, history)
        if isinstance(opponents, str):
            opponents = load_agent(opponents)
        first = EpisodeSession(
            scenario, scenario.first_seed, seat=seat, opponents=opponents, prompt_map=prompt_map
        )  # what is wrong is said now, not in every sample
    except (UsageError, ValueError, TypeError, ModuleNotFoundError) as error:
        raise PrerequisiteError(str(error)) from None
    seeds = [scenario.seed(seed_offset + index) for index in range(episodes)]
    return Task(
        dataset=MemoryDataset(
            [Sample(f"{scenario.name}, seed {seed}", id=seed, metadata={"seed": seed}) for seed in seeds],
            name=scenario.name,
        ),
        solver=play_episode(scenario, prompt_map, opponents, seat),
        scorer=[episode_return(), *([success()] if scenario.game().success_means else []), invalid(), failed()],
        score_on_error=True,  # an episode that fails stays in the tables, as failed
        metadata={
            **{"env_id": scenario.env_id, "player": first.player, "prompts": prompt_map.settings},
            **{"protocol": scenario.protocol, "moves": scenario.moves},
        },
    )
