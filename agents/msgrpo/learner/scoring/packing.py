"""From steps to micro-batches, dealt to all processes: token trees, whose equal prefixes are computed once, or rows.

The steps of an iteration share instructions, prompts of equal states, and responses of a sure model. Sorted, such
sequences form a tree; its nodes, in depth-first order, are one sequence in which a token attends to its ancestors.
Every token has the position and the context of its own row, so log-probabilities and gradients are the same.

A beginning that all prompts share is computed once for all micro-batches of the lean forward pass (:class:`Trunk`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os.path import commonprefix

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agents.models.local.forward.path_attention import QUERIES, Trunk
from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.credit.batch import TokenRow
from agents.msgrpo.errors import DivergenceError
from agents.msgrpo.learner.distributed import Processes
from agents.turn import Allowed, TokenSet

Ints = npt.NDArray[np.int64]

_LEAN_TOKENS, _TREE_TOKENS = 1024, 4096


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Rows in the shape that goes through the model once."""

    input_ids: Tensor  # (B, L)
    position_ids: Tensor  # (B, L)
    # (B, L) for trees: node ``j`` is an ancestor of ``i`` when ``j <= i < subtree_end[j]``; ``None`` for plain rows,
    # which are padded on the right
    subtree_end: Tensor | None
    lengths: Tensor  # (B,) used part of each row
    index: Tensor  # (n,) places in the flattened (B * L) hidden states: each response token is predicted at its parent
    targets: Tensor  # (n,) the token to score there
    rows: Ints  # which of the given rows are in here
    places: Tensor  # for each of these rows, its response tokens' places among the ``n`` scores, concatenated
    allowed: Allowed | None = None  # (n,) what might stand at each scored place; ``None``: all tokens everywhere
    trunk: Trunk | None = None  # tokens before all of these, which the micro-batches of a pass share
    computed: int = 0  # tokens, padding included; those of the trunk count in the first micro-batch

    def attention_mask(self, *, additive: torch.dtype | None = None) -> Tensor:
        """Return (B, 1, L, L) for trees, true (or 0, else lowest, if additive) for allowed pairs; else (B, L)."""
        if self.subtree_end is None:
            return (torch.arange(self.input_ids.shape[1]) < self.lengths[:, None]).long()
        allowed = tree_mask(self.subtree_end)
        if additive is None:
            return allowed
        return torch.zeros(allowed.shape, dtype=additive).masked_fill_(~allowed, torch.finfo(additive).min)


def tree_mask(subtree_end: Tensor) -> Tensor:
    """Return (B, 1, L, L) which tokens see which, if token ``j`` is seen by ``j .. subtree_end[:, j] - 1``."""
    cells = torch.arange(subtree_end.shape[1])
    return ((cells <= cells[:, None]) & (cells[:, None] < subtree_end[:, None]))[:, None]


def pack(
    rows: Sequence[TokenRow], *, packing: str, micro_batch_tokens: int, tree_tokens: int, trunk: Trunk | None = None
) -> list[MicroBatch]:
    """Arrange rows in micro-batches of at most so many tokens, padding included, which together hold every row once.

    ``tree_tokens`` are the most nodes of a tree; a longer sequence gets one of its own. A ``trunk`` that all prompts
    begin with is left out of the trees.
    """
    known = len(trunk.ids) if trunk else 0
    trees: list[_TreeBuilder] = []  # a plain row is a tree of one branch
    for number in range(len(rows)) if packing == "rows" else _alike(rows):
        row = rows[number]
        ids = np.array(row.prompt[known:] + row.response, dtype=np.int64)
        if packing == "rows" or not trees or not trees[-1].fits(ids, tree_tokens):
            trees.append(_TreeBuilder())
        trees[-1].add(number, ids, len(row.prompt) - known, row.allowed)
    batches: list[list[_TreeBuilder]] = []
    for tree in sorted(trees, key=lambda tree: tree.size):  # ascending: the tree at hand is the longest of its batch
        if not batches or (len(batches[-1]) + 1) * tree.size > micro_batch_tokens:
            batches.append([])
        batches[-1].append(tree)
    packed = [_batch(batch, packing=packing, trunk=trunk) for batch in batches]
    return [replace(each, computed=each.input_ids.numel() + known * (each is packed[0])) for each in packed]


def deal(rows: Sequence[TokenRow], count: int) -> list[list[int]]:
    """Deal rows to ``count`` processes: their numbers, equally many for each or one more, and none twice.

    Rows that begin alike stay together, as trees compute their common prefix once.
    """
    if count == 1:
        return [list(range(len(rows)))]
    return [part.tolist() for part in np.array_split(np.array(_alike(rows)), count)]


def _alike(rows: Sequence[TokenRow]) -> list[int]:
    """Return the numbers of rows in an order in which those that begin alike stand together."""
    return sorted(range(len(rows)), key=lambda number: rows[number].prompt + rows[number].response)


def longest_tree(config: MSGRPOConfig, width: int, *, lean: bool = False) -> int:
    """Return the most nodes of a tree: as the settings say, or by the width of the model's hidden states."""
    return config.tree_tokens or min(max(256, 4 * width), _LEAN_TOKENS if lean else _TREE_TOKENS)


class SharedWork:
    """Deals the rows of a pass to processes and packs each one's share; policy and critic work through theirs alike.

    ``width`` is that of the model's hidden states. ``lean``: micro-batches and trees are small, as a CPU is busy with a
    thousand tokens, and more only take memory.
    """

    def __init__(
        self, config: MSGRPOConfig, processes: Processes, packing: str, width: int, *, lean: bool = False
    ) -> None:
        self.processes, self.packing = processes, packing
        self._tree_tokens = longest_tree(config, width, lean=lean)
        most = max(_LEAN_TOKENS, self._tree_tokens) if lean else config.micro_batch_tokens
        self._tokens = min(most, config.micro_batch_tokens)
        # several processes exchange gradients in the last micro-batch's backward pass, before the trunk's
        self._shares_trunk = lean and packing == "tree" and processes.count == 1

    def pack(self, rows: Sequence[TokenRow]) -> list[MicroBatch]:
        tokens, nodes = self._tokens, self._tree_tokens
        batches = pack(rows, packing=self.packing, micro_batch_tokens=tokens, tree_tokens=nodes)
        if not self._shares_trunk or len(batches) == 1:
            return batches
        beginning = commonprefix([row.prompt[:-1] for row in rows])  # noqa: RUF071 - prompts are no paths
        if len(beginning) < QUERIES:
            return batches
        # the trunk is held beside every micro-batch
        tokens, nodes = (max(QUERIES, most - len(beginning)) for most in (tokens, nodes))
        return pack(rows, packing=self.packing, micro_batch_tokens=tokens, tree_tokens=nodes, trunk=Trunk(beginning))

    def mine(self, rows: Sequence[TokenRow]) -> list[tuple[MicroBatch, list[int], bool]]:
        """Return this process's micro-batches, the numbers of their rows, and whether they count.

        Filling, which doesn't count, gives every process equally many, so that collective calls meet.
        """
        mine = deal(rows, self.processes.count)[self.processes.rank]
        batches = self.pack([rows[number] for number in mine]) if mine else []
        work = [(batch, [mine[row] for row in batch.rows.tolist()], True) for batch in batches]
        missing = max(self.processes.gather(len(batches))) - len(batches)
        return work + ([(self.pack(rows[:1])[0], [0], False)] * missing if missing else [])

    def step(
        self,
        rows: Sequence[TokenRow],
        loss_of: Callable[[MicroBatch, list[int], bool], Tensor],
        optimizer: torch.optim.Optimizer,
        limit: float,
        abort: float = 0.0,
    ) -> tuple[float, float]:
        """Take one optimiser step, and return its loss and its gradient norm before it was scaled down to ``limit``.

        ``loss_of(micro-batch, numbers of its rows, whether it counts)`` is its part of the loss. Above the norm
        ``abort`` the step isn't taken. Either limit is 0 for none.
        """
        optimizer.zero_grad(set_to_none=True)
        mine, work = 0.0, self.mine(rows)
        for done, (batch, numbers, counts) in enumerate(work, 1):
            with self.processes.synchronise(last=done == len(work)):
                loss = loss_of(batch, numbers, counts)
                self.processes.backward(loss * float(counts))
            mine += loss.item() if counts else 0.0
        if trunk := work[0][0].trunk:
            trunk.backward()
        total = sum(self.processes.gather(mine))
        norm = self.processes.clip_grad_norm(limit or math.inf)
        if not math.isfinite(total) or not math.isfinite(norm):
            raise DivergenceError(f"the loss is {total:g} and the gradient norm {norm:g}")
        if abort and norm > abort:
            raise DivergenceError(f"the gradient norm {norm:g} is above abort_grad_norm = {abort:g}")
        optimizer.step()
        return total, norm

    @torch.no_grad()
    def scores(
        self, rows: Sequence[TokenRow], score: Callable[[MicroBatch], Sequence[Tensor]]
    ) -> list[tuple[Tensor, ...]]:
        """Return the scores of all rows' response tokens, in float64 and without a gradient, row by row.

        ``score(micro-batch)`` returns some tensors (tokens,). The work is shared by all processes.
        """
        mine: dict[int, list[list[float]]] = {}
        for batch, numbers, counts in self.mine(rows):
            lengths = [len(rows[number].response) for number in numbers]
            parts = zip(*[torch.split(each, lengths) for each in score(batch)], strict=True)
            if counts:
                mine.update((n, [each.tolist() for each in part]) for n, part in zip(numbers, parts, strict=True))
        scored = {number: part for theirs in self.processes.gather(mine) for number, part in theirs.items()}
        return [
            tuple(torch.tensor(each, dtype=torch.float64) for each in scored[number]) for number in range(len(rows))
        ]


class _TreeBuilder:
    """Grows one tree from sequences in sorted order; ``path`` is the branch of the last one."""

    def __init__(self) -> None:
        self.ids: list[Ints] = []
        self.positions: list[Ints] = []
        self.ends: list[tuple[Ints, int]] = []
        self.size = 0
        self.path = np.empty(0, dtype=np.int64)  # node of every token of the last sequence but its final one
        self.last = np.empty(0, dtype=np.int64)  # that sequence, the final token included
        # (node, target, what might stand there) -> its place
        self.scored: dict[tuple[int, int, TokenSet | None], int] = {}
        self.rows: list[int] = []
        self.places: list[Ints] = []  # per row, into scored

    def fits(self, ids: Ints, limit: int) -> bool:
        return self.size == 0 or self.size + len(ids) - 1 - self._shared(ids) <= limit

    def _shared(self, ids: Ints) -> int:
        """Return how many nodes of the last branch the sequence ``ids`` can use."""
        n = min(len(self.path), len(ids) - 1)
        different = self.last[:n] != ids[:n]
        return int(different.argmax()) if different.any() else n

    def add(self, number: int, ids: Ints, prompt_length: int, allowed: Allowed | None) -> None:
        shared, n = self._shared(ids), len(ids) - 1
        self.ends.append((self.path[shared:], self.size))  # the branch that is left here grows no more
        self.path = np.concatenate([self.path[:shared], np.arange(self.size, self.size + n - shared)])
        self.size += n - shared
        self.ids.append(ids[shared:n])
        self.positions.append(np.arange(shared, n))
        self.last = ids
        targets = ids[prompt_length:].tolist()
        scored = zip(self.path[prompt_length - 1 :].tolist(), targets, allowed or [None] * len(targets), strict=True)
        self.rows.append(number)
        self.places.append(np.array([self.scored.setdefault(one, len(self.scored)) for one in scored], dtype=np.int64))


def _batch(trees: Sequence[_TreeBuilder], *, packing: str, trunk: Trunk | None) -> MicroBatch:
    lengths = np.array([tree.size for tree in trees])
    shape = (len(trees), int(lengths.max()))
    ids, positions = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    end = np.tile(np.arange(1, shape[1] + 1), (shape[0], 1))  # a padding token attends to itself alone
    index: list[int] = []
    targets: list[int] = []
    allowed: list[TokenSet | None] = []
    places: list[Ints] = []
    for b, tree in enumerate(trees):
        ids[b, : tree.size], positions[b, : tree.size] = np.concatenate(tree.ids), np.concatenate(tree.positions)
        for branch, size in [*tree.ends, (tree.path, tree.size)]:
            end[b, branch] = size
        places += [place + len(index) for place in tree.places]
        nodes, own_targets, own_allowed = zip(*tree.scored, strict=True)
        index += [b * shape[1] + node for node in nodes]
        targets += own_targets
        allowed += own_allowed
    return MicroBatch(
        input_ids=torch.from_numpy(ids),
        position_ids=torch.from_numpy(positions + (len(trunk.ids) if trunk else 0)),
        subtree_end=torch.from_numpy(end) if packing == "tree" else None,
        lengths=torch.from_numpy(lengths),
        index=torch.tensor(index),
        targets=torch.tensor(targets),
        rows=np.array([row for tree in trees for row in tree.rows], dtype=np.int64),
        places=torch.from_numpy(np.concatenate(places)),
        allowed=tuple(allowed) if any(each is not None for each in allowed) else None,
        trunk=trunk,
    )
