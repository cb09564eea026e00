"""The players of the seats that the model doesn't have: fixed ones, and the model as it was at earlier iterations.

A task's ``team`` names the player of each seat; ``learner`` is the model, and its decisions alone are learnt from.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from torch import Tensor, nn

from agents.episode import Episode, EpisodeTask
from agents.load import load_agent
from agents.loop.live import Policies, Teams
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.engines.engine import Engine
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.prepare import copy_of_trained
from agents.msgrpo.trajectories import (
    CHECKPOINT,
    LEARNER,
    Game,
    frozen_before,
    game_name,
    game_task,
    learners,
    tsmg_of,
    with_settings,
)
from agents.policy import LanguageAgentPolicy
from agents.turn import Policy, Usage, check_game, total_usage


class Opponents:
    """All players of a run by name: ``fixed`` ones, and copies of ``learner``, the policy of the model in training."""

    def __init__(
        self,
        config: MSGRPOConfig,
        fixed: Mapping[str, Policy],
        learner: LanguageAgentPolicy,
        model: nn.Module,
        tokenizer: Any,
    ) -> None:
        self._config, self._learner, self._model, self._tokenizer = config, learner, model, tokenizer
        self._fixed = fixed
        self._frozen: dict[int, nn.Module] = {}  # copies, by the iteration before which they were made
        self._trained = [name for name, each in model.named_parameters() if each.requires_grad]
        self._paid: list[Usage] = []

    def seated(self, policies: Policies, tasks: Sequence[EpisodeTask]) -> Policies:
        """Return the players of tasks: the teams that the tasks name, if they do, with ``policies`` as the learner."""
        teams = {task.team for task in tasks} - {()}
        if not teams or not isinstance(policies, Policy):
            return policies
        players, own = {**self._fixed, LEARNER: policies}, self._learner
        for done, model in self._frozen.items():
            name = f"{CHECKPOINT}-{done}"
            if any(name in team for team in teams):
                reader = TransformersModel(model, self._tokenizer)
                players[name] = LanguageAgentPolicy(
                    reader, own.prompt_map, own.decoding, name, legal_only=own.legal_only
                )
        return Teams({team: [players[name] for name in team] for team in teams})

    def freeze(self, iteration: int) -> None:
        """Copy the weights before an iteration, if they are due, and drop those that no coming iteration may meet."""
        if CHECKPOINT not in self._config.opponents:
            return
        if iteration % self._config.opponent_every == 0 and iteration not in self._frozen:
            self._frozen[iteration] = copy_of_trained(self._model).eval().requires_grad_(False)
        oldest = frozen_before(self._config, iteration)[0]
        self._frozen = {done: each for done, each in self._frozen.items() if done >= oldest}

    def count(self, episodes: Iterable[Episode]) -> None:
        for episode in episodes:
            own = learners(episode)
            self._paid += [turn.paid for step in episode.steps if step.player not in own for turn in step.turns]

    def tokens(self) -> dict[str, float]:
        """Return the tokens that opponents took since the last call; empty without opponents."""
        paid, self._paid = self._paid, []
        used = total_usage(paid)
        tokens = {"prompt": float(used.prompt_tokens), "response": float(used.completion_tokens)}
        return {f"opponent_{kind}_tokens": count for kind, count in tokens.items()} if paid else {}

    def state_dict(self) -> dict[int, dict[str, Tensor]]:
        found = {done: dict(each.named_parameters()) for done, each in self._frozen.items()}
        return {done: {name: own[name].detach().cpu() for name in self._trained} for done, own in found.items()}

    def load_state_dict(self, state: Mapping[int, Mapping[str, Tensor]], iteration: int) -> None:
        self._frozen = {}
        needed = [done for done in frozen_before(self._config, iteration) if done < iteration]
        if CHECKPOINT in self._config.opponents and (missing := [done for done in needed if done not in state]):
            raise ConfigError(
                f"opponents = {CHECKPOINT!r} with opponent_every = {self._config.opponent_every} meets the weights of "
                f"iteration {missing[0]}, and the checkpoint has those of {', '.join(map(str, state)) or 'none'}: "
                "resume it with the opponents that it was begun with, or begin a new run from its model"
            )
        for done, weights in state.items():
            self._frozen[done] = copy_of_trained(self._model).eval().requires_grad_(False)
            self._frozen[done].load_state_dict({name: weights[name] for name in self._trained}, strict=False)


def load_fixed(config: MSGRPOConfig, games: Sequence[Game]) -> dict[str, Policy]:
    """Load the players that settings and scenarios name, or raise a :class:`ConfigError` for one that can't play."""
    evaluated = [with_settings(one, config.eval_game) for one in config.eval_scenarios] or games
    asked = [("opponents", "trained", name, games) for name in config.opponents]
    asked += [("eval_opponent", "evaluated", config.eval_opponent, evaluated)] * bool(config.eval_opponent)
    for game in (*games, *evaluated):
        asked += [(f"{game_name(game)}: opponents", "played", name, [game]) for name in game_task(game, 0).team]
    found: dict[str, Policy] = {}
    for setting, use, name, places in asked:
        several = [rules for rules in map(tsmg_of, places) if len(rules.players) > 1]
        if not several:
            raise ConfigError(f"{setting} = {name!r}: no game that is {use} on has another seat")
        if name == LEARNER or (name == CHECKPOINT and setting == "opponents"):
            continue
        try:
            found[name] = found[name] if name in found else load_agent(name)
            for rules in several:
                check_game(found[name], rules)
        except (ValueError, TypeError, OSError) as error:
            also = f"; accepted as well: {CHECKPOINT}, {LEARNER}" if setting == "opponents" else ""
            raise ConfigError(f"{setting} = {name!r} can't be used: {error}{also}") from error
    return found


def check_opponents(config: MSGRPOConfig, engine: Engine, processes: Processes) -> None:
    """Refuse copies of weights that this process can't make or play."""
    if CHECKPOINT not in config.opponents:
        return
    for wrong, why in (
        (processes.sharded, "weights that are sharded over processes, of which none can copy them"),
        (engine.plays_elsewhere, f"the engine {engine.name!r}, which plays in other places, which have no copies"),
        (config.around, f"around = {config.around!r}, which only plays with the weights of now inside"),
    ):
        if wrong:
            raise ConfigError(f"opponents = {CHECKPOINT!r} with {why}; accepted with it: agents by name, and {LEARNER}")
