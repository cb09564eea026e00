"""The regret loss of a policy's chances, and the learning rule that a layer of attention becomes by it.

    python -m research.methods.regret_loss --pattern gaussian

A policy that plays ``pi_t`` against losses ``l_t`` has the regret ``R = sum_t <pi_t, l_t> - min_a sum_t l_t(a)``. The
loss of N sequences needs no labels of good actions (Park et al., arXiv 2403.16843):

``L = sum_j h(R_j) f(R_j) / sum_i f(R_i)``,  ``h(R) = max(R, 0)^2``,  ``f(R) = max(R, 0)^focus``

Minimising it may lead to known no-regret learning. Here a layer of linear self-attention is trained by it on the losses
of a game, ``pi_t = softmax(sum_s<t (V l_s) (u l_s + c))``. That is Hedge, which is follow the regularised leader with
entropy, if ``u = 0`` and ``V = -rate I``, up to what is equal for all actions. Our reading: these h, f and layer.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from agents.common import student
from textgames import game_of


def regret_loss(chances: Tensor, losses: Tensor, focus: float = 0.0) -> Tensor:
    """Return L of chances (N, rounds, actions) for losses of that shape."""
    regrets = regrets_of(chances, losses).clamp(min=0)
    weights = regrets**focus if focus else torch.ones_like(regrets)
    return (regrets**2 * weights).sum() / weights.sum().clamp(min=1e-12)


def regrets_of(chances: Tensor, losses: Tensor) -> Tensor:
    """Return the regret of each sequence to its best fixed action, (N,)."""
    return (chances * losses).sum((1, 2)) - losses.sum(1).amin(1)


class LinearAttention(torch.nn.Module):
    """A layer of linear self-attention over the losses so far, whose output is a policy's logits."""

    def __init__(self, actions: int, seed: int) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.values = torch.nn.Parameter(torch.randn(actions, actions, generator=random) * 0.1)
        self.keys = torch.nn.Parameter(torch.randn(actions, generator=random) * 0.1)
        self.bias = torch.nn.Parameter(torch.ones(()))

    def forward(self, losses: Tensor) -> Tensor:
        """Return the chances before each round, (N, rounds, actions); the first ones are even."""
        told = (losses @ self.values.T) * (losses @ self.keys + self.bias)[..., None]
        return (told.cumsum(1) - told).softmax(-1)


def hedge(losses: Tensor, rate: float) -> Tensor:
    """Return Hedge's chances, ``pi_t ~ exp(-rate sum_s<t l_s)``."""
    return (-rate * (losses.cumsum(1) - losses)).softmax(-1)


def sequences(pattern: str, actions: int, rounds: int, count: int, seed: int) -> Tensor:
    """Return the losses of so many episodes of online learning, (count, rounds, actions), from -1 to 1."""
    game, rng = game_of("TextOnlineLearning-v0", num_actions=actions, rounds=rounds, pattern=pattern), np.random
    drawn = [game.initial_state(rng.default_rng([seed, number])).losses for number in range(count)]
    return torch.tensor(drawn) / 5 - 1


def train(losses: Tensor, seed: int, *, steps: int = 300, rate: float = 0.03, focus: float = 0.0) -> LinearAttention:
    """Return the layer after steps of Adam on the regret loss."""
    layer = LinearAttention(losses.shape[-1], seed)
    optimizer = torch.optim.Adam(layer.parameters(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        regret_loss(layer(losses), losses, focus).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return layer


def measured(seen: Tensor, new: Tensor, seed: int) -> Mapping[str, float]:
    """Return mean regrets on new losses, after training on others: the layer's, its nearest Hedge's, an even choice's;
    and ``apart``, the mean total variation between the layer's chances and that Hedge's."""
    layer = train(seen, seed)
    with torch.no_grad():
        played, even = layer(new), torch.full_like(new, 1 / new.shape[-1])
        centred = layer.values - layer.values.mean(0)
        nearest = hedge(new, float(-(layer.bias * centred).diagonal().mean() * new.shape[-1] / (new.shape[-1] - 1)))
        untrained = LinearAttention(new.shape[-1], seed)(new)
        found = {"untrained": untrained, "trained": played, "hedge": nearest, "even": even}
        told = {name: float(regrets_of(each, new).mean()) for name, each in found.items()}
        return told | {"apart": float((played - nearest).abs().sum(-1).mean() / 2)}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the regrets, means with 95% intervals over seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pattern", default="gaussian")
    parser.add_argument("--actions", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    options = parser.parse_args(arguments)
    own = (options.pattern, options.actions, options.rounds)
    try:
        lots = [(sequences(*own, 256, 2 * seed), sequences(*own, 1024, 2 * seed + 1), seed) for seed in options.seeds]
    except ValueError as error:
        parser.error(str(error))
    rows = [measured(*each) for each in lots]
    for name in rows[0]:
        print(f"{name:10} {student([row[name] for row in rows]):.3f}")


if __name__ == "__main__":
    main()
