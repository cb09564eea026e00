"""MS-GRPO: rollout -> reward -> group filter -> credit -> AAW episode sampling -> loss -> update.

Dilkes, Yazdanpanah, Stein: "Reinforced Language Models for Sequential Decision Making", arXiv 2508.10839. Read
:meth:`MSGRPOTrainer.iterate` first. Each step is a method of a plug-in point (:mod:`agents.msgrpo.plugins`).

A run prints its departures from ``preset = "paper"``, the settings of the first author's public code. What the paper
leaves open is decided like this:

* Episodes are drawn without replacement and keep their advantage; ``episode_sampling`` has the other readings. A group
  of equal returns has advantage exactly 0 and is never drawn; with no advantage anywhere the update is skipped.
* The loss of an optimiser step is divided by the response tokens of its whole batch, and minibatches are random steps
  of all drawn episodes.
* With one full-batch step per iteration, ``pi_old`` is what the sampler said; otherwise the learner computes it.
* The sampling temperature is part of the policy: learner, reference and entropy all apply it. Entropy is exact, over
  the whole vocabulary. Dropout is off everywhere.
* With several controlled players, all of them are the model (self-play), unless ``opponents`` have the other seats.
  Each of the model's parts of a game is an episode of its own, in a group with the same player's parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch

from agents.common.interrupt import kills_interrupt, uninterrupted
from agents.common.toml import to_toml
from agents.episode import Episode, EpisodeTask
from agents.models.base import Decoding
from agents.models.local.loading.card import card_of
from agents.models.local.templates import with_arguments
from agents.models.local.transformers import TransformersModel
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import Batch, Credit
from agents.msgrpo.credit.batch import TokenRow, checked_credit
from agents.msgrpo.critic import first_prompt_values, lessons, make_beside
from agents.msgrpo.draws import effective_sample_size
from agents.msgrpo.engines.engine import Engine
from agents.msgrpo.engines.live import LiveEngine
from agents.msgrpo.errors import ConfigError, DivergenceError, TrainingDivergedError, refused
from agents.msgrpo.inside import Inside
from agents.msgrpo.learner.distributed import current_processes
from agents.msgrpo.learner.prepare import autocast_dtype, load_weights, prepare_model, slow_dtype
from agents.msgrpo.learner.scoring.scorer import TokenScorer, choose_ways
from agents.msgrpo.learner.update import (
    Learner,
    UpdateStats,
    learning_rate,
    make_optimizer,
    make_reference,
    token_metrics,
)
from agents.msgrpo.opponents import Opponents, check_opponents, load_fixed
from agents.msgrpo.plugins import OWN
from agents.msgrpo.rewards import rewarded
from agents.msgrpo.rollouts import EpisodeSource, Rollouts, completed, layout_of, make_engine, policy_of
from agents.msgrpo.run.evaluating import EvaluationResult, Evaluator, score_of, without_success
from agents.msgrpo.run.health import Canary, Watch, check_out, check_prompts, fly
from agents.msgrpo.run.reporting import RunLog, learnt_from
from agents.msgrpo.run.saving import (
    Keeper,
    LastValid,
    RunState,
    find_checkpoint,
    load_state,
    report_divergence,
    run_folder,
    save_model,
)
from agents.msgrpo.segments import needed_segmenter
from agents.msgrpo.trajectories import (
    Game,
    game_name,
    game_task,
    games_of,
    prompts_of,
    rollout_metrics,
    training_rows,
    training_tasks,
)
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Policy


class MSGRPOTrainer:
    """Trains a model of transformers, or its peft adapter, on a game, in place.

    ``game`` is a scenario, its name, or an environment id; ``config.scenarios`` overrides it. ``prompt_map`` takes the
    place of the settings' prompts, and ``engine`` (which is sent new weights after every update) that of the live
    model. ``players``, those of other seats by name, are loaded when not given.

    Raises:
        ConfigError: settings that can't be used together, with this game, or with what the model was made for.
        UnusableModelError: a model or tokenizer that can't be trained.

    Attributes:
        iteration: iterations done.
        history: one ``{metric: value}`` per iteration done by this object or before its resume.
        evaluations: ``(iterations done, results)`` of every evaluation.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        game: Game = "",
        config: MSGRPOConfig | None = None,
        *,
        prompt_map: PromptMap | None = None,
        engine: Engine | None = None,
        players: Mapping[str, Policy] | None = None,
        quiet: bool = False,
    ) -> None:
        self.config = config = MSGRPOConfig() if config is None else config
        if not isinstance(config, MSGRPOConfig) or not isinstance(game, Game):
            raise ConfigError(
                "MSGRPOTrainer(model, tokenizer, game, config) takes a scenario's name, an id or a Scenario, and an "
                f"MSGRPOConfig, got {type(game).__name__} and {type(config).__name__}"
            )
        if prompt_map is not None and config.prompt_file:
            raise ConfigError(f"prompt_file = {config.prompt_file!r} and a prompt_map: accepted is one of them")
        self.games, self._named = games_of(game, config), config.scenarios or (game,)
        self.methods = Methods.of(config)
        self.methods.check([game_task(one, 0) for one in self.games])
        self.out = Path(config.out) if config.out else None
        if config.threads:
            torch.set_num_threads(config.threads)
        self._own_prompts = None if prompt_map is None else prompt_map.settings
        prompt_map = prompts_of(config, card_of(model)) if prompt_map is None else prompt_map
        with refused():
            self.tokenizer = with_arguments(tokenizer, config.chat_template_kwargs, config.model or "the model")
        self.model = prepare_model(model, self.tokenizer, config)
        self.processes = current_processes(cpu=next(self.model.parameters()).device.type == "cpu")
        self.quiet = quiet or self.processes.rank > 0
        self.iteration, self.skipped = 0, 0
        self.history: list[dict[str, Any]] = []
        self.evaluations: list[tuple[int, list[EvaluationResult]]] = []
        self.log = RunLog(config, None, quiet=True)  # train() opens one that tells
        self._best, self._resumed = -np.inf, False
        self._seen_layouts: set[str] = set()
        self._samples: list[Episode] | None = None  # those to show, once it is known what is learnt from them
        self._build(prompt_map, engine, load_fixed(config, self.games) if players is None else players)

    def _build(self, prompt_map: PromptMap, external: Engine | None, players: Mapping[str, Policy]) -> None:
        """Make the parts.

        ``engine`` samples, ``source`` plays episodes with it and ``policy`` writes their prompts; ``methods`` and the
        ``critic`` make rows of them; the ``learner`` scores rows, takes the loss and steps. ``evaluator`` and ``watch``
        look on, ``keeper`` saves.
        """
        config, methods, processes, autocast = self.config, self.methods, self.processes, autocast_dtype(self.config)
        scorer = TokenScorer(
            self.model, temperature=config.temperature, chunk=config.logprob_chunk_tokens, autocast=autocast
        )
        packing = choose_ways(scorer, config.packing, longest=config.max_prompt_tokens + config.max_response_tokens)
        self.critic = make_beside(methods, scorer, config, processes, packing, autocast)
        reference = make_reference(scorer, processes, config, methods.surrogate.needs)
        self.engine = make_engine(config, methods, self.model, self.tokenizer, processes, autocast, external)
        elsewhere = not isinstance(self.engine, LiveEngine)  # another engine's arithmetic isn't the learner's
        self.learner = Learner(
            scorer, processes.prepare(scorer, make_optimizer(self.model, config)), config, processes,
            packing=packing, reference=reference, surrogate=methods.surrogate, normalizer=methods.normalizer,
            importance_cap=config.importance_cap if elsewhere or config.staleness else 0.0,
        )  # fmt: skip
        canary = Canary(self.engine, self.learner, config) if elsewhere else None
        around = Inside(config, self.engine, self.games).rollout if config.around else None
        decoding = Decoding(temperature=config.temperature, max_tokens=config.max_response_tokens)
        self.policy = policy_of(config, self.games, self.engine, prompt_map, decoding)
        self.opponents = Opponents(config, players, self.policy, self.model, self.tokenizer)
        check_opponents(config, self.engine, processes)
        self.source = EpisodeSource(
            config, self.engine, self.model, processes, partial(training_tasks, config, self.games),
            self.opponents.seated, canary, around,
        )  # fmt: skip
        self.source.settle()
        reader = TransformersModel(self.model, self.tokenizer)
        check_prompts(config, methods.sampler.games(self.games), prompt_map, reader)
        self._segmenter = needed_segmenter(methods.credit, prompt_map, self.tokenizer)
        evaluated = replace(decoding, temperature=config.eval_temperature)
        self.eval_policy = policy_of(config, config.eval_scenarios, self.engine, prompt_map, evaluated)
        self.evaluator = Evaluator(
            config, self._named, self.source.play, self.eval_policy, self.model, self.tokenizer,
            sharded=processes.sharded, rule=methods.reward,
        )  # fmt: skip
        self._prompt_values = first_prompt_values(self.critic, methods, self.policy, self.model, self.tokenizer)
        self.watch = Watch(config)
        copies = config.rollback and not processes.sharded and processes.rank == 0
        self.last_valid = LastValid(self._state, methods.state_dict, self.model, copies=copies)
        self.keeper = Keeper(
            self.out, config, partial(save_model, self.model, self.tokenizer, prompt_map), processes,
            self.last_valid, by_command=self._own_prompts is None and external is None,
        )  # fmt: skip

    def iterate(self) -> dict[str, Any]:
        """Do one iteration of MS-GRPO and return its metrics, which are also the last of :attr:`history`.

        Ctrl-C takes effect at once during the rollout and after the update, so weights and counters always agree.
        """
        config, methods, started, rng = self.config, self.methods, perf_counter(), self._stream(1)
        self.last_valid.begin_iteration()

        self._samples = [] if config.samples_every and self.iteration % config.samples_every == 0 else None
        played = self.rollout()
        paid, told = rewarded(played, methods.reward, config)
        kept = methods.filter.keep(paid)
        batch = paid.only(kept.indices)
        credit = Credit(np.zeros(0), [])
        if len(batch):
            credit = checked_credit(config.credit, methods.credit.assign(batch, self._stream(3)), batch)
        drawn = methods.draw.draw(batch, credit, config.draws_of(len(paid)), rng)
        if self._samples:
            self.log.samples(self.iteration + 1, self._samples, learnt_from(batch, credit, drawn))
        scaled = drawn._replace(scale=drawn.scale * kept.scale[drawn.indices])
        rows = training_rows(batch.trajectories, scaled, credit.advantages, config.max_prompt_tokens)
        critic_alone = self.critic is not None and self.critic.alone(self.iteration)
        rows = [] if critic_alone else rows
        everything = Batch(played.played or played.trajectories)
        metrics = rollout_metrics(
            everything.trajectories,
            everything.returns(1.0 if config.discount == OWN else config.discount),
            config.format_penalty,
        )
        rolled_out = perf_counter()
        with uninterrupted():
            self.last_valid.begin_update(sound=self.watch.trusts(metrics["invalid_rate"]))
            stats = self.update(rows, rng, batch) if rows else UpdateStats()
            learnt = self.critic.learn(lessons(methods, played, batch, credit), self._stream(4)) if self.critic else {}
            metrics |= stats.metrics()
            metrics |= {"effective_episodes": effective_sample_size(credit.draw_weight), **credit.metrics, **learnt}
            metrics |= {**methods.sampler.metrics, **methods.draw.metrics, **self.opponents.tokens(), **told}
            skipped = not rows and not critic_alone
            self.skipped += skipped
            metrics |= {
                "episodes_drawn": len(drawn.indices),
                "skipped": skipped,
                "skipped_so_far": self.skipped,
                "learning_rate": learning_rate(config, self.iteration),
                "weights_version": self.source.version,
                "lag": self.source.lag,
            }
            metrics |= token_metrics(rows, metrics["response_tokens"], started, rolled_out, perf_counter())
            self.iteration += 1
            self.history.append({"iteration": self.iteration, **metrics})
            self.watch.see(self.history[-1])
            self.last_valid.end_iteration()
        return self.history[-1]

    def _stream(self, number: int) -> np.random.Generator:
        """Return this iteration's randomness: 1 draws and shuffles, 2 samples tasks, 3 is for credit, 4 the critic."""
        return np.random.default_rng([self.config.seed, self.iteration, number])

    def rollout(self) -> Batch:
        """Play this iteration's episodes, shared by all processes; every process gets all trajectories."""
        self.opponents.freeze(self.iteration)

        def play(policy: LanguageAgentPolicy, tasks: Sequence[EpisodeTask]) -> list[Episode]:
            episodes = self.source.play_to_learn(policy, tasks, self.iteration)
            self.opponents.count(episodes)
            pairs = zip(tasks, episodes, strict=True)
            self._seen_layouts.update(layout_of(episode) for task, episode in pairs if task.start is None)
            if self._samples == []:
                self._samples = episodes[: self.config.samples_shown]
            return episodes

        rollouts = Rollouts(self.config, self.games, self.iteration, self.policy, play, self._prompt_values)
        trajectories = self.methods.sampler.sample(rollouts, self._stream(2))
        scores_of, needs = self.learner.logprobs_and_entropies, self.methods.credit.needs
        complete = completed(trajectories, needs, scores_of, self.critic, self._segmenter)
        return Batch(complete, rollouts, self.iteration, rollouts.played)

    def update(self, rows: Sequence[TokenRow], rng: np.random.Generator, batch: Batch) -> UpdateStats:
        """Take the optimiser steps of this iteration, send the engine the new weights, and return what was done."""
        try:
            stats = self.learner.update(rows, rng, learning_rate(self.config, self.iteration), batch)
        except DivergenceError as error:
            keep_in = self.out if self.processes.rank == 0 else None
            said = report_divergence(keep_in, self.iteration + 1, self.config, error, rows, self.tokenizer.decode)
            raise TrainingDivergedError(said) from error
        self.learner.optimizer.zero_grad()  # the rollout gets the gradients' memory
        self.source.renew(self.source.version + 1)
        return stats

    def train(self) -> list[dict[str, Any]]:
        """Run to ``config.iterations`` and return :attr:`history`.

        Whatever ends a run early (a DeadRunError, TrainingDivergedError, RolloutError, CheckpointError or
        KeyboardInterrupt), its last valid state is saved first, and a note of the error says how to continue.
        """
        config, first = self.config, self.processes.rank == 0
        if self.out is not None and first:
            check_out(self.out, resumed=self._resumed)
        self.log = RunLog(
            config, self.out if first else None, first=self.iteration, quiet=self.quiet, history=self.history,
            evaluations=self.evaluations, games=[*map(game_name, self.games)],
            without_success=without_success([*self.games, *self.evaluator.games]),
        )  # fmt: skip
        with kills_interrupt():
            if slow := slow_dtype(config, next(self.model.parameters()).device):
                self.log.say(f"warning: {slow}")
            if others := ", ".join(f"{name} = {to_toml(his)}" for name, his in config.departures().items()):
                self.log.say(f'settings of the author (preset = "paper") that this run departs from: {others}')
            if config.preflight_episodes and self.iteration == 0:  # before anything is written
                self.opponents.freeze(0)
                games = self.methods.sampler.games(self.games)
                fly(config, training_tasks(config, games, 0), self.policy, self.source.play, self.log.say)
            with self.log:
                try:
                    self._train()
                except BaseException as error:
                    with uninterrupted():
                        self.source.drop()
                        error.add_note(self.keeper.rescue(error))
                    raise
                finally:
                    self.source.drop()
        return self.history

    def _train(self) -> None:
        if not any(done == self.iteration for done, _ in self.evaluations):
            self._evaluate_if_due()
        while self.iteration < self.config.iterations:
            self.log.iteration(self.iterate())
            self.watch.check()
            self._evaluate_if_due()
            if self.config.checkpoint_every and self.iteration % self.config.checkpoint_every == 0:
                self.save()
        self.watch.check_end()
        self.save()

    def close(self) -> None:
        self.engine.close()

    def evaluate(self) -> list[EvaluationResult]:
        return self.evaluator.evaluate(self._seen_layouts)

    def save(self) -> Path | None:
        """Write a checkpoint of the iterations done; ``None`` without ``config.out``. Collective in all processes."""
        if self.out is None:
            return None
        folder = self.keeper.write(self._state())
        self.processes.wait()
        return folder

    def resume(self, path: str | Path) -> None:
        """Continue from a checkpoint, or from a run's last one, exactly as if the run had never stopped.

        With staleness the next iterations are played again by the weights of the checkpoint, as at the beginning of a
        run: what was being played ahead isn't in a checkpoint.
        """
        folder = find_checkpoint(path)
        state = load_state(folder)
        if state.get("own_prompts") != self._own_prompts:
            raise ConfigError(
                f"{folder} was trained with other prompts: resume it from Python with the same "
                "MSGRPOTrainer(prompt_map=...) that began it"
            )
        with self.processes.whole_weights(write=True):
            load_weights(self.model, folder)
        self.processes.load_optimizer_state(self.learner.optimizer, state["optimizer"])
        self.iteration, self.skipped, self._best = state["iteration"], state["skipped"], state["best"]
        self.history = [dict(metrics) for metrics in state["history"]]
        self.evaluations = [
            (done, [EvaluationResult(**result) for result in results]) for done, results in state["evaluations"]
        ]
        self._seen_layouts = set(state["seen_layouts"])
        torch.set_rng_state(state["torch_rng"])
        scores = {done: score_of(results) for done, results in self.evaluations}
        if self.out is not None and run_folder(folder) != self.out.resolve():
            self._best = scores.get(self.iteration, -np.inf)  # the best of the other folder isn't in this one
        if state["measured_by"] != self._measured_by:
            self._best = -np.inf
        self.methods.load_state_dict(state.get("methods", {}), state.get("learners", {}))
        self.opponents.load_state_dict(state.get("opponents", {}), self.iteration)
        for name, part in (("critic", self.critic), ("reference", self.learner.reference)):
            if part is not None:
                part.load_state_dict(state.get(name))
        self._resumed = True
        self.watch = Watch(self.config, self.history)
        ranked = sorted(((score, done) for done, score in scores.items()), reverse=True)
        self.keeper.resumed(folder, [done for _, done in ranked])
        self.source.drop()
        self.source.renew(state.get("weights_version", self.iteration - self.skipped))

    @property
    def _measured_by(self) -> dict[str, Any]:
        also = ("response_mode", "prompt_file", "max_response_tokens", "legal_only", "around", "cost")
        settings = {
            name: value for name, value in vars(self.config).items() if name.startswith("eval_") or name in also
        }
        games = tuple(map(game_name, self.evaluator.games))
        return settings | {"eval_every": 0, "eval_scenarios": games}

    def _evaluate_if_due(self) -> None:
        every, done = self.config.eval_every, self.iteration
        if not every or not (done % every == 0 or done == self.config.iterations):
            return
        results = self.evaluate()
        self.evaluations.append((done, results))
        self.log.evaluation(done, results)
        score = score_of(results)
        # of equals the later one: in self-play all zero-sum games have 0
        if score >= self._best and not self.watch.suspects:
            self._best, self.keeper.best_so_far = score, True
            self.save()

    def _state(self) -> RunState:
        """Return all that a checkpoint holds; collective where weights are sharded."""
        training = {
            "iteration": self.iteration,
            "skipped": self.skipped,
            "weights_version": self.source.version,
            "best": float(self._best),
            "measured_by": self._measured_by,
            "history": list(self.history),
            "evaluations": [(done, [result._asdict() for result in results]) for done, results in self.evaluations],
            "own_prompts": self._own_prompts,
            "seen_layouts": sorted(self._seen_layouts),
            "optimizer": self.processes.optimizer_state(self.learner.optimizer),
            "torch_rng": torch.get_rng_state(),
            "methods": self.methods.state_dict(),
            "learners": self.methods.learners(),
            "opponents": self.opponents.state_dict(),
            "critic": None if self.critic is None else self.critic.state_dict(),
            "reference": None if self.learner.reference is None else self.learner.reference.state_dict(),
        }
        return RunState(self.iteration, training, self.processes.state_dict(self.model))
