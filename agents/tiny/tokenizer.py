"""A tokenizer for our own prompts: few tokens for what they always say, and lossless for everything else.

Byte-level BPE over a small vocabulary, plus whole-text tokens that are matched first: every constant block of the
prompts (a game's instructions, a label such as ``"Player: "``), every tag, every coordinate ``(x, y)`` with digits 0 to
9, five or more empty cells in a row. Else every cell is a token, so that a cell of a 4 x 4 board stands in the same
place in every prompt, and every digit. A Frozen Lake prompt of 900 characters becomes about 40 tokens. The price: to
such a model the rules are a name, and no text that it could read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

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
