"""What an iteration plays and what the update takes from it: tasks -> episodes -> trajectories -> rows of tokens."""

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any

import numpy as np

from agents.episode import Episode, EpisodeTask
from agents.loop.live import environment_of
from agents.loop.session import check_seat
from agents.models.local.loading.card import Card
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import Batch, Floats, StepCredit, TokenRow, Trajectory
from agents.msgrpo.draws import Drawn
from agents.msgrpo.errors import ConfigError, RolloutError, refused
from agents.msgrpo.filters import share_of_equals
from agents.prompt import PromptMap
from agents.prompt_texts import CARD_NAME, PromptTexts
from agents.turn import Prompt, request_in
from textgames import TRAINING_SEEDS, TSMG, Scenario, game_of, known_scenario, parallel_env
from textgames.registry import settings_of
from textgames.rounds import rounds_of_play
from textgames.scenarios import scenario_of_game

SEATED = ("seat", "opponents")
"""The settings of a scenario of which one seat alone is the model's."""

Game = Scenario | str  # what to train or evaluate on: a scenario, a scenario's name or an environment id

LEARNER, CHECKPOINT = "learner", "checkpoint"
"""The names of the model that is trained, as a player, and of what it was after an earlier iteration."""


def game_task(game: Game, seed: int, **settings: Any) -> EpisodeTask:
    """Return an episode of a game. A scenario's ``seat`` (by default the first) and ``opponents`` become its team."""
    scenario = known_scenario(game) if isinstance(game, str) else game
    if scenario is None or not (own := {name: scenario.kwargs[name] for name in SEATED if name in scenario.kwargs}):
        return EpisodeTask.of(game, seed, **settings)
    kwargs = {name: value for name, value in scenario.kwargs.items() if name not in own}
    task, players = EpisodeTask.of(scenario._replace(kwargs=kwargs), seed, **settings), scenario.game().players
    seat, opponents = own.get("seat", players[0]), own.get("opponents")
    check_seat(seat, players)
    others = opponents if isinstance(opponents, Mapping) else dict.fromkeys(players, opponents)
    team: tuple[Any, ...] = tuple(LEARNER if player == seat else others.get(player) for player in players)
    if not all(isinstance(name, str) for name in team):
        raise ValueError(
            f"opponents = {opponents!r} with seat = {seat!r}: accepted is an agent's name for all other seats, or a "
            f"table with one for each of {', '.join(player for player in players if player != seat)}"
        )
    return replace(task, team=team)


def tsmg_of(game: Game) -> TSMG[Any]:
    """Return the rules of a game that is named for training or evaluation."""
    task = EpisodeTask.of(game, 0)
    return game_of(task.env_id, **task.kwargs)


def game_name(game: Game) -> str:
    """Return the name under which metrics and evaluations speak of a game."""
    return game.name if isinstance(game, Scenario) else game


def scenarios_in(table: Mapping[str, Any]) -> list[str]:
    """List the scenarios with a table of their own in ``[game]``."""
    return [name for name, value in table.items() if isinstance(value, Mapping) and name not in SEATED]


def with_settings(game: Game, table: Mapping[str, Any]) -> Game:
    """Return a game with the settings of ``[game]``, those in the table of its name included; itself without any."""
    tables = {name: table[name] for name in scenarios_in(table)}
    own = {name: value for name, value in table.items() if name not in tables}
    own |= tables.get(game_name(game), {})
    if taken := own.keys() & {"max_steps", "format_penalty", "invalid_action"}:
        raise ValueError(f"{min(taken)} is no setting of [game]: it stands in [rollout], for all games")
    if not own:
        return game
    scenario = game if isinstance(game, Scenario) else known_scenario(game) or scenario_of_game(game)
    return scenario._replace(kwargs={**scenario.kwargs, **own}, horizon=scenario.horizon_with(own))


def training_tasks(config: MSGRPOConfig, games: Sequence[Game], iteration: int, part: int = 0) -> list[EpisodeTask]:
    """Return the episodes of an iteration, group by group; they depend on the run's seed and the iteration alone.

    The episodes of a group have one ``layout_seed`` and each a ``seed`` of its own, also for its transitions unless
    ``shared_chance`` takes the first one's. Another ``part``, for samplers that play more, has other layouts.
    """
    entropy = (config.seed, iteration, 0, part) if part else (config.seed, iteration, 0)
    rng = np.random.default_rng(entropy)
    layouts = rng.choice(len(TRAINING_SEEDS), size=config.groups, replace=False)
    seeds = rng.choice(len(TRAINING_SEEDS), size=config.episodes, replace=False)
    settings: dict[str, Any] = {"format_penalty": config.format_penalty, "invalid_action": config.invalid_action}
    if config.max_steps:
        settings["max_steps"] = config.max_steps
    tasks = []
    for index, seed in enumerate(seeds.tolist()):
        group = index // config.group_size
        layout = TRAINING_SEEDS[int(layouts[group])]
        noise = (config.seed, iteration, part) if part else (config.seed, iteration)
        game = games[(group + iteration * config.groups) % len(games)]
        tasks.append(game_task(game, TRAINING_SEEDS[seed], layout_seed=layout, noise=noise, **settings))
    if config.shared_chance:
        firsts = tasks[:: config.group_size]
        tasks = [replace(task, chance_seed=firsts[k // config.group_size].seed) for k, task in enumerate(tasks)]
    if not config.opponents and not any(task.team for task in tasks):
        return tasks
    mixture = config.opponents or {LEARNER: 1.0}
    shares = np.array([*mixture.values()]) / sum(mixture.values())
    drawn = rng.choice([*mixture], size=config.groups, p=shares).tolist()
    past = frozen_before(config, iteration)
    versions = rng.integers(len(past), size=config.groups).tolist()
    for index, task in enumerate(tasks):
        group, players = index // config.group_size, environment_of(task).game.players
        seat = (group + iteration * config.groups) // len(games) % len(players)
        name = f"{CHECKPOINT}-{past[versions[group]]}" if drawn[group] == CHECKPOINT else drawn[group]
        team = tuple(LEARNER if place == seat else name for place in range(len(players)))
        tasks[index] = replace(task, team=task.team or team)
    return tasks


def frozen_before(config: MSGRPOConfig, iteration: int) -> range:
    """Return the iterations before which the weights were frozen that an iteration may meet as ``checkpoint``."""
    every = config.opponent_every
    newest = max(0, iteration - config.staleness) // every  # what is played ahead can't meet what is yet to come
    return range(max(0, newest + 1 - config.opponents_kept) * every, newest * every + 1, every)


def learners(episode: Episode) -> list[str]:
    """List the players that the model was, of the seats in their order."""
    seats = zip(episode.returns, episode.team or repeat(LEARNER), strict=False)
    return [player for player, name in seats if name == LEARNER]


def opponents_in(team: Iterable[str]) -> list[str]:
    """List the players of a team other than the learner; all of its earlier weights are one."""
    names = (CHECKPOINT if name.startswith(f"{CHECKPOINT}-") else name for name in team)
    return sorted({name for name in names if name != LEARNER})


def games_of(game: Game, config: MSGRPOConfig) -> list[Game]:
    """Return what to train on: the config's scenarios, or else ``game``, with the settings of ``[game]``."""
    games: list[Game] = list(config.scenarios) or ([game] if game else [])
    if not games:
        raise ConfigError("scenarios is empty and no game was given; accepted: scenario names or environment ids")
    tables = {name: scenarios_in(getattr(config, name)) for name in ("game", "eval_game")}
    for setting, named in {"scenarios": games, "eval_scenarios": config.eval_scenarios, **tables}.items():
        for one in named:
            with refused(setting, ValueError, ImportError):
                settings_of(EpisodeTask.of(one, 0).env_id)  # which imports the module of "my_module:MyGame-v0"
    evaluated = config.eval_scenarios or (games if config.eval_game else ())
    places = [(one, config.game, config.max_steps) for one in games]
    for one, own, most in [*places, *((one, config.eval_game, 0) for one in evaluated)]:
        limit: dict[str, Any] = {"max_steps": most} if most else {}
        with refused(game_name(one), ValueError, TypeError):  # not every game has an action that does nothing
            task = game_task(with_settings(one, own), 0, invalid_action=config.invalid_action, **limit)
            env = parallel_env(task.env_id, **task.kwargs)
        if env.rules.max_steps is None:
            raise ConfigError(
                f"{game_name(one)} has no step limit, so an episode may never end: register it with one, "
                "textgames.register(..., max_steps=20), or train it with max_steps"
            )
    if config.episodes > len(TRAINING_SEEDS):
        raise ConfigError(
            f"groups = {config.groups} of group_size = {config.group_size} make {config.episodes} episodes per "
            f"iteration; accepted: at most {len(TRAINING_SEEDS)}, one per training seed"
        )
    return [with_settings(one, config.game) for one in games]


def prompts_of(config: MSGRPOConfig, base: Card | None = None) -> PromptMap:
    """Return the prompts that the config names; if it names none, those that the model to be trained was made with."""
    with refused(f"prompt_file = {config.prompt_file!r} can't be used"):
        if config.prompt_file:
            prompts = PromptMap.from_file(config.prompt_file, config.response_mode)
        else:
            texts = PromptTexts.default() if base is None else base.texts
            known = texts if config.response_mode in texts.response else PromptTexts.default()
            prompts = PromptMap(config.response_mode, texts=known)
    if base is None or not (wrong := base.contradiction(prompts)):
        return prompts
    name = f"model = {config.model!r}" if config.model else "the model"
    if wrong == "mode":
        modes = " or ".join(f"response_mode = {mode!r}" for mode in base.modes)
        raise ConfigError(
            f"{name} was trained with {modes} ({CARD_NAME} in its folder says so), and this run has response_mode = "
            f"{config.response_mode!r}, in which it hardly answers: set {modes}, or take a model made for "
            f"{config.response_mode!r}, such as model = 'tiny-quick' with a new folder out"
        )
    raise ConfigError(
        f"{name} was trained with other prompts than prompt_file = {config.prompt_file!r} ({CARD_NAME} in its "
        "folder has them): leave prompt_file out, and the run uses those; or take a model made for this file, such "
        "as model = 'tiny-quick' with a new folder out"
    )


def trajectories_of(episodes: Sequence[Episode], tasks: Sequence[EpisodeTask]) -> list[Trajectory]:
    """Return every learner's part of every episode, in the order of the tasks; none of one without a decision."""
    by_seed = {episode.seed: episode for episode in episodes}
    result = []
    for task in tasks:
        episode = by_seed[task.seed]
        if episode.error is not None:
            raise RolloutError(f"the rollout of {task.scenario}, seed {task.seed}, failed: {episode.error}")
        deciding = {step.player for step in episode.steps}
        result += [trajectory_of(episode, task, player) for player in learners(episode) if player in deciding]
    return result


def trajectory_of(episode: Episode, task: EpisodeTask, player: str) -> Trajectory:
    """Return one player's part of a complete episode, for credit assignment."""
    steps = episode.steps_of(player)
    turns = [step.turn for step in steps]
    logprobs = [turn.logprobs for turn in turns]
    return Trajectory(
        group=group_of(task, player),
        rewards=np.array([step.reward for step in steps], dtype=np.float64),
        states=tuple([step.state for step in steps]),
        observations=tuple([step.observation for step in steps]),
        responses=tuple([turn.response for turn in turns]),
        actions=tuple([step.action for step in steps]),
        valid=np.array([step.valid for step in steps], dtype=np.bool_),
        steps_left=tuple([step.steps_left for step in steps]),
        terminated=episode.terminated,
        success=episode.successes.get(player, False),
        player=player,
        cut_off=np.array([turn.finish_reason == "length" for turn in turns], dtype=np.bool_),
        prompt_ids=tuple([turn.prompt_ids or () for turn in turns]),
        response_ids=tuple([turn.response_ids or () for turn in turns]),
        old_logprobs=None if None in logprobs else tuple([np.array(each, dtype=np.float64) for each in logprobs]),
        task=task,
        rounds=tuple([step.index for step in steps]),
        end_state=episode.end_state,
        bought=tuple([step.bought for step in steps]),
        allowed=tuple([turn.allowed for turn in turns]) if any(turn.allowed for turn in turns) else None,
    )


def group_of(task: EpisodeTask, player: str) -> Hashable:
    """Return the label of the trajectories that started from one state as one player against the same others."""
    return task.scenario, task.layout_seed if task.start is None else task.start, player, *task.team


def training_rows(
    trajectories: Sequence[Trajectory], drawn: Drawn, advantages: Sequence[StepCredit], max_prompt_tokens: int
) -> list[TokenRow]:
    """Return all steps of the drawn trajectories with the advantages of their tokens, which ``drawn.scale`` multiplies.

    No step is left out: one whose prompt equals the step before it (a bump into a wall) counts like any other.
    """
    rows = []
    for draw, (index, scale) in enumerate(zip(drawn.indices.tolist(), drawn.scale.tolist(), strict=True)):
        trajectory, credited = trajectories[index], advantages[index]
        old = trajectory.old_logprobs
        for t, row in enumerate(trajectory.rows):
            each = credited[t]
            if not row.prompt or not row.response:
                raise ValueError(
                    "the rollout engine returned no token ids: prompt_ids and response_ids are what the learner trains "
                    "on, and text can't be re-tokenised faithfully"
                )
            if len(row.prompt) > max_prompt_tokens:
                raise too_long(len(row.prompt), max_prompt_tokens)
            logprobs = None if old is None else tuple(old[t].tolist())
            advantage = tuple((each * scale).tolist()) if isinstance(each, np.ndarray) else float(each) * scale
            own = {"logprobs": logprobs, "advantage": advantage, "draw": draw, "step": t}
            rows.append(row._replace(**own, trajectory=index, scale=scale))
    return rows


def prompts_of_random_play(task: EpisodeTask, prompt_map: PromptMap) -> Iterator[tuple[str, Prompt]]:
    """Yield ``(player, prompt)`` of every decision in an episode of random legal actions."""
    env = environment_of(task)
    game, limit, rng = env.game, env.rules.max_steps, np.random.default_rng(task.seed)
    for played, state, joint_action, *_ in rounds_of_play(game, game.initial_state(rng), limit, rng):
        left = None if limit is None else limit - played
        for player in joint_action:
            yield player, prompt_map(request_in(game, state, player, steps_left=left))


def too_long(tokens: int, limit: int) -> ConfigError:
    """Return the refusal of a prompt that is too long."""
    return ConfigError(
        f"a prompt has {tokens} tokens, max_prompt_tokens is {limit}: raise it, shorten the prompt (prompt_file) or "
        "choose a smaller board"
    )


def paid_by_the_game(trajectory: Trajectory, format_penalty: float) -> float:
    """Return the undiscounted return without the penalty that was charged for invalid responses."""
    return float(trajectory.rewards.sum() + format_penalty * (~trajectory.valid).sum())


def rollout_metrics(
    trajectories: Sequence[Trajectory], returns: Floats, format_penalty: float = 0.0
) -> dict[str, float]:
    """Return means over trajectories and responses, for the log.

    Returns and successes are those of the episodes from initial states without hints, if there are any.
    """
    whole = [index for index, each in enumerate(trajectories) if each.begins_a_game and not each.hinted]
    whole = whole or list(range(len(trajectories)))
    lengths = [len(response) for trajectory in trajectories for response in trajectory.response_ids]
    chosen = Counter(
        action for each in trajectories for action, valid in zip(each.actions, each.valid, strict=True) if valid
    )
    seats: dict[str, list[float]] = {}
    against: dict[str, list[float]] = {}
    for index in whole:
        seats.setdefault(trajectories[index].player, []).append(float(returns[index]))
        task = trajectories[index].task
        for name in opponents_in(task.team) if task else ():
            against.setdefault(name, []).append(float(returns[index]))
    return {
        "episodes": float(len(trajectories)),
        "return": float(returns[whole].mean()),
        "return_std": float(returns[whole].std()),
        "game_return": float(np.mean([paid_by_the_game(trajectories[index], format_penalty) for index in whole])),
        "most_frequent_action": max(chosen.values(), default=0) / max(1, chosen.total()),
        "success": float(np.mean([trajectories[index].success for index in whole])),
        "invalid_rate": float(np.mean(~np.concatenate([trajectory.valid for trajectory in trajectories]))),
        "truncated_response_rate": float(np.mean(np.concatenate([each.cut_off for each in trajectories]))),
        "episode_length": len(lengths) / len(trajectories),
        "steps": float(len(lengths)),
        "response_tokens": float(sum(lengths)),
        "prompt_tokens": float(sum(len(prompt) for trajectory in trajectories for prompt in trajectory.prompt_ids)),
        "response_length": float(np.mean(lengths)),
        "zero_advantage_groups": share_of_equals(Batch(trajectories), returns),
        # of a game of several players, by seat: together they say little where what one wins another one loses
        **({f"return_{player}": float(np.mean(seats[player])) for player in sorted(seats)} if len(seats) > 1 else {}),
        **{f"return_against_{name}": float(np.mean(own)) for name, own in sorted(against.items())},
    }
