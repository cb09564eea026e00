"""Train a tiny language model from scratch by imitation: next-token cross entropy on the demonstrator's responses.

``recipe -> demonstrations -> tokenizer -> model``. The forward pass is packed, so lengths cost no padding outside
attention, and only the positions that predict response tokens meet the output layer.

The tokenizer is byte-level BPE over a small vocabulary, plus whole-text tokens that are matched first: every constant
block of the prompts (a game's instructions, a label such as ``"Player: "``), every tag, every coordinate ``(x, y)``
with digits 0 to 9, five or more empty cells in a row. Else every cell is a token, so that a cell of a 4 x 4 board
stands in the same place in every prompt, and every digit. A Frozen Lake prompt of 900 characters becomes about 40
tokens. The price: to such a model the rules are a name, and no text that it could read.
"""

import json
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from agents.common.files import replacing
from agents.common.progress import Progress
from agents.common.tensors import load_tensors
from agents.models.local.forward import llama_forward
from agents.models.local.forward.llama_forward import CausalAttention, Packing
from agents.models.local.loading.card import write_card, write_chat_template
from agents.tiny.data import Example, Recipe, demonstrations, legal_play, scenario_of, scenarios_of, whole_texts
from agents.tiny.demonstrator import has_demonstrator

_WARMUP = 0.05  # share of the steps
_WINDOW = 32  # batches that are sorted by length together
_PART_TOKENS = 2048  # tokens whose gradient is computed at a time: small enough for a CPU's caches
_TOKENIZER_EXAMPLES = 20_000
_REPORTS_PER_CHECKPOINT = 4  # a checkpoint every 4% of the steps


class Tokens(NamedTuple):
    """One example as token ids: prompt and response, and where the response begins."""

    ids: list[int]
    prompt_length: int


class Pretrained(NamedTuple):
    """A trained model, its tokenizer, the losses in nats per response token of every 1% of the steps, the seconds."""

    model: Any
    tokenizer: Any
    recipe: Recipe
    losses: tuple[float, ...]
    seconds: float


def pretrain(
    recipe: Recipe,
    *,
    examples: Sequence[Example] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    checkpoint: Path | None = None,
) -> Pretrained:
    """Make a tiny model (a ``LlamaForCausalLM`` in evaluation mode). Deterministic, interrupted or not.

    ``examples`` stand in for the recipe's own demonstrations; ``on_progress`` is called after every 1% of the steps. By
    the file ``checkpoint`` the same call resumes a stopped training; a ValueError if it is of another recipe.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(recipe.threads)
    try:
        started = time.perf_counter()
        examples = demonstrate(recipe) if examples is None else examples
        tokenizer = make_tokenizer(examples)
        data = tokenize(examples, tokenizer)
        model = make_model(recipe, tokenizer)
        losses, earlier = _train(model, data, recipe, on_progress, checkpoint)
        return Pretrained(model.eval(), tokenizer, recipe, losses, earlier + time.perf_counter() - started)
    finally:
        torch.set_num_threads(threads)


def save(made: Pretrained, folder: str | Path) -> Path:
    """Save a model in Hugging Face format with its recipe."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made.model.save_pretrained(folder)
    made.tokenizer.save_pretrained(folder)
    settings = folder / "tokenizer_config.json"  # with a class name that all versions of transformers know
    named = json.loads(settings.read_text()) | {"tokenizer_class": "PreTrainedTokenizerFast"}
    settings.write_text(json.dumps(named, indent=2) + "\n")
    write_card(folder, modes=made.recipe.modes, texts=made.recipe.texts)
    write_chat_template(folder, made.tokenizer)
    for weights in folder.glob("*.safetensors"):
        weights.chmod(0o644)  # written for the owner alone, but a package's files are for everyone
    recipe = {"recipe": made.recipe.as_data, "losses": [round(loss, 4) for loss in made.losses]}
    (folder / "recipe.json").write_text(json.dumps(recipe, indent=1) + "\n")
    return folder


def demonstrate(recipe: Recipe) -> list[Example]:
    """Return the recipe's demonstrations, scenario by scenario."""
    examples: list[Example] = []
    for index, (name, share) in enumerate(scenarios_of(recipe.games).items()):
        count = max(1, round(share * recipe.examples))
        rng = np.random.default_rng([recipe.seed, 1, index])
        scenario = scenario_of(name)
        if has_demonstrator(scenario.game()):
            examples += demonstrations(
                *(scenario, count, recipe.style, rng),
                modes=recipe.modes,
                foresight=recipe.foresight,
                texts=recipe.texts,
            )
        elif "think" in recipe.modes:
            raise ValueError(f"{name} is demonstrated by random legal moves, without reasoning: set modes to direct")
        else:
            examples += legal_play(scenario, count, rng, texts=recipe.texts)
    return examples


def make_tokenizer(examples: Sequence[Example]) -> Any:
    """Build the tokenizer from an even sample of these examples."""
    sample = examples[:: max(1, len(examples) // _TOKENIZER_EXAMPLES)]
    known = [example for example in sample if example.fixed]
    blocks = constant_blocks((one.frame[0], one.observation, one.frame[1]) for one in sample if not one.fixed)
    words = [example.observation if example.fixed else example.response for example in sample]
    return build_tokenizer([*blocks, *whole_texts(known)], words)


def tokenize(examples: Sequence[Example], tokenizer: Any) -> list[Tokens]:
    """Encode prompts and responses, each response with the end-of-sequence token after it."""
    data = []
    for begin in range(0, len(examples), 4096):
        part = examples[begin : begin + 4096]
        prompts = tokenizer([example.prompt for example in part])["input_ids"]
        responses = tokenizer([example.response for example in part])["input_ids"]
        for prompt, response in zip(prompts, responses, strict=True):
            data.append(Tokens([*prompt, *response, tokenizer.eos_token_id], len(prompt)))
    return data


def make_model(recipe: Recipe, tokenizer: Any) -> Any:
    """Return the untrained model: Llama, tied embeddings, weights from the recipe's seed."""
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=math.ceil(len(tokenizer) / 8) * 8,
        hidden_size=recipe.hidden_size,
        intermediate_size=recipe.intermediate_size,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.heads,
        num_key_value_heads=recipe.kv_heads,
        max_position_embeddings=recipe.context_length,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=1 / math.sqrt(recipe.hidden_size),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        return LlamaForCausalLM(config)


def imitation_loss(model: Any, batch: Sequence[Tokens]) -> Tensor:
    """Sum the cross entropy in nats over the batch's response tokens; a scalar."""
    weights = llama_forward.read_weights(model)
    packing = Packing([len(example.ids) for example in batch], torch.device("cpu"))
    ids = torch.tensor([token for example in batch for token in example.ids])
    hidden = llama_forward.hidden_states(weights, ids, packing.positions, CausalAttention(packing))
    # position t predicts token t + 1: from the prompt's last token to the one before the end
    prompt_lengths = torch.tensor([example.prompt_length for example in batch])[packing.row]
    predicts = (packing.column >= prompt_lengths - 1) & (packing.column < packing.lengths[packing.row] - 1)
    where = predicts.nonzero()[:, 0]
    return F.cross_entropy(llama_forward.logits(weights, hidden[where]), ids[where + 1], reduction="sum")


def _parts(batch: Sequence[Tokens]) -> Iterator[list[Tokens]]:
    """Yield a batch in parts of about :data:`_PART_TOKENS` tokens, similar lengths together."""
    part: list[Tokens] = []
    size = 0
    for example in sorted(batch, key=lambda example: len(example.ids)):
        if part and size + len(example.ids) > _PART_TOKENS:
            yield part
            part, size = [], 0
        part.append(example)
        size += len(example.ids)
    yield part


def _batches(data: Sequence[Tokens], recipe: Recipe) -> Iterator[list[Tokens]]:
    """Yield endless shuffled batches; neighbours in length come together, so that attention's padding stays small."""
    rng = np.random.default_rng([recipe.seed, 2])
    size = recipe.batch_size
    while True:
        order = rng.permutation(len(data))
        for begin in range(0, len(order), _WINDOW * size):
            window = sorted(order[begin : begin + _WINDOW * size], key=lambda index: len(data[index].ids))
            starts = range(0, len(window), size)
            for start in rng.permutation(len(starts)):
                yield [data[index] for index in window[starts[start] : starts[start] + size]]


def _train(
    model: Any,
    data: Sequence[Tokens],
    recipe: Recipe,
    on_progress: Callable[[Progress], None] | None,
    checkpoint: Path | None,
) -> tuple[tuple[float, ...], float]:
    """Train in place; return the losses, and the seconds that earlier parts of this training took."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98), fused=True)
    warmup = max(1, round(_WARMUP * recipe.steps))

    def rate(step: int) -> float:
        """Return the share of the highest learning rate: linear warm-up, then half a cosine down to 0."""
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, recipe.steps - warmup)))

    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    trained = {"model": model, "optimizer": optimizer, "schedule": schedule}
    done, losses, earlier = _restore(checkpoint, recipe, trained)
    model.train()
    report_every = max(1, recipe.steps // 100)
    started, recent = time.perf_counter(), 0.0
    for step, batch in enumerate(islice(_batches(data, recipe), done, recipe.steps), done + 1):
        predicted = sum(len(example.ids) - example.prompt_length for example in batch)
        for part in _parts(batch):
            loss = imitation_loss(model, part) / predicted
            loss.backward()  # type: ignore[no-untyped-call]
            recent += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        schedule.step()
        if step % report_every == 0:
            losses.append(recent / report_every)
            recent = 0.0
            seconds = earlier + time.perf_counter() - started
            if checkpoint is not None and step % (_REPORTS_PER_CHECKPOINT * report_every) == 0:
                state = {name: part.state_dict() for name, part in trained.items()}
                state |= {"recipe": json.dumps(recipe.as_data), "step": step, "losses": losses, "seconds": seconds}
                with replacing(checkpoint, "wb") as stream:
                    torch.save(state, stream)
            if on_progress is not None:
                on_progress(Progress(step, recipe.steps, losses[-1], seconds))
    if checkpoint is not None:
        checkpoint.unlink(missing_ok=True)
    return tuple(losses), earlier


def _restore(file: Path | None, recipe: Recipe, trained: dict[str, Any]) -> tuple[int, list[float], float]:
    """Load the checkpoint, if there is one, into the parts; return its steps, losses and seconds."""
    if file is None or not file.exists():
        return 0, [], 0.0
    try:
        state = load_tensors(file)
        made_by = state["recipe"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{file} is no checkpoint of a tiny model ({error}); delete it to begin anew") from error
    if made_by != json.dumps(recipe.as_data):
        raise ValueError(f"{file} is a checkpoint of another recipe, {made_by}; delete it to begin anew")
    for name, part in trained.items():
        part.load_state_dict(state[name])
    return state["step"], state["losses"], state["seconds"]


END, PAD = "<|endoftext|>", "<|pad|>"
TAGS = tuple(f"<{slash}{name}>" for name in ("think", "plan", "action") for slash in ("", "/"))
_COORDINATES = tuple(f"({x}, {y})" for y in range(10) for x in range(10))
_EMPTY_RUNS = tuple(text for length in range(5, 11) for text in ("\n" + " ".join("_" * length), " _" * length))
_GRID_KEY = re.compile(r"\nGrid \(.*\):(?=\n)")
_VARIABLE = re.compile(r"(\(\d+, \d+\)|, |none|\n[A-Z\d_](?: [A-Z\d_])+(?=\n|$))")
_RARE = 0.002  # a piece of observation in fewer prompts than this share isn't worth a token


def constant_blocks(prompts: Iterable[tuple[Sequence[str], str, Sequence[str]]]) -> list[str]:
    """Return the texts that prompts ``(before, observation, after)`` always repeat, in order of first appearance."""
    frames: dict[str, None] = {}
    labels: Counter[str] = Counter()
    count = 0
    for before, observation, after in prompts:
        header, line_end, rest = observation.partition("\n")
        key = _GRID_KEY.findall(rest)
        frames |= dict.fromkeys((*before, header + line_end, *after, *key))
        # not a set: its order differs from process to process, and with it the ids of tokens
        labels.update(list(dict.fromkeys(_VARIABLE.split(_GRID_KEY.sub("", rest)))))
        count += 1
    pieces = [piece for piece, seen in labels.items() if seen >= _RARE * count and not _VARIABLE.fullmatch(piece)]
    return [piece for piece in (*frames, *pieces) if len(piece) > 1]


def build_tokenizer(blocks: Sequence[str], responses: Sequence[str]) -> Any:
    """Build the tokenizer, with at most 400 BPE tokens, from :func:`constant_blocks` and the words of responses."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    # the words as the BPE model meets them: what stands between whole-text tokens
    words = "\n".join(re.sub(r"</?\w+>|[;,] ", "\n", text) for text in responses)
    cells = " _ P O G T A B F\n" * 1000  # every cell's mark with its space is one token
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        special_tokens=[END, PAD],
        show_progress=False,
        min_frequency=2,
    )
    tokenizer.train_from_iterator([words, cells], trainer)
    whole = [*TAGS, ", ", "; ", "none", *_COORDINATES, *_EMPTY_RUNS, *blocks]
    tokenizer.add_tokens([AddedToken(text, normalized=False, special=False) for text in dict.fromkeys(whole)])
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, clean_up_tokenization_spaces=False
    )
