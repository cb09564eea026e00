"""Next-token logits by a model's own ``forward``, for every architecture that the lean forward pass doesn't cover."""

import inspect
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from agents.models.local.decoding.sampler import COMPACT_AT, TokenIds
from agents.models.local.forward.llama_forward import unwrap

_TOLERANCE = 5e-3  # nats; rounding is far below it in float32, a cache that is used wrongly far above


class GenericDecoder:
    """A :class:`~agents.models.local.decoding.sampler.Decoder` by the model's own ``forward`` and cache; it pads on the
    left."""

    def __init__(self, model: nn.Module) -> None:
        self.model: Any = model
        accepted = inspect.signature(unwrap(model).forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_keep = "logits_to_keep" in accepted
        self._cache_name = "past_key_values" if "past_key_values" in accepted else "cache_params"

    def start(self, prompts: Sequence[TokenIds], rows: Sequence[int]) -> tuple["GenericBatch", Tensor]:
        device = next(self.model.parameters()).device
        longest = max(map(len, prompts))
        # padding is masked, so any token will do: models without a pad token need none
        ids = torch.tensor([(0,) * (longest - len(p)) + tuple(p) for p in prompts], device=device)
        lengths = torch.tensor([len(p) for p in prompts], device=device)
        mask = (torch.arange(longest, device=device) >= longest - lengths[:, None]).long()
        logits, cache = self.forward(ids, mask, (mask.cumsum(-1) - 1).clamp(min=0), None)
        if not hasattr(cache, "reorder_cache"):
            raise ValueError("it keeps no cache that transformers' Cache classes describe")
        batch = GenericBatch(self, mask, lengths, cache)
        if list(rows) != list(range(len(prompts))):
            index = torch.tensor(rows, device=device)
            batch.keep(index)
            logits = logits.index_select(0, index)
        return batch, logits

    def forward(self, ids: Tensor, mask: Tensor, positions: Tensor, cache: Any) -> tuple[Tensor, Any]:
        """Return logits ``(rows, vocabulary)`` after the last of the tokens ``(rows, new)``, and the grown cache."""
        extra: dict[str, Any] = {"logits_to_keep": 1} if self._takes_keep else {}
        if self._takes_positions:
            extra["position_ids"] = positions
        if cache is not None:
            extra[self._cache_name] = cache
        out = self.model(input_ids=ids, attention_mask=mask, use_cache=True, **extra)
        return out.logits[:, -1], getattr(out, self._cache_name, None)

    @torch.inference_mode()
    def check(self) -> None:
        """Compare a few decoded tokens with the model's own forward: caches come in many kinds. A ValueError has the
        reason why the model can't be sampled."""
        model, training = self.model, self.model.training
        model.eval()
        long, short = (1, 2, 3, 2, 1), (2, 1)
        try:
            batch, _ = self.start([long, short], [0, 1])
            device = next(model.parameters()).device
            batch.step(torch.tensor([3, 3], device=device))
            batch.keep(torch.tensor([1], device=device))
            got = batch.step(torch.tensor([1], device=device)).log_softmax(-1)
            wanted = model(input_ids=torch.tensor([[*short, 3, 1]], device=device)).logits[:, -1].log_softmax(-1)
            difference = float((got - wanted).abs().max())
            # in half precision rounding alone may be as large as a mistake, for mixtures of experts above all
            wrong = difference > _TOLERANCE and got.dtype == torch.float32
            reason = f"its cache changes log-probabilities by {difference:.2g}" if wrong else ""
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError) as error:
            reason = f"{type(error).__name__}: {error}"
        finally:
            model.train(training)
        if reason:
            raise ValueError(
                f"{type(unwrap(model)).__name__} can't be sampled in this process ({reason}): serve it with vLLM, and "
                "play it as openai:MODEL; to train it, pass such an engine to MSGRPOTrainer(engine=...)"
            )


class GenericBatch:
    """Rows that are being continued; ``mask (rows, columns)`` is 0 at the padding, ``positions (rows,)`` the next."""

    compact_at = COMPACT_AT

    def __init__(self, decoder: GenericDecoder, mask: Tensor, positions: Tensor, cache: Any) -> None:
        self._decoder, self._mask, self._positions, self._cache = decoder, mask, positions, cache

    def step(self, tokens: Tensor) -> Tensor:
        self._mask = F.pad(self._mask, (0, 1), value=1)
        at = self._positions[:, None]
        logits, self._cache = self._decoder.forward(tokens[:, None], self._mask, at, self._cache)
        self._positions = self._positions + 1
        return logits

    def keep(self, rows: Tensor) -> None:
        self._cache.reorder_cache(rows)  # of all ways to pick rows, the one that recurrent layers have as well
        self._mask = self._mask.index_select(0, rows)
        self._positions = self._positions.index_select(0, rows)
