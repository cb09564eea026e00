"""The tokens of a model of this process: prompts to token ids, token ids to text, and where a response ends."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from agents.models.answers import Vocabulary, decodes_plainly
from agents.models.local.decoding.sampler import StopCheck, TokenIds
from agents.models.local.loading.adapters import tokenizer_identity
from agents.models.local.loading.card import PLAIN_TEMPLATES
from agents.models.local.templates import Thinking, check_prefix, render
from agents.models.reasoning import Opening
from agents.prompt import as_text
from agents.turn import Prompt

_REMEMBERED_PROMPTS = 4096


class Reader:
    """A tokenizer of transformers with its chat template. The model knows ``size`` tokens, perhaps more than the
    tokenizer has, and is called ``name`` in messages; ``eos_ids`` end a response."""

    def __init__(self, tokenizer: Any, thinking: Thinking, size: int, eos_ids: frozenset[int], name: str) -> None:
        self.tokenizer, self.name, self.eos_ids = tokenizer, name, eos_ids
        self._thinking, self._size = thinking, size
        self._backend = tokenizer.backend_tokenizer if decodes_plainly(tokenizer) else None
        self._encoded: dict[Prompt, TokenIds] = {}
        self._checks: dict[tuple[str, ...], StopCheck] = {}

    def encode(self, prompts: Sequence[Prompt]) -> list[TokenIds]:
        """Return the token ids of prompts, ready to be continued by a response."""
        missing = [prompt for prompt in dict.fromkeys(prompts) if prompt not in self._encoded]
        if len(self._encoded) + len(missing) > _REMEMBERED_PROMPTS:
            self._encoded.clear()
            missing = list(dict.fromkeys(prompts))
        if missing:
            texts = [self.render(prompt) for prompt in missing]
            # a chat template writes its special tokens itself, and the plain one is for tokenizers that have none
            plain = self.is_plain
            rows = self.tokenizer(texts, add_special_tokens=plain)["input_ids"]
            for prompt, ids in zip(missing, rows, strict=True):
                # an encoder-style tokenizer would end the prompt, and the model would have nothing left to say
                while plain and ids and ids[-1] in self.eos_ids:
                    ids = ids[:-1]
                if not ids:
                    raise ValueError(
                        "the prompt is empty: a model continues at least one token, so give the prompts a text"
                    )
                if max(ids) >= self._size:
                    raise ValueError(
                        f"the tokenizer writes token {max(ids)} but {self.name} knows only {self._size} tokens: "
                        "it isn't the tokenizer that the model was trained with"
                    )
                self._encoded[prompt] = tuple(ids)
        return [self._encoded[prompt] for prompt in prompts]

    def render(self, prompt: Prompt) -> str:
        """Return the text that the model is given for a prompt, its tokenizer's chat template applied."""
        return as_text(prompt) if self.is_plain else render(self.tokenizer, prompt, self._thinking.arguments)

    def opening(self, prompt: Prompt) -> Opening:
        """Return whether the model reasons before it responds to a prompt (:mod:`agents.models.reasoning`)."""
        return self._thinking.opening(prompt)

    @cached_property
    def tokenizer_identity(self) -> dict[str, str]:
        return tokenizer_identity(self.tokenizer, self.eos_ids)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self.tokenizer, self._size, self.eos_ids)

    @property
    def is_plain(self) -> bool:
        """Whether prompts are plain text, as with :data:`PLAIN_TEMPLATES`, which need no Jinja to be rendered."""
        return getattr(self.tokenizer, "chat_template", None) in (None, *PLAIN_TEMPLATES)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, special ones written out."""
        if self._backend is not None:
            return str(self._backend.decode(list(ids), skip_special_tokens=False))
        return str(self.tokenizer.decode(list(ids), skip_special_tokens=False, clean_up_tokenization_spaces=False))

    def check_prefix(self, prefix: str) -> None:
        """Raise a ValueError if the chat template can't continue a response's prefix."""
        if not self.is_plain:
            check_prefix(self.tokenizer, prefix, self.name)

    def stop_check(self, stop: tuple[str, ...]) -> StopCheck:
        """Return the check that tells of each row whether its response has ended."""
        if stop not in self._checks:
            self._checks[stop] = StopCheck(self.vocabulary.texts, self.decode, sorted(self.eos_ids), stop)
        return self._checks[stop]
