"""Learning a step value from recorded play, on Monte-Carlo and on TD targets."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from benchmark.show import RecordedDecision
from research.improve.values.network import About, StepValue, number_of, words_of

BATCH, RATE = 256, 3e-3


def learn(
    episodes: Sequence[Sequence[RecordedDecision]], about: Mapping[str, Any], *, seed: int = 0, passes: int = 10
) -> StepValue:
    """Learn the value of every decision of these episodes, each of one player.

    The target of ``mc`` is what was paid for the decision and those after it: the value of the recorded play. That of
    ``td`` is what was paid for the decision, and the largest value of an action at the next one, by the network as it
    was before this pass: the value of the best play that is known (fitted Q iteration).
    """
    decisions = [one for episode in episodes for one in episode]
    last = torch.tensor([at == len(episode) - 1 for episode in episodes for at in range(len(episode))])
    rows = [words_of(one.request) for one in decisions]
    words = torch.zeros((len(rows), max(map(len, rows))), dtype=torch.long)
    for at, row in enumerate(rows):
        words[at, : len(row)] = torch.tensor(row)
    taken = torch.tensor([number_of(one.action) for one in decisions])
    legal = [one.request.legal_actions or (one.action,) for one in decisions]  # without a list, those that were taken
    most = max(map(len, legal))
    choices = torch.tensor([[number_of(names[k % len(names)]) for k in range(most)] for names in legal])
    paid = torch.tensor([one.reward for one in decisions], dtype=torch.float32)
    to_go = paid.clone()
    for at in range(len(decisions) - 2, -1, -1):
        if not last[at]:
            to_go[at] += to_go[at + 1]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        value = StepValue(About(decisions=len(decisions), **about))
        value.scale.fill_(float(to_go.abs().max()) or 1.0)
        optimizer = torch.optim.AdamW(value.parameters(), lr=RATE)
        batches = max(1, len(decisions) // BATCH)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.05, passes * batches)
        for number in range(passes):
            wanted = to_go
            if value.about.targets == "td":
                wanted = paid + torch.where(last, 0.0, _best(value, words, choices).roll(-1)) * (number > 0)
            for part in torch.randperm(len(decisions)).tensor_split(batches):
                loss = ((value(words[part], taken[part]) - wanted[part]) / value.scale).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    return value.eval()


@torch.no_grad()
def _best(value: StepValue, words: Tensor, choices: Tensor) -> Tensor:
    found = [value(words, column) for column in choices.unbind(1)]
    return torch.stack(found).max(0).values
