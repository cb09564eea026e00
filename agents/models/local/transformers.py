"""Causal language models of Hugging Face transformers, sampled in this process.

``TransformersModel(model, tokenizer)`` wraps a model that is in memory already (one that is being trained, for example;
changed weights are noticed), ``TransformersModel.from_pretrained(path_or_repo)`` loads one. What a completion holds:

* ``response_ids`` are exactly the sampled ids. They are never re-tokenised, so a trainer can score them as they are.
* ``text`` is their decoding, special tokens written out, without a final end-of-sequence token. If the token that
  completed a stop string has more text after it, that rest is cut from ``text`` (as servers do) but the id stays.
* ``logprobs`` are natural logarithms under the distribution that was sampled from, temperature and top-p applied (at
  temperature 0: the model's own).
* A row's randomness comes from its seed alone (:mod:`agents.models.local.decoding.sampler`), and padding is masked, so
a
  completion doesn't depend on the rest of the batch beyond the rounding of matrix products.

Responses stop at a stop string, at an end-of-sequence token, at ``max_tokens`` or at the end of the model's context
(``finish_reason`` ``"length"`` for the last two).
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any

from textgames.extras import install_command

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"local models need PyTorch and transformers, which are not installed: {install_command('local')}"
    ) from error

from agents.models.answers import CLOSED_BY_A_BUDGET, LegalAnswers, Rules, Vocabulary
from agents.models.base import Decoding
from agents.models.fingerprint import adapter_identity, weights_identity
from agents.models.local.decoding.batching import cache_bytes, one_thread, split_batch
from agents.models.local.decoding.generic_decoder import GenericDecoder
from agents.models.local.decoding.guided import Guided, rules_of
from agents.models.local.decoding.lean_decoder import LeanDecoder
from agents.models.local.decoding.sampler import Decoder, Sampled, StopCheck, TokenIds, sample
from agents.models.local.decoding.thinking import CLOSING, RowsCheck, within_budget
from agents.models.local.forward.llama_forward import unwrap, why_not
from agents.models.local.loading.load import load_model
from agents.models.local.loading.plain_llama import load_plain
from agents.models.local.reader import Reader, eos_ids
from agents.models.local.templates import Thinking
from agents.models.provider import model_folder
from agents.models.reasoning import NOT_BEGUN, Begun, Opening, reasoning_tokens, split_reasoning
from agents.turn import Prompt, Turn, Usage, prefix_of

_SMALL_MODEL = 5_000_000  # parameters


class TransformersModel:
    """A causal language model of transformers as a :class:`agents.models.base.LanguageModel`.

    Args:
        model: any causal model of transformers, plain or wrapped by peft. Llama, Mistral, Qwen2 and Qwen3 are run by
            :mod:`agents.models.local.forward.llama_forward`, others by their own ``forward``.
        tokenizer: its tokenizer. With a chat template prompts are rendered by it; without, a prompt is its messages'
            contents joined by blank lines. No pad token is needed.
        name: what results call the model; by default if it was loaded from.
        max_batch_tokens: the most tokens (prompt and response, over all rows) that are in the caches at once; larger
            batches are split. By default what fits into 1 GiB on a CPU and half of the unused memory of a GPU.
        lean: ``False`` runs the model's own ``forward`` whatever it is.
        identity: what :attr:`settings` says of the weights, from :mod:`agents.models.fingerprint`.
        chat_template_kwargs: arguments of the chat template, such as ``{"enable_thinking": False}``.
        thinking_budget: the most tokens of a model's own reasoning (:mod:`agents.models.reasoning`), after which it is
            closed and the model responds. The limit of a response is beside it.

    Raises:
        ValueError: no tokenizer, not a causal language model, or a chat template that doesn't read its arguments.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        max_batch_tokens: int | None = None,
        lean: bool = True,
        identity: Mapping[str, str] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
    ) -> None:
        inner = unwrap(model)
        if tokenizer is None:
            raise ValueError("the model has no tokenizer; pass the one it was trained with as tokenizer=")
        generates = hasattr(inner, "generate") or why_not(model) is None  # what runs lean needs no method for it
        if not generates or getattr(inner.config, "is_encoder_decoder", False):
            raise ValueError(f"{type(inner).__name__} is not a causal language model (…ForCausalLM)")
        if max_batch_tokens is not None and max_batch_tokens < 1:
            raise ValueError(f"max_batch_tokens is at least 1, got {max_batch_tokens!r}")
        self._model, self.tokenizer = model, tokenizer
        self._load: Callable[[], Any] | None = None
        self.name = name or getattr(inner.config, "_name_or_path", "") or type(inner).__name__
        self._thinking = Thinking(tokenizer, chat_template_kwargs, thinking_budget, self.name)
        self.max_batch_tokens = max_batch_tokens
        self._identity = dict(identity or {})
        self.decoder = make_decoder(model, lean=lean)
        self.context_length = _context_length(model)
        self._vocabulary = int(inner.config.get_text_config().vocab_size)
        self._reader = Reader(tokenizer, self._thinking, self._vocabulary, eos_ids(inner, tokenizer), self.name)
        on_cpu = next(inner.parameters()).device.type == "cpu"
        self._is_small = on_cpu and sum(weight.numel() for weight in inner.parameters()) < _SMALL_MODEL

    @classmethod
    def from_pretrained(
        cls,
        path_or_repo: str | Path,
        *,
        dtype: str = "auto",
        device: str = "auto",
        revision: str | None = None,
        adapter: str | Path | None = None,
        trust_remote_code: bool = False,
        max_batch_tokens: int | None = None,
        name: str | None = None,
        context_length: int | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
    ) -> "TransformersModel":
        """Load a model in Hugging Face format.

        Args:
            path_or_repo: a folder, a repository on the Hugging Face hub, or a spec as ``smollm2`` and ``gguf:PATH``.
            dtype: a torch dtype's name (``"bfloat16"``, ``"float32"``); ``"auto"`` keeps that of the weights on a GPU
                and takes float32 on a CPU, if half precision is slower and less exact; weights that come from a
                GGUF file compute in bfloat16 on a GPU and on a CPU that multiplies it fast.
            device: ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ``"mps"``; ``"auto"`` takes a GPU if there is one.
            revision: branch, tag or commit in the repository.
            adapter: a peft adapter to put on it. A folder that holds an adapter itself is loaded with its base model.
            trust_remote_code: run model code from the repository.
            max_batch_tokens, name, chat_template_kwargs, thinking_budget: see the class.
            context_length: the longest prompt and response together, in tokens, if that is to be more than the
                model's configuration says; its positions must be computed ones (rotary).

        Raises:
            ModuleNotFoundError: transformers (or peft, for an adapter) is not installed; the message has the command.
            FileNotFoundError: a folder that doesn't exist.
            ValueError: no causal language model with a tokenizer is there, or the device or dtype is unknown.
        """
        source = model_folder(str(path_or_repo))

        def load() -> tuple[Any, Any]:
            return load_model(
                str(path_or_repo),
                dtype=dtype,
                device=device,
                revision=revision,
                adapter=None if adapter is None else str(adapter),
                trust_remote_code=trust_remote_code,
            )

        plain = None if adapter is not None else load_plain(source, dtype=dtype, device=device)
        model, tokenizer = load() if plain is None else plain
        if context_length is not None:
            unwrap(model).config.max_position_embeddings = context_length
        identity = weights_identity(source, commit=getattr(unwrap(model).config, "_commit_hash", None))
        if adapter is not None:
            identity |= adapter_identity(adapter)
        name = name or str(path_or_repo)
        made = cls(
            model,
            tokenizer,
            name=name,
            max_batch_tokens=max_batch_tokens,
            identity=identity,
            chat_template_kwargs=chat_template_kwargs,
            thinking_budget=thinking_budget,
        )
        made.check()
        if plain is not None:
            made._load = lambda: load()[0]
        return made

    def check(self) -> None:
        """See that the model can be sampled here.

        Raises:
            ValueError: it can't; the message says why, and what works.
        """
        if isinstance(self.decoder, GenericDecoder):
            self.decoder.check()

    def why_unconstrained(self, reasons: bool) -> str | None:
        """Return why answers can't be held to legal ones; ``None`` if they can."""
        return None if self._thinking.budget is None else CLOSED_BY_A_BUDGET

    @property
    def model(self) -> Any:
        """The model of transformers. What :meth:`from_pretrained` read without transformers is loaded by it now."""
        if self._load is not None:
            self._model, self._load = self._load(), None
            self.decoder = make_decoder(self._model)
            self.context_length = _context_length(self._model)
        return self._model

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self._model.parameters()).device
        return device

    @property
    def settings(self) -> dict[str, Any]:
        """What decides the completions apart from prompts, decoding and seeds, as plain data for manifests."""
        return {
            "name": self.name,
            "class": type(unwrap(self._model)).__name__,
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "parameters": sum(weight.numel() for weight in unwrap(self._model).parameters()),
            "forward": "lean" if isinstance(self.decoder, LeanDecoder) else "own",
            **self._identity,
            **self._reader.identity,
            **self._thinking.settings,
        }

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        answers: Sequence[LegalAnswers | None] | None = None,
    ) -> list[Turn]:
        if len(prompts) != len(seeds):
            raise ValueError(f"one seed per prompt: got {len(prompts)} prompts and {len(seeds)} seeds")
        if not prompts:
            return []
        started = time.perf_counter()
        encoded = self.encode(prompts)
        begun = [Begun(prefix_of(prompt), self.opening(prompt)) for prompt in prompts]
        rules, wrong = rules_of(self, encoded, answers or [None] * len(prompts), begun, decoding.max_tokens)
        fits = [row for row, problem in enumerate(wrong) if problem is None]
        rows = self.generate_ids(
            [encoded[row] for row in fits],
            decoding,
            [seeds[row] for row in fits],
            [begun[row] for row in fits],
            None if answers is None else [rules[row] for row in fits],
        )
        sampled = dict(zip(fits, rows, strict=True))
        seconds = time.perf_counter() - started
        check = self._reader.check(decoding.stop)
        return [
            self._completion(ids, sampled[row], begun[row], check, seconds)
            if row in sampled
            else Turn("", finish_reason="error", seconds=seconds, error=wrong[row])
            for row, ids in enumerate(encoded)
        ]

    def _completion(self, prompt: TokenIds, row: Sampled, begun: Begun, check: StopCheck, seconds: float) -> Turn:
        ids = row.ids[:-1] if row.ids and row.ids[-1] in self._reader.eos_ids else row.ids
        reasoning, response = split_reasoning(check.trim(self.decode(ids), begun.text), begun.opening)
        thought = reasoning_tokens(ids, begun.opening, self.decode)
        return Turn(
            response=response,
            prompt_ids=prompt,
            response_ids=row.ids,
            logprobs=row.logprobs,
            finish_reason="stop" if row.stopped else "length",
            usage=Usage(len(prompt), len(row.ids), reasoning_tokens=thought),
            seconds=seconds,
            reasoning=reasoning,
            allowed=row.allowed,
        )

    def generate_ids(
        self,
        prompts: Sequence[TokenIds],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        begun: Sequence[Begun] = (),
        rules: Sequence[Rules | None] | None = None,
    ) -> list[Sampled]:
        """:meth:`generate` for prompts that are token ids already; ``begun`` is what their responses begin with."""
        begun = begun or [NOT_BEGUN] * len(prompts)
        check = RowsCheck(self._reader.check(decoding.stop), [each.text for each in begun])
        openings, budget = [each.opening for each in begun], self._thinking.budget
        if budget is None or all(opening == "none" for opening in openings):
            limits = [self.limit(prompt, decoding.max_tokens) for prompt in prompts]
            return self._sample(prompts, decoding, seeds, limits, check, rules=rules)

        def run(
            rows: Sequence[int], prompts: Sequence[TokenIds], limits: Sequence[int], check: RowsCheck, drawn: int
        ) -> list[Sampled]:
            own = None if rules is None else [rules[row] for row in rows]
            return self._sample(prompts, decoding, [seeds[row] for row in rows], limits, check, drawn, own)

        limits = [self.limit(prompt, decoding.max_tokens + budget) for prompt in prompts]
        closing = tuple(self.tokenizer(CLOSING, add_special_tokens=False)["input_ids"])
        return within_budget(run, prompts, limits, openings, check, budget, closing)

    def _sample(
        self,
        prompts: Sequence[TokenIds],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        limits: Sequence[int],
        check: RowsCheck,
        drawn: int = 0,
        rules: Sequence[Rules | None] | None = None,
    ) -> list[Sampled]:
        sampled: list[Sampled | None] = [None] * len(prompts)
        training = self._model.training
        self._model.eval()  # dropout must not blur what the sampled log-probabilities are
        try:
            with torch.inference_mode(), one_thread() if self._is_small else nullcontext():
                for rows in split_batch(prompts, limits, self._most_tokens()):
                    chunk = sample(
                        self.decoder,
                        [prompts[row] for row in rows],
                        decoding,
                        [seeds[row] for row in rows],
                        check.of(rows),
                        [limits[row] for row in rows],
                        drawn=drawn,
                        guided=None
                        if rules is None
                        else Guided([rules[row] for row in rows], [limits[row] for row in rows]),
                    )
                    for row, result in zip(rows, chunk, strict=True):
                        sampled[row] = result
        finally:
            self._model.train(training)
        return [result for result in sampled if result is not None]

    def _most_tokens(self) -> int:
        """Return how many tokens of all rows may be in the caches at once."""
        if self.max_batch_tokens is not None:
            return self.max_batch_tokens
        return max(1, cache_bytes(self.device) // max(1, self.decoder.bytes_per_token()))

    def encode(self, prompts: Sequence[Prompt]) -> list[TokenIds]:
        """Token ids of prompts, ready to be continued by a response."""
        return self._reader.encode(prompts)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones written out."""
        return self._reader.decode(ids)

    def render(self, prompt: Prompt) -> str:
        """Return the text that the model is given for a prompt, its tokenizer's chat template applied."""
        return self._reader.render(prompt)

    def opening(self, prompt: Prompt) -> Opening:
        """Return whether the model reasons before it responds to a prompt (:mod:`agents.models.reasoning`)."""
        return self._thinking.opening(prompt)

    def check_prefix(self, prefix: str) -> None:
        """See that the chat template can go on from a response's prefix; a ValueError if it can't."""
        self._reader.check_prefix(prefix)

    def limit(self, prompt: TokenIds, max_tokens: int) -> int:
        if (problem := self.too_long(prompt)) is not None:
            raise ValueError(problem)
        return max_tokens if self.context_length is None else min(max_tokens, self.context_length - len(prompt))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The texts of the tokens, by which answers are constrained."""
        return Vocabulary.of(self.tokenizer, self._vocabulary, self._reader.eos_ids)

    def too_long(self, prompt: TokenIds) -> str | None:
        """Return what to say of a prompt that leaves no room for a response."""
        if self.context_length is None or len(prompt) < self.context_length:
            return None
        return (
            f"the prompt has {len(prompt)} tokens and {self.name} can read {self.context_length}, its response "
            "included; shorten the prompt (less history, coordinates or grid only) or take another model"
        )


def make_decoder(model: torch.nn.Module, *, lean: bool = True) -> Decoder:
    """Return the fastest decoder that covers the model; ``lean=False`` takes the generic one."""
    return LeanDecoder(model) if lean and why_not(model) is None else GenericDecoder(model)


def _context_length(model: Any) -> int | None:
    """Return how many tokens the model's configuration says that it can read; ``None`` if it says nothing."""
    length: int | None = getattr(unwrap(model).config.get_text_config(), "max_position_embeddings", None)
    return length
