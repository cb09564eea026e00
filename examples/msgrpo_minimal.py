"""MS-GRPO in one file (Dilkes, Yazdanpanah and Stein, arXiv 2508.10839, section 4): read this before the trainer.

A language model plays episodes of a text game. Several episodes begin in the same state and form a group. Every step of
an episode is credited with the return of the whole episode, compared with the rest of its group. Some of the episodes,
drawn with probability proportional to the size of that advantage, train the model by a clipped policy gradient.

    python examples/msgrpo_minimal.py --iterations 40

This needs torch, transformers and ``textgames``. ``agents.msgrpo`` plays the same episodes and learns the same, which a
test compares over whole iterations. It adds what long runs need: checkpoints, adapters, engines, evaluations and speed.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

import textgames

CLOCK = "Moves left until the game is cut off, this one included: $steps_left."
FORM = """\
Think first, then choose one action. Answer in exactly this form:
<think>what matters in this position</think>
<plan>the moves you intend</plan>
<action>NAME</action>
NAME is one of: $actions. Write one action tag only and nothing after it."""
TEXTS = {"clock": CLOCK, "response": {"think": FORM}}


@dataclass(frozen=True)
class Settings:
    """The settings of a training; ``MSGRPOConfig`` has those of the same names, and a ``clip`` for each side."""

    scenario: str = "frozen-lake"
    groups: int = 8
    group_size: int = 16
    episodes_drawn: int = 32
    iterations: int = 40
    minibatches: int = 2  # optimiser steps an iteration
    learning_rate: float = 1e-3  # falls to 0; for the tiny model, a large one wants 1e-6
    weight_decay: float = 0.01  # of matrices only
    adam_eps: float = 1e-8
    temperature: float = 1.25
    clip: float = 0.2
    entropy_coefficient: float = 0.001
    format_penalty: float = 1.0  # for every answer that can't be read
    max_response_tokens: int = 64
    max_grad_norm: float = 1.0
    seed: int = 0


class Step(NamedTuple):
    """One decision: the tokens of the prompt and of the model's response."""

    prompt: list[int]
    response: list[int]


@dataclass
class Episode:
    """One episode; ``group`` is the seed of the initial state that it shares with others."""

    group: int
    steps: list[Step] = field(default_factory=list)
    reward: float = 0.0  # of all steps, less the penalties
    invalid: int = 0
    over: bool = False
    advantage: float = 0.0


def texts_of(model: Any) -> dict[str, Any]:
    """Return the wording of prompts: the one that a model was trained with, if its folder has a card, or ours."""
    card = Path(model.name_or_path, "textbench.json")
    return json.loads(card.read_text())["prompts"] if card.exists() else TEXTS


def prompt_of(rules: str, observation: str, info: dict[str, Any], left: int, texts: Any, tokenizer: Any) -> list[int]:
    """Write the rules, the observation and the form of answers by the chat template. Earlier moves aren't shown."""
    for today, then in texts.get("reworded", {}).items():
        rules = rules.replace(today, then)
    parts = [rules, observation, texts.get("clock"), texts["response"]["think"]]
    text = "\n\n".join(part for part in parts if part).replace("$steps_left", str(left))
    message = [{"role": "user", "content": text.replace("$actions", ", ".join(info["legal_actions"]))}]
    written = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    return tokenizer(written, add_special_tokens=False)["input_ids"]


def complete(text: str) -> bool:
    """Return whether an answer has come to the end of its action; an open thought has no action in it."""
    before, end, _ = text.rpartition("</action>")
    return bool(end) and "<think>" not in before.rpartition("</think>")[2]


@torch.no_grad()
def answer(
    model: Any, tokenizer: Any, prompts: Sequence[list[int]], s: Settings, seeds: Sequence[Any] = ()
) -> list[list[int]]:
    """Sample one answer to every prompt, up to the end of its action. The answers grow side by side.

    A next token is the first at which the cumulative distribution exceeds a uniform number of the answer's own seed.
    """
    numbers = [np.random.default_rng(seed).random(s.max_response_tokens) for seed in seeds or range(len(prompts))]
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    positions, cache = (mask.cumsum(-1) - 1).clamp(min=0), None
    answers: list[list[int]] = [[] for _ in prompts]
    going = set(range(len(prompts)))
    for uniform in torch.tensor(np.stack(numbers)).split(1, dim=1):
        out = model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        cumulative = (out.logits[:, -1] / s.temperature).softmax(-1).cumsum(-1, dtype=torch.float64)
        tokens = torch.searchsorted(cumulative, uniform * cumulative[:, -1:], right=True)
        for row in list(going):
            answers[row].append(int(tokens[row]))
            if answers[row][-1] == tokenizer.eos_token_id or complete(tokenizer.decode(answers[row])):
                going.remove(row)
        if not going:
            break
        ids, cache, positions = tokens, out.past_key_values, positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(tokens)], 1)
    return answers


def play(
    model: Any, tokenizer: Any, seeds: Sequence[int], s: Settings, own: Sequence[tuple[int, ...]] = ()
) -> list[Episode]:
    """Play an episode from every seed; equal seeds begin in the same state and make a group.

    ``own`` has numbers for each episode. The first one seeds the game's chances, all of them seed its answers.
    """
    own = own or [(number,) for number in range(len(seeds))]
    scenario, texts = textgames.SCENARIOS[s.scenario], texts_of(model)
    envs = [scenario.make(invalid_action="default", format_penalty=s.format_penalty) for _ in seeds]
    seen = [env.reset(seed=n[0], options={"layout_seed": seed}) for env, seed, n in zip(envs, seeds, own, strict=True)]
    episodes, left = [Episode(seed) for seed in seeds], scenario.horizon
    while playing := [i for i, episode in enumerate(episodes) if not episode.over]:
        prompts = [prompt_of(envs[i].unwrapped.instructions, *seen[i], left, texts, tokenizer) for i in playing]
        answers = answer(model, tokenizer, prompts, s, [(*own[i], len(episodes[i].steps), 0) for i in playing])
        for i, prompt, response in zip(playing, prompts, answers, strict=True):
            said = response[:-1] if response[-1] == tokenizer.eos_token_id else response
            observation, reward, terminated, truncated, info = envs[i].step(tokenizer.decode(said))
            seen[i], episode = (observation, info), episodes[i]
            episode.steps.append(Step(prompt, response))
            episode.reward += float(reward)
            episode.invalid += not info["valid"]
            episode.over = terminated or truncated
        left -= 1
    return episodes


def advantages_of(returns: Sequence[float], groups: Sequence[int], eps: float = 1e-6) -> np.ndarray:
    """``A_i = (R_i - mean) / (std + eps)`` within the group of each episode: one number for all of its steps."""
    values, labels = np.asarray(returns, dtype=np.float64), np.asarray(groups)
    advantages = np.zeros_like(values)
    for group in set(groups):
        own = labels == group
        if not (values[own] == values[own][0]).all():  # else there is nothing to compare: exactly 0
            advantages[own] = (values[own] - values[own].mean()) / (values[own].std(ddof=1) + eps)
    return advantages


def draw(advantages: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Absolute-advantage-weighted sampling: so many episodes, each next one with probability ``|A_i| / sum_j |A_j|``.

    The largest sums of log-weight and Gumbel noise are such a draw without replacement.
    """
    with np.errstate(divide="ignore"):
        keys = np.log(np.abs(advantages)) + rng.gumbel(size=len(advantages))
    return np.sort(np.argsort(-keys)[: min(count, int(np.count_nonzero(advantages)))])


def score(model: Any, step: Step, temperature: float) -> tuple[Tensor, Tensor]:
    """Return the log-probability and the entropy of every token of the response, ``(T,)`` each."""
    ids, start = torch.tensor([step.prompt + step.response]), len(step.prompt)
    logits = model(input_ids=ids, use_cache=False).logits[0, start - 1 : -1]  # those at t - 1 predict the token at t
    logprobs = (logits / temperature).log_softmax(-1)
    return logprobs.gather(1, ids[0, start:, None])[:, 0], -(logprobs.exp() * logprobs).sum(-1)


def loss_of(logprobs: Tensor, entropies: Tensor, old: Tensor, advantage: float, s: Settings) -> Tensor:
    """Return the sum over tokens of ``-min(rho * A, clip(rho, 1 - eps, 1 + eps) * A) - c_H * H``."""
    ratio = (logprobs - old).exp()
    gain = torch.minimum(ratio * advantage, ratio.clamp(1 - s.clip, 1 + s.clip) * advantage)
    return -(gain + s.entropy_coefficient * entropies).sum()


def update(
    model: Any, optimizer: torch.optim.Optimizer, episodes: Sequence[Episode], s: Settings, rng: np.random.Generator
) -> list[tuple[float, float]]:
    """Take the optimiser steps of an iteration, each on a random part of all moves; return their losses and norms."""
    steps = [(step, episode.advantage) for episode in episodes for step in episode.steps]
    with torch.no_grad():  # of the model that has played
        old = [score(model, step, s.temperature)[0] for step, _ in steps]
    taken = []
    for part in np.array_split(rng.permutation(len(steps)), min(s.minibatches, len(steps))) if steps else ():
        optimizer.zero_grad()
        tokens, total = sum(len(old[i]) for i in part), 0.0
        for i in part:
            step, advantage = steps[i]
            loss = loss_of(*score(model, step, s.temperature), old[i], advantage, s) / tokens  # a mean over the part
            torch.autograd.backward(loss)
            total += loss.item()
        taken.append((total, float(torch.nn.utils.clip_grad_norm_(model.parameters(), s.max_grad_norm))))
        optimizer.step()
    return taken


def train(model: Any, tokenizer: Any, s: Settings) -> Iterator[tuple[list[Episode], np.ndarray, list[Any]]]:
    """Yield the episodes of every iteration, the numbers of those drawn, and each optimiser step's loss and norm."""
    matrices, vectors = ([p for p in model.parameters() if (p.dim() >= 2) is wanted] for wanted in (True, False))
    groups = [{"params": matrices, "weight_decay": s.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, eps=s.adam_eps)
    for number in range(s.iterations):  # the numbers of the run and of the iteration seed everything that is random
        tasks, draws = (np.random.default_rng((s.seed, number, purpose)) for purpose in (0, 1))
        layouts = tasks.choice(textgames.TRAINING_SEEDS, s.groups, replace=False).repeat(s.group_size).tolist()
        seeds = tasks.choice(textgames.TRAINING_SEEDS, len(layouts), replace=False).tolist()
        episodes = play(model.eval(), tokenizer, layouts, s, [(seed, s.seed, number) for seed in seeds])
        advantages = advantages_of([episode.reward for episode in episodes], layouts)
        for episode, advantage in zip(episodes, advantages.tolist(), strict=True):
            episode.advantage = advantage
        drawn = draw(advantages, s.episodes_drawn, draws)
        for group in optimizer.param_groups:
            group["lr"] = s.learning_rate * (1 - number / s.iterations)
        yield episodes, drawn, update(model, optimizer, [episodes[i] for i in drawn], s, draws)


def main() -> None:
    """Train a model of a folder or of the hub; the defaults suit the one that ships."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default=str(Path(__file__).parents[1] / "agents" / "tiny" / "weights" / "tiny"))
    parser.add_argument("--iterations", type=int, default=Settings.iterations)
    parser.add_argument("--learning-rate", type=float, default=Settings.learning_rate)
    parser.add_argument("--out", help="where to save the model")
    options = parser.parse_args()
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    settings = Settings(iterations=options.iterations, learning_rate=options.learning_rate)
    for number, (episodes, _, _) in enumerate(train(model, tokenizer, settings), 1):
        mean = np.mean([episode.reward for episode in episodes])
        wrong = sum(episode.invalid for episode in episodes) / sum(len(episode.steps) for episode in episodes)
        print(f"iteration {number}: return {mean:.2f}, unreadable {wrong:.0%}", flush=True)
    if options.out:
        model.save_pretrained(options.out)
        tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
