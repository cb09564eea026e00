"""Models run by vLLM in this process: fast sampling on a GPU. Needs the extra ``textbench[vllm]``.

A vLLM *server* is asked by :mod:`agents.models.openai`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from agents.models import hf
from agents.models.answers import NEVER_CLOSED, UNLIMITED, LegalAnswers, Vocabulary, sets_of
from agents.models.base import CLOSE_TAG, Decoding, NotLoaded, seed_number
from agents.models.local.loading.adapters import tokenizer_identity, weights_identity
from agents.models.local.loading.card import read_card
from agents.models.local.templates import Thinking, check_prefix, render
from agents.models.provider import Provider
from agents.models.reasoning import Begun, Opening, behind_reasoning, end_of_response
from agents.prompt import as_text
from agents.turn import Prompt, Turn, Usage, prefix_of
from textgames.extras import install_command, missing_packages
from textgames.texts.actions import behind_thoughts

_BUDGET = "thinking_token_budget"


class VLLMModel:
    """A :class:`~agents.models.base.LanguageModel` over ``vllm.LLM``; a ValueError for an option that can't be held.

    Args:
        path_or_repo: a folder in Hugging Face format or a repository.
        chat: render prompts with the tokenizer's chat template; ``None`` does it if there is one. Without, a prompt
            is its messages' contents joined by blank lines.
        chat_template_kwargs: arguments of the chat template, such as ``{"enable_thinking": False}``.
        thinking_budget: the most tokens of a model's own reasoning (:mod:`agents.models.reasoning`), which vLLM then
            closes if ``engine`` has its ``reasoning_config``. The limit of a response is beside it.
        engine: arguments of ``vllm.LLM``: ``tensor_parallel_size``, ``gpu_memory_utilization``, ``max_model_len`` ...

    Log-probabilities are those of the distribution that was sampled from (``processed_logprobs``). Every row has its
    own seed; vLLM's kernels round differently in batches of different sizes, so equal seeds give equal responses on one
    machine with one batch size only.

    vLLM looks for stop strings in reasoning, too. A model that reasons is sent none, and its responses end here; a
    response that is stopped in a ``<think>`` that the prompt asks for is continued.
    """

    def __init__(
        self,
        path_or_repo: str,
        *,
        chat: bool | None = None,
        engine: Mapping[str, Any] | None = None,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        thinking_budget: int | None = None,
    ) -> None:
        check(path_or_repo)
        import vllm

        self._vllm = vllm
        self.name = path_or_repo
        settings = {"logprobs_mode": "processed_logprobs", **_of_platform(), **(engine or {})}
        self._identity = weights_identity(path_or_repo, commit=settings.get("revision"))
        self.llm = vllm.LLM(model=path_or_repo, **settings)
        self._tokenizer = self.llm.get_tokenizer()
        self._chat = getattr(self._tokenizer, "chat_template", None) is not None if chat is None else chat
        self._thinking = Thinking(self._tokenizer, chat_template_kwargs, thinking_budget, self.name)
        if thinking_budget is not None and not hasattr(vllm.SamplingParams, _BUDGET):
            raise ValueError(
                f"thinking_budget needs a newer vLLM: {vllm.__version__} has no {_BUDGET}; hf: has budgets"
            )
        end = getattr(self._tokenizer, "eos_token_id", None)
        self._identity |= tokenizer_identity(self._tokenizer, [] if end is None else [end])

    @property
    def settings(self) -> dict[str, Any]:
        about = {"kind": "vllm", "name": self.name, "version": str(self._vllm.__version__), "chat": self._chat}
        return {**about, **self._identity, **self._thinking.settings}

    def why_unconstrained(self, reasons: bool) -> str | None:
        return NEVER_CLOSED if reasons else None

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of(self._tokenizer, len(self._tokenizer), [self._tokenizer.eos_token_id])

    def generate(
        self,
        prompts: Sequence[Prompt],
        decoding: Decoding,
        seeds: Sequence[tuple[int, ...]],
        answers: Sequence[LegalAnswers | None] | None = None,
    ) -> list[Turn]:
        """Answer every prompt with a completion, in order; the engine batches them itself."""
        if not prompts:
            return []
        openings = [self._thinking.opening(prompt) if self._chat else "none" for prompt in prompts]
        begun = [Begun(prefix_of(prompt), opening) for prompt, opening in zip(prompts, openings, strict=True)]
        legal = list(answers or [None] * len(prompts))
        fields = []
        for seed, own, each in zip(seeds, begun, legal, strict=True):
            asked = sampling_fields(decoding, seed, own.opening, self._thinking.budget)
            if each is not None:
                asked["structured_outputs"] = self._vllm.sampling_params.StructuredOutputsParams(choice=each.endings())
            fields.append(asked)
        done = self._completed([self._encode(prompt) for prompt in prompts], fields)
        while going := [row for row, one in enumerate(done) if tokens_left(one, decoding, begun[row]) > 0]:
            parts = [going_on(done[row], decoding, seeds[row], begun[row]) for row in going]
            for row, more in zip(going, self._completed(*zip(*parts, strict=True)), strict=True):
                done[row] = joined(done[row], more, decoding.stop, begun[row], self._decode)
        return [
            held_to(behind_reasoning(one, own.opening, decoding.stop, self._decode), each, lambda: self.vocabulary)
            for one, own, each in zip(done, begun, legal, strict=True)
        ]

    def _completed(self, prompts: Sequence[Sequence[int]], fields: Sequence[Mapping[str, Any]]) -> list[Turn]:
        started = perf_counter()
        inputs = [{"prompt_token_ids": list(ids)} for ids in prompts]
        outputs = self.llm.generate(inputs, [self._vllm.SamplingParams(**asked) for asked in fields], use_tqdm=False)
        seconds = perf_counter() - started
        return [_completion(output, seconds) for output in outputs]

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=False))

    def check_prefix(self, prefix: str) -> None:
        if self._chat:
            check_prefix(self._tokenizer, prefix, self.name)

    def _encode(self, prompt: Prompt) -> Sequence[int]:
        encode: Callable[..., Sequence[int]] = self._tokenizer.encode
        if not self._chat:
            return encode(as_text(prompt))
        text = render(self._tokenizer, prompt, self._thinking.arguments)
        return encode(text, add_special_tokens=False)  # the template has written them


def _of_platform() -> dict[str, Any]:
    try:
        from vllm.platforms import current_platform
    except ImportError:
        return {}
    # vLLM 0.32 on a CPU asks the generator of a prompt's seed for a GPU's method if the prompt is read in parts
    return {"enable_chunked_prefill": False} if current_platform.is_cpu() else {}


def sampling_fields(
    decoding: Decoding, seed: tuple[int, ...], opening: Opening = "none", budget: int | None = None
) -> dict[str, Any]:
    """Return vLLM's sampling parameters of one response, for the engine in this process and for its servers alike."""
    budget = None if opening == "none" else budget
    return {
        **({} if budget is None else {_BUDGET: budget}),
        "temperature": decoding.temperature,
        "top_p": decoding.top_p,
        "max_tokens": decoding.max_tokens + (budget or 0),
        "stop": list(decoding.stop) if opening == "none" else [],
        "include_stop_str_in_output": True,
        "skip_special_tokens": False,  # the text has every sampled token, as of models in this process
        "spaces_between_special_tokens": False,
        "seed": seed_number(seed),
        "logprobs": 0,  # that of the sampled token, and no alternatives
    }


def tokens_left(completion: Turn, decoding: Decoding, begun: Begun) -> int:
    """Return how many more tokens a response may take that vLLM has stopped in a ``<think>``; 0 for any other."""
    stopped = completion.finish_reason == "stop" and completion.response.endswith(decoding.stop)
    if begun.opening != "none" or not stopped or behind_thoughts(begun.text + completion.response) is not None:
        return 0
    return decoding.max_tokens - len(completion.response_ids or ())


def going_on(
    completion: Turn, decoding: Decoding, seed: tuple[int, ...], begun: Begun
) -> tuple[tuple[int, ...], dict[str, Any]]:
    """Return token ids and sampling parameters by which such a response continues, with draws of its own."""
    ids = completion.response_ids or ()
    rest = replace(decoding, max_tokens=tokens_left(completion, decoding, begun))
    return (*(completion.prompt_ids or ()), *ids), sampling_fields(rest, (*seed, len(ids)))


def joined(first: Turn, more: Turn, stops: Sequence[str], begun: Begun, decode: Callable[[Sequence[int]], str]) -> Turn:
    """Return such a response and its continuation as one."""
    if more.error is not None:
        return more
    begin, rest = first.response_ids or (), more.response_ids or ()
    text = decode(begin) + more.response
    logprobs = None if first.logprobs is None or more.logprobs is None else first.logprobs + more.logprobs
    later = (span._replace(start=span.start + len(begin), stop=span.stop + len(begin)) for span in more.weights)
    return replace(
        more,
        prompt_ids=first.prompt_ids,
        response=text[: end_of_response(text, stops, begun.text)],
        response_ids=begin + rest,
        logprobs=logprobs,
        usage=first.usage._replace(completion_tokens=len(begin) + len(rest)),
        seconds=first.seconds + more.seconds,
        weights=(*first.weights, *later),
    )


def held_to(completion: Turn, answers: LegalAnswers | None, vocabulary: Callable[[], Vocabulary]) -> Turn:
    """Return a completion with the tokens that vLLM allowed at each of its own, which are those of our rules."""
    if answers is None or completion.response_ids is None:
        return completion
    try:
        if not (said := completion.response).endswith(CLOSE_TAG):
            raise ValueError(
                f"its response {said!r} isn't a whole one: max_tokens may be too low, or it reasons by itself"
            )
        rules = vocabulary().rules(answers)
        return replace(completion, allowed=sets_of(rules, completion.response_ids, UNLIMITED))
    except ValueError as error:
        return Turn("", finish_reason="error", error=f"vLLM was held to legal answers: {error}")


def cut_off(finish_reason: str | None) -> str | None:
    """Return the error of a response that neither stopped nor reached its limit, as one aborted with the engine."""
    if finish_reason in ("stop", "length"):
        return None
    return f"vLLM ended the response with finish_reason {finish_reason!r}"


def _completion(output: Any, seconds: float) -> Turn:
    best = output.outputs[0]
    if (message := cut_off(best.finish_reason)) is not None:
        return Turn("", finish_reason="error", seconds=seconds, error=message)
    token_ids, prompt_ids = tuple(best.token_ids), tuple(output.prompt_token_ids)
    logprobs = None
    if best.logprobs is not None:
        logprobs = tuple(step[token].logprob for step, token in zip(best.logprobs, token_ids, strict=True))
    return Turn(
        response=best.text,
        prompt_ids=prompt_ids,
        response_ids=token_ids,
        logprobs=logprobs,
        finish_reason=best.finish_reason,
        usage=Usage(len(prompt_ids), len(token_ids)),
        seconds=seconds,
    )


def check(path_or_repo: str, **options: Any) -> NotLoaded:
    """Raise a ModuleNotFoundError with the command if there is no vLLM, before an engine is started."""
    if find_spec("vllm") is None:
        raise ModuleNotFoundError(
            f"vllm:{path_or_repo} needs vLLM, which isn't installed: {install_command('vllm')} (Linux with a GPU). "
            f"Without one, hf:{path_or_repo} runs the same model through transformers",
            name="vllm",
        )
    return NotLoaded(path_or_repo, lambda reasons: NEVER_CLOSED if reasons else None)


PROVIDER = Provider(
    VLLMModel,
    description="a model in a vLLM engine, on a GPU",
    example="Qwen/Qwen2.5-3B-Instruct",
    takes="PATH_OR_REPO",
    missing=lambda: missing_packages("vllm", extra="vllm"),
    check=check,
    card=read_card,
    fetches=hf.fetches,
)
