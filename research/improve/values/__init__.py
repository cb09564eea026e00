"""A learned step value ``Q(prompt, action)``: its network, which needs no model beside it, learning, and its folder.

``TurnRequest -> words, action -> value``. Words of the observation with their places, and pairs of words that stand
beside or below each other, each alone and together with the action, are added up as embeddings, before two layers.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn

from agents import SearchPlayer, TurnRequest
from agents.common import check_folder, problem_of, read_bytes, replacing
from benchmark.show import RecordedDecision

Targets = Literal["mc", "td"]

MOST_WORDS = 512  # of an observation, the last ones


class About(BaseModel):
    """The document of a folder: what was learnt from what, and the network's size."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    kind: Literal["textbench step value"] = "textbench step value"
    scenarios: tuple[str, ...] = Field(max_length=1000)
    targets: Targets
    decisions: int = Field(ge=1)
    width: int = Field(default=64, ge=1, le=512)
    buckets: int = Field(default=4096, ge=2, le=2**16)


class StepValue(nn.Module):
    """A network of values; ``scale`` is the unit of what it computes."""

    scale: Tensor

    def __init__(self, about: About) -> None:
        super().__init__()
        self.about = about
        self.bag = nn.EmbeddingBag(about.buckets, about.width, mode="sum", padding_idx=0)
        nn.init.normal_(self.bag.weight, std=0.05)
        hidden = nn.Linear(about.width, about.width)
        self.layers = nn.Sequential(nn.ReLU(), hidden, nn.ReLU(), nn.Linear(about.width, 1))
        self.register_buffer("scale", torch.ones(()))

    def forward(self, words: Tensor, actions: Tensor) -> Tensor:
        """Return the values (n,) of actions (n,) at the words (n, L) of their requests, which are padded with 0."""
        both = torch.cat([words, words * 1_000_003 + actions[:, None]], 1)
        places = (both % (self.about.buckets - 1) + 1).masked_fill((words == 0).repeat(1, 2), 0)
        values: Tensor = self.layers(self.bag(places)).squeeze(-1)
        return values * self.scale

    @torch.no_grad()
    def of(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        """Return ``{action: value}`` of these actions."""
        words = torch.tensor([words_of(request)] * len(actions))
        found = self(words, torch.tensor([*map(number_of, actions)]))
        return dict(zip(actions, found.tolist(), strict=True))


def words_of(request: TurnRequest) -> list[int]:
    """Return the numbers of all that a request says: its words by line from the end, and place; neighbours; the clock.

    The rules are the same in all episodes of a game, so they are left out, and so is the history.
    """
    lines = [re.findall(r"\w+|[^\w\s]", line) for line in request.observation.splitlines()]
    placed = [f"{row} {at} {word}" for row, line in enumerate(reversed(lines)) for at, word in enumerate(line)]
    beside = [f"{first} > {then}" for line in lines for first, then in pairwise(line)]
    below = [
        f"{over} / {under}" for line, following in pairwise(lines) for over, under in zip(line, following, strict=False)
    ]
    told = [f"left {request.steps_left}", f"player {request.player}", *dict.fromkeys(beside + below)]
    return [*map(number_of, told + placed[-MOST_WORDS:])]


@lru_cache(2**16)
def number_of(word: str) -> int:
    """Return a number above 0 that stands for a word; 0 stands for none."""
    return crc32(word.encode()) + 1


class ValuePlayer(SearchPlayer):
    """Plays, and ranks actions, by a learned value."""

    method = "a learned value"

    def __init__(self, value: StepValue) -> None:
        super().__init__(None)
        self._value = value

    def values(self, request: TurnRequest) -> dict[str, float]:
        return self._value.of(request, request.legal_actions)

    def values_with(self, request: TurnRequest, actions: Collection[str]) -> dict[str, float]:
        return self._value.of(request, actions)


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


ABOUT, WEIGHTS = "value.json", "value.safetensors"


def write_value(value: StepValue, folder: Path) -> None:
    """Write the folder of a value."""
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / WEIGHTS, "wb") as stream:
        stream.write(_weights(value))
    with replacing(folder / ABOUT) as stream:
        stream.write(value.about.model_dump_json(indent=1) + "\n")


def read_value(folder: str | Path) -> StepValue:
    """Read a folder, which may be anybody's: data is parsed, nothing in it runs, and no link leads out of it.

    A ValueError says what is wrong with it.
    """
    advice = "name the folder `value` that textbench improve value leaves"
    try:
        check_folder(Path(folder))
        value = StepValue(About.model_validate_json(read_bytes(Path(folder) / ABOUT)))
        weights = load(read_bytes(Path(folder) / WEIGHTS))
        value.load_state_dict(weights)
    except OSError as error:
        raise ValueError(f"{folder} holds no step value ({error.strerror}: {error.filename}): {advice}") from None
    except ValidationError as error:
        raise ValueError(f"{Path(folder) / ABOUT}: {problem_of(error)}: {advice}") from None
    except (SafetensorError, RuntimeError) as error:
        why = " ".join(str(error).split())[:200]
        raise ValueError(f"{Path(folder) / WEIGHTS} has no weights of this network ({why}): {advice}") from None
    if not all(bool(each.isfinite().all()) for each in weights.values()):
        raise ValueError(f"{Path(folder) / WEIGHTS} has a weight that is no number: {advice}")
    return value.eval()


def digest_of(value: StepValue) -> str:
    """Return what tells one value from another in manifests."""
    return sha256(_weights(value)).hexdigest()[:16]


def _weights(value: StepValue) -> bytes:
    return save({name: each.contiguous() for name, each in value.state_dict().items()})
