"""MS-GRPO in one file (Dilkes, Yazdanpanah and Stein, arXiv 2508.10839, section 4): read this before the trainer.

A language model plays episodes of a text game. Several episodes begin in the same state and form a group. Every step of
an episode is credited with the return of the whole episode, compared with the rest of its group. Some of the episodes,
drawn with probability proportional to the size of that advantage, train the model by a clipped policy gradient.

    python examples/msgrpo_minimal.py --iterations 40

This needs torch, transformers and ``textgames``. ``agents.msgrpo`` computes the same advantages, draws and gradients,
which a test holds it to, and adds what a long run needs: checkpoints, adapters, shared prompts, engines, evaluations.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, AutoTokenizer

import textgames

FORM = """\
Think first, then choose one action. Answer in exactly this form:
<think>what matters in this position</think>
<plan>the moves you intend</plan>
<action>NAME</action>
NAME is one of: {actions}. Write one action tag only and nothing after it."""
END = "</action>"


@dataclass(frozen=True)
class Settings:
    """What a training depends on, with the names that ``MSGRPOConfig`` has for it."""

    scenario: str = "frozen-lake"
    groups: int = 8
    group_size: int = 16
    episodes_drawn: int = 32
    iterations: int = 40
    minibatches: int = 2  # optimiser steps an iteration
    learning_rate: float = 1e-3  # falls to 0; for the tiny model, a large one wants 1e-6
    temperature: float = 1.25
    clip: float = 0.2
    entropy_coefficient: float = 0.001
    format_penalty: float = 1.0  # for every answer that can't be read
    max_response_tokens: int = 64
    max_grad_norm: float = 1.0
    micro_batch: int = 64  # rows that go through the model at once; the gradient doesn't depend on it
    seed: int = 0


@dataclass
class Step:
    """One decision: what the model was asked, and the tokens that it answered with."""

    prompt: list[int]
    response: list[int]


@dataclass
class Episode:
    """One episode; ``group`` is the number of the initial state that it shares with others."""

    group: int
    steps: list[Step] = field(default_factory=list)
    reward: float = 0.0
    invalid: int = 0


# ---- playing ---------------------------------------------------------------------------------------------------------


def prompt_of(rules: str, observation: str, actions: Sequence[str], tokenizer: Any) -> list[int]:
    """The rules, what is seen, and how to answer, as the model's chat template has it. Nothing else is remembered."""
    text = "\n\n".join([rules, observation, FORM.format(actions=", ".join(actions))])
    message = [{"role": "user", "content": text}]
    written = tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
    ids: list[int] = tokenizer(written, add_special_tokens=False)["input_ids"]
    return ids


@torch.no_grad()
def answer(model: Any, tokenizer: Any, prompts: Sequence[list[int]], s: Settings) -> list[list[int]]:
    """One sampled answer to every prompt, up to the end of its action. The answers grow side by side."""
    width = max(map(len, prompts))
    ids = torch.tensor([[0] * (width - len(prompt)) + prompt for prompt in prompts])
    mask = torch.tensor([[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts])
    positions, cache = (mask.cumsum(-1) - 1).clamp(min=0), None
    answers: list[list[int]] = [[] for _ in prompts]
    going = set(range(len(prompts)))
    while going and len(answers[next(iter(going))]) < s.max_response_tokens:
        out = model(input_ids=ids, attention_mask=mask, position_ids=positions, past_key_values=cache, use_cache=True)
        tokens = torch.multinomial((out.logits[:, -1].float() / s.temperature).softmax(-1), 1)
        for row in list(going):
            answers[row].append(int(tokens[row]))
            if answers[row][-1] == tokenizer.eos_token_id or END in tokenizer.decode(answers[row][-8:]):
                going.remove(row)
        ids, cache, positions = tokens, out.past_key_values, positions[:, -1:] + 1
        mask = torch.cat([mask, torch.ones_like(tokens)], 1)
    return answers


def play(model: Any, tokenizer: Any, seeds: Sequence[int], s: Settings) -> list[Episode]:
    """An episode from every seed; equal seeds begin in the same state and make a group."""
    numbers = {seed: number for number, seed in enumerate(dict.fromkeys(seeds))}
    envs = [textgames.SCENARIOS[s.scenario].make(invalid_action="default") for _ in seeds]
    seen = [env.reset(seed=seed) for env, seed in zip(envs, seeds, strict=True)]  # observations and infos
    episodes = [Episode(numbers[seed]) for seed in seeds]
    playing = list(range(len(seeds)))
    while playing:
        prompts = [
            prompt_of(envs[i].unwrapped.instructions, seen[i][0], seen[i][1]["legal_actions"], tokenizer)
            for i in playing
        ]
        answers = answer(model, tokenizer, prompts, s)
        still = []
        for i, prompt, response in zip(playing, prompts, answers, strict=True):
            text = tokenizer.decode(response, skip_special_tokens=True)
            observation, reward, terminated, truncated, info = envs[i].step(text)
            seen[i] = observation, info
            episodes[i].steps.append(Step(prompt, response))
            episodes[i].reward += float(reward)
            episodes[i].invalid += not info["valid"]
            if not (terminated or truncated):
                still.append(i)
        playing = still
    return episodes


# ---- credit ----------------------------------------------------------------------------------------------------------


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


# ---- learning --------------------------------------------------------------------------------------------------------


def score(model: Any, steps: Sequence[Step], temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities and entropies ``(rows, T)`` of the responses' tokens, and which of these exist."""
    rows = [step.prompt + step.response for step in steps]
    width, longest = max(map(len, rows)), max(len(step.response) for step in steps)
    ids = torch.tensor([row + [0] * (width - len(row)) for row in rows])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in rows])
    logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits.float()
    # the token at place t is predicted by the logits at t - 1
    first = torch.tensor([len(step.prompt) for step in steps])[:, None]
    places = (first + torch.arange(longest)).clamp(max=width - 1)
    exists = torch.arange(longest) < torch.tensor([len(step.response) for step in steps])[:, None]
    chosen = torch.gather(logits, 1, (places - 1)[..., None].expand(-1, -1, logits.shape[-1]))
    logprobs = (chosen / temperature).log_softmax(-1)
    taken = torch.gather(logprobs, 2, torch.gather(ids, 1, places)[..., None])[..., 0]
    return taken, -(logprobs.exp() * logprobs).sum(-1), exists


def gradient(
    model: Any, steps: Sequence[Step], advantages: Sequence[float], old: Sequence[Tensor], s: Settings
) -> float:
    """Add the gradient of the clipped loss, averaged over all response tokens, to the model's; returns the loss.

    ``L = 1/Z * sum_tokens [ -min(rho * A, clip(rho, 1 - eps, 1 + eps) * A) - c_H * H ]``
    """
    z, total = sum(len(step.response) for step in steps), 0.0
    for start in range(0, len(steps), s.micro_batch):
        part = slice(start, start + s.micro_batch)
        logprobs, entropies, exists = score(model, steps[part], s.temperature)
        advantage = torch.tensor(advantages[part], dtype=torch.float32)[:, None].expand_as(logprobs)[exists]
        ratio = (logprobs[exists] - torch.cat(list(old[part]))).exp()
        policy = -torch.minimum(ratio * advantage, ratio.clamp(1 - s.clip, 1 + s.clip) * advantage)
        loss = (policy - s.entropy_coefficient * entropies[exists]).sum() / z
        torch.autograd.backward(loss)
        total += loss.item()
    return total


def update(
    model: Any, optimizer: torch.optim.Optimizer, drawn: Sequence[tuple[Episode, float]], s: Settings, rng: Any
) -> None:
    """The optimiser steps of an iteration, on all steps of the drawn episodes with their advantages."""
    steps = [step for episode, _ in drawn for step in episode.steps]
    credit = [advantage for episode, advantage in drawn for _ in episode.steps]
    old: list[Tensor] = []
    with torch.no_grad():  # what the probabilities were before the first optimiser step
        for start in range(0, len(steps), s.micro_batch):
            logprobs, _, exists = score(model, steps[start : start + s.micro_batch], s.temperature)
            old += [row[here] for row, here in zip(logprobs, exists, strict=True)]
    for part in np.array_split(rng.permutation(len(steps)), min(s.minibatches, len(steps))):
        optimizer.zero_grad()
        gradient(model, [steps[i] for i in part], [credit[i] for i in part], [old[i] for i in part], s)
        torch.nn.utils.clip_grad_norm_(model.parameters(), s.max_grad_norm)
        optimizer.step()


def train(model: Any, tokenizer: Any, s: Settings) -> list[float]:
    """All iterations; returns the mean return of each one's episodes, in which the model still explores."""
    torch.manual_seed(s.seed)
    rng = np.random.default_rng(s.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=s.learning_rate, weight_decay=0.01)
    history = []
    for iteration in range(s.iterations):
        for group in optimizer.param_groups:
            group["lr"] = s.learning_rate * (1 - iteration / s.iterations)
        seeds = rng.choice(textgames.TRAINING_SEEDS, s.groups, replace=False).repeat(s.group_size)
        episodes = play(model.eval(), tokenizer, seeds.tolist(), s)
        returns = [episode.reward - s.format_penalty * episode.invalid for episode in episodes]
        advantages = advantages_of(returns, [episode.group for episode in episodes])
        chosen = draw(advantages, s.episodes_drawn, rng)
        if len(chosen):  # nothing is learnt where all episodes of every group went alike
            update(model, optimizer, [(episodes[i], float(advantages[i])) for i in chosen], s, rng)
        history.append(float(np.mean([episode.reward for episode in episodes])))
        wrong = sum(episode.invalid for episode in episodes) / sum(len(episode.steps) for episode in episodes)
        print(f"iteration {iteration + 1}: return {history[-1]:.2f}, unreadable {wrong:.0%}", flush=True)
    return history


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
    train(model, tokenizer, Settings(iterations=options.iterations, learning_rate=options.learning_rate))
    if options.out:
        model.save_pretrained(options.out)
        tokenizer.save_pretrained(options.out)


if __name__ == "__main__":
    main()
