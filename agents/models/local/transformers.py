"""Causal language models of Hugging Face transformers, sampled in this process.

``TransformersModel(model, tokenizer)`` wraps a model in memory (changed weights are noticed),
``TransformersModel.from_pretrained(path_or_repo)`` loads one. The ``response_ids`` of a completion are exactly the
sampled ids, ``response`` is their decoding, special tokens written out, without a final end-of-sequence token and
without text behind the stop string. ``logprobs`` are natural logarithms under the distribution that was sampled from,
temperature and top-p applied (at temperature 0: the model's own). A completion depends on its prompt and its seed
alone, up to the rounding of matrix products. It ends at a stop string, at an end-of-sequence token, or
(``finish_reason`` ``"length"``) at ``max_tokens`` or the end of the model's context.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from textgames.extras import install_command

try:
    import torch
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        f"local models need PyTorch and transformers, which are not installed: {install_command('local')}"
    ) from error

from agents.models.answers import CLOSED_BY_A_BUDGET, LegalAnswers, Rules
from agents.models.base import Decoding
from agents.models.local.decoding.drafts import sample_drafted
from agents.models.local.decoding.generic_decoder import GenericDecoder
from agents.models.local.decoding.lean_decoder import LeanDecoder
from agents.models.local.decoding.machine import bytes_per_token, cache_bytes, one_thread, split_batch
from agents.models.local.decoding.sampler import Budget, Decoder, Sampled, TokenIds, sample
from agents.models.local.forward.llama_forward import unwrap, why_not
from agents.models.local.loading.adapters import adapter_identity, weights_identity
from agents.models.local.loading.load import load_model
from agents.models.local.loading.plain_llama import load_plain
from agents.models.local.reader import Reader
from agents.models.local.templates import Thinking
from agents.models.provider import model_folder
from agents.models.reasoning import NOT_BEGUN, Begun, reasoning_tokens, split_reasoning
from agents.turn import Prompt, Turn, Usage, prefix_of
from textgames.texts.actions import THOUGHT

_SMALL_MODEL = 5_000_000  # parameters

CLOSING = f"\n{THOUGHT}\n\n"
"""The text that closes reasoning which has used up its budget."""


class TransformersModel(Reader):
    """A causal language model of transformers as a :class:`agents.models.base.LanguageModel`.

    Args:
        model: any causal model of transformers, plain or wrapped by peft. Llama, Mistral, Qwen2 and Qwen3 are run by
            :mod:`agents.models.local.forward.llama_forward`, others by their own ``forward``.
        tokenizer: its tokenizer. With a chat template prompts are rendered by it; without, a prompt is its messages'
            contents joined by blank lines. No pad token is needed.
        name: what results call the model; by default the place that it was loaded from.
        max_batch_tokens: the most tokens (prompt and response, over all rows) that are in the caches at once; larger
            batches are split. By default as many as fit into 1 GiB on a CPU and half of the unused memory of a GPU.
        identity: the weights' part of :attr:`settings`, from :mod:`agents.models.local.loading.adapters`.
        chat_template_kwargs: arguments of the chat template, such as ``{"enable_thinking": False}``.
        thinking_budget: the most tokens of a model's own reasoning (:mod:`agents.models.reasoning`), after which it is
            closed and the model responds. The limit of a response is beside it.

    A ValueError if there is no tokenizer, no causal language model, or no chat template that reads its arguments.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        name: str | None = None,
        max_batch_tokens: int | None = None,
        identity: Mapping[str, str] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
    ) -> None:
        inner = unwrap(model)
        if tokenizer is None:
            raise ValueError("the model has no tokenizer; pass the one it was trained with as tokenizer=")
        generates = hasattr(inner, "generate") or why_not(model) is None  # models that run lean need no method for it
        if not generates or getattr(inner.config, "is_encoder_decoder", False):
            raise ValueError(f"{type(inner).__name__} is not a causal language model (…ForCausalLM)")
        if max_batch_tokens is not None and max_batch_tokens < 1:
            raise ValueError(f"max_batch_tokens is at least 1, got {max_batch_tokens!r}")
        name = name or getattr(inner.config, "_name_or_path", "") or type(inner).__name__
        places = (getattr(inner, "generation_config", None), inner.config, tokenizer)
        named = [getattr(place, "eos_token_id", None) for place in places]
        ends = [one if isinstance(one, list | tuple) else [one] for one in named if one is not None]
        thinking = Thinking(tokenizer, chat_template_kwargs, thinking_budget, name)
        size = int(inner.config.get_text_config().vocab_size)
        super().__init__(tokenizer, thinking, size, frozenset(token for ids in ends for token in ids), name)
        self._load: Callable[[], Any] | None = None
        self.max_batch_tokens = max_batch_tokens
        self._identity = dict(identity or {})
        self._take(model)
        self._parameters = sum(weight.numel() for weight in inner.parameters())

    def _take(self, model: Any) -> None:
        self._model = model
        self.decoder: Decoder = LeanDecoder(model) if why_not(model) is None else GenericDecoder(model)
        config = unwrap(model).config.get_text_config()
        self.context_length: int | None = getattr(config, "max_position_embeddings", None)

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
        name: str | None = None,
        context_length: int | None = None,
        **options: Any,
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
            name: as for the class, whose other options (``max_batch_tokens`` ...) are taken as well.
            context_length: the longest prompt and response together, in tokens, if that is to be more than the
                model's configuration has; its positions must be computed ones (rotary).

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
        made = cls(model, tokenizer, name=name or str(path_or_repo), identity=identity, **options)
        made.check()
        if plain is not None:
            made._load = lambda: load()[0]
        return made

    def check(self) -> None:
        """Raise a ValueError if the model can't be sampled here; the message has the reason, and an alternative."""
        if isinstance(self.decoder, GenericDecoder):
            self.decoder.check()

    def forget(self) -> None:
        """Drop the prefixes that are kept from earlier calls."""
        if isinstance(self.decoder, LeanDecoder):
            self.decoder.forget()

    def why_unconstrained(self, reasons: bool) -> str | None:
        return None if self._thinking.budget is None else CLOSED_BY_A_BUDGET

    @property
    def model(self) -> Any:
        """The model of transformers. If :meth:`from_pretrained` did without, transformers loads it now."""
        if self._load is not None:
            load, self._load = self._load, None
            self._take(load())
        return self._model

    @property
    def device(self) -> torch.device:
        device: torch.device = next(self._model.parameters()).device
        return device

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "class": type(unwrap(self._model)).__name__,
            "dtype": str(next(self._model.parameters()).dtype).removeprefix("torch."),
            "parameters": self._parameters,
            "forward": "lean" if isinstance(self.decoder, LeanDecoder) else "own",
            **self._identity,
            **self.tokenizer_identity,
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
        rules: dict[int, Rules | None] = {}  # of the rows that can be answered
        turns: dict[int, Turn] = {}  # first of the others
        for row, ids in enumerate(encoded):
            try:
                room = self.limit(ids, decoding.max_tokens)
                legal = None if answers is None else answers[row]
                rules[row] = self._rules(legal, begun[row], room) if legal else None
            except ValueError as error:
                turns[row] = Turn("", finish_reason="error", error=str(error))
        sampled = self.generate_ids(
            [encoded[row] for row in rules],
            decoding,
            [seeds[row] for row in rules],
            [begun[row] for row in rules],
            None if answers is None else [*rules.values()],
        )
        check = self.stop_check(decoding.stop)
        for row, done in zip(rules, sampled, strict=True):
            ids, own = done.ids, begun[row]
            ids = ids[:-1] if ids and ids[-1] in self.eos_ids else ids
            reasoning, response = split_reasoning(check.trim(self.decode(ids), own.text), own.opening)
            thought = reasoning_tokens(ids, own.opening, self.decode)
            turns[row] = Turn(
                response=response,
                prompt_ids=encoded[row],
                response_ids=done.ids,
                logprobs=done.logprobs,
                finish_reason="stop" if done.stopped else "length",
                usage=Usage(len(encoded[row]), len(done.ids), reasoning_tokens=thought),
                reasoning=reasoning,
                allowed=done.allowed,
            )
        seconds = time.perf_counter() - started
        return [replace(turns[row], seconds=seconds) for row in range(len(prompts))]

    def _rules(self, legal: LegalAnswers, begun: Begun, room: int) -> Rules:
        """Return the rules of one response; a ValueError if there is none, or no room for it."""
        if begun.opening != "none":  # a model that reasons by itself does so freely, whatever the prompt's mode
            legal = replace(legal, reasons=True, begun=begun.text)
        rules = self.vocabulary.rules(legal)
        if room < rules.reserve:
            raise ValueError(
                f"a legal answer may need {rules.reserve} tokens and there is room for {room}: raise max_tokens, or "
                "shorten the prompt"
            )
        return rules

    def generate_ids(
        self,
        prompts: Sequence[TokenIds],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        begun: Sequence[Begun] = (),
        rules: Sequence[Rules | None] | None = None,
    ) -> list[Sampled]:
        """Sample as :meth:`generate` does, from prompts that are token ids; ``begun`` begins their responses.

        Rows that are still in their reasoning at the thinking budget have it closed by tokens of log-probability 0,
        that of the one continuation that was allowed, so that training leaves them alone. Others draw as without one.
        """
        begun = begun or [NOT_BEGUN] * len(prompts)
        check = self.stop_check(decoding.stop)
        budget = None if all(each.opening == "none" for each in begun) else self._thinking.budget
        closing = tuple(self.tokenizer(CLOSING, add_special_tokens=False)["input_ids"]) if budget is not None else ()
        limits = [self.limit(prompt, decoding.max_tokens + (budget or 0)) for prompt in prompts]
        sampled: dict[int, Sampled] = {}
        room = self.max_batch_tokens or max(1, cache_bytes(self.device) // max(1, bytes_per_token(self._model)))
        small = self.device.type == "cpu" and self._parameters < _SMALL_MODEL
        training = self._model.training
        self._model.eval()  # dropout must not blur the sampled log-probabilities
        try:
            with torch.inference_mode(), one_thread() if small else nullcontext():
                for rows in split_batch(prompts, limits, room):
                    if rules is not None and isinstance(self.decoder, LeanDecoder):
                        forced = {row: one for row in rows if (one := rules[row]) is not None and not one.start.free}
                        chunk = sample_drafted(
                            self.decoder,
                            [prompts[row] for row in forced],
                            decoding,
                            [seeds[row] for row in forced],
                            [limits[row] for row in forced],
                            list(forced.values()),
                        )
                        sampled |= zip(forced, chunk, strict=True)
                        if not (rows := [row for row in rows if row not in forced]):
                            continue
                    chunk = sample(
                        self.decoder,
                        [prompts[row] for row in rows],
                        decoding,
                        [seeds[row] for row in rows],
                        check.of([begun[row].text for row in rows]),
                        [limits[row] for row in rows],
                        rules=None if rules is None else [rules[row] for row in rows],
                        budget=Budget(budget, closing, [begun[row].opening for row in rows]) if budget else None,
                    )
                    sampled |= zip(rows, chunk, strict=True)
        finally:
            self._model.train(training)
        return [sampled[row] for row in range(len(prompts))]

    def limit(self, prompt: TokenIds, max_tokens: int) -> int:
        """Return the most tokens of a response; a ValueError if the prompt leaves no room for one."""
        if self.context_length is None:
            return max_tokens
        if len(prompt) >= self.context_length:
            raise ValueError(
                f"the prompt has {len(prompt)} tokens and {self.name} can read {self.context_length}, its response "
                "included; shorten the prompt (less history, coordinates or grid only) or take another model"
            )
        return min(max_tokens, self.context_length - len(prompt))
