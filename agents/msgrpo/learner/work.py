"""The rows of a pass, dealt to all processes and packed; policy and critic work through theirs alike."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from agents.msgrpo.configuration.config import MSGRPOConfig
from agents.msgrpo.learner.distributed import Processes
from agents.msgrpo.learner.scoring.packing import MicroBatch, deal, pack
from agents.msgrpo.rows import TokenRow

_LEAN_TOKENS = 2048


class SharedWork:
    """Deals rows to processes and packs each one's share.

    Args:
        config: says how large micro-batches and trees may be.
        processes: that share the work.
        packing: ``"tree"`` or ``"rows"``.
        width: of the model's hidden states; attention within a tree costs about as much as the products around it
            where a tree has some times as many tokens.
        lean: whether micro-batches are small. A CPU is busy with a few thousand tokens, and more only take memory.
    """

    def __init__(
        self, config: MSGRPOConfig, processes: Processes, packing: str, width: int, *, lean: bool = False
    ) -> None:
        self.processes, self.packing = processes, packing
        self._tree_tokens = config.tree_tokens or min(max(256, 4 * width), 4096)
        most = max(_LEAN_TOKENS, self._tree_tokens) if lean else config.micro_batch_tokens
        self._tokens = min(most, config.micro_batch_tokens)

    def pack(self, rows: Sequence[TokenRow]) -> list[MicroBatch]:
        """All rows in micro-batches, whoever works on them."""
        return pack(rows, packing=self.packing, micro_batch_tokens=self._tokens, tree_tokens=self._tree_tokens)

    def mine(self, rows: Sequence[TokenRow]) -> list[tuple[MicroBatch, list[int], bool]]:
        """This process's micro-batches, the numbers of their rows, and whether they count.

        Every process has equally many, so that collective calls meet: filling, which doesn't count, stands for what is
        missing.
        """
        mine = deal(rows, self.processes.count)[self.processes.rank]
        batches = self.pack([rows[number] for number in mine]) if mine else []
        work = [(batch, [mine[row] for row in batch.rows.tolist()], True) for batch in batches]
        missing = max(self.processes.gather(len(batches))) - len(batches)
        return work + [(self.pack(rows[:1])[0], [0], False)] * missing

    @torch.no_grad()
    def scores(
        self, rows: Sequence[TokenRow], score: Callable[[MicroBatch], Sequence[Tensor]]
    ) -> list[tuple[Tensor, ...]]:
        """What ``score`` says of all rows' response tokens, in float64 and without a gradient, row by row.

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
