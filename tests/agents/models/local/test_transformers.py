"""The local model player against transformers' own forward and generate, on small random models."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.models.base import Decoding, LanguageModel
from agents.models.local.decoding import lean_decoder
from agents.models.local.decoding.generic_decoder import GenericDecoder
from agents.models.local.decoding.lean_decoder import LeanDecoder, fingerprint
from agents.models.local.decoding.sampler import StopCheck, choose, inverse_cumulative
from agents.models.local.forward import llama_forward
from agents.models.local.transformers import TransformersModel
from agents.policy import LanguageAgentPolicy
from agents.prompt import PromptMap
from agents.turn import Message, Prompt
from tests.agents.models.local.hybrids import PLAYABLE, make_hybrid
from tests.tiny_models import byte_level_bpe

transformers = pytest.importorskip("transformers")

TEXT = [f"You are at ({x}, {y}). <think>go {way}</think><action>{way}</action>" for x in range(9) for y, way in
        enumerate(("left", "right", "up", "down"))]  # fmt: skip
SHAPE = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "max_position_embeddings": 160}
SHAPE |= {"num_attention_heads": 4, "num_key_value_heads": 2}


def make_tokenizer(*, pad: bool = True) -> Any:
    tokenizer = byte_level_bpe(TEXT, 300, ["<eos>", "<pad>", "<user>", "<bot>"])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token="<eos>", pad_token="<pad>" if pad else None
    )


def make_model(kind: str, tokenizer: Any, *, seed: int = 0) -> Any:
    rope = {"rope_type": "llama3", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 64}
    rope |= {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
    name, own = {
        "llama": ("Llama", SHAPE),
        "tied": ("Llama", {**SHAPE, "tie_word_embeddings": True}),
        "qwen2": ("Qwen2", SHAPE),
        "qwen3": ("Qwen3", {**SHAPE, "head_dim": 16}),
        "llama3-rope": ("Llama", {**SHAPE, "rope_scaling": rope}),
        "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 160}),
        "sliding": ("Mistral", {**SHAPE, "sliding_window": 8}),
    }[kind]
    tokens = {"eos_token_id": tokenizer.eos_token_id, "bos_token_id": None, "pad_token_id": tokenizer.pad_token_id}
    torch.manual_seed(seed)
    config = getattr(transformers, f"{name}Config")(vocab_size=len(tokenizer), **tokens, **own, initializer_range=0.3)
    model = transformers.AutoModelForCausalLM.from_config(config)
    with torch.no_grad():  # biases start at zero; then a forgotten one would not show
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.3)
    return model.eval()


def with_adapters(kind: str, tokenizer: Any, *, names: tuple[str, ...] = ("default",)) -> Any:
    peft = pytest.importorskip("peft")
    model = make_model(kind, tokenizer)
    settings = [peft.LoraConfig(r=2 + n, lora_alpha=3, target_modules="all-linear") for n in range(len(names))]
    model = peft.get_peft_model(model, settings[0], adapter_name=names[0])
    for name, setting in zip(names[1:], settings[1:], strict=True):
        model.add_adapter(name, setting)
    model.base_model.set_adapter(list(names))
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


LEAN = ["llama", "tied", "qwen2", "qwen3", "llama3-rope"]
GENERIC = ["gpt2", "sliding"]


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


def prompts_of(*texts: str) -> list[Prompt]:
    return [(Message("user", text),) for text in texts]


# peft asks transformers for a property under its old name
OLD_NAME = pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing.*:FutureWarning")
ON_A_GPU = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")]
PROMPTS = prompts_of(TEXT[0], TEXT[1], "You are", "x" * 40, TEXT[1], TEXT[7] + TEXT[9])


def next_logits(model: Any, *rows: Sequence[int]) -> torch.Tensor:
    """Logits after each row's last token, by the model's own forward; of one row, without the dimension of rows."""
    with torch.no_grad():
        found = [model(input_ids=torch.tensor([list(ids)], device=model.device)).logits[0, -1] for ids in rows]
    return torch.stack(found) if len(found) > 1 else found[0]


def close(got: torch.Tensor, wanted: torch.Tensor, tolerance: float = 1e-4) -> None:
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)


# ------------------------------------------------------------------ the lean forward pass


@OLD_NAME
@pytest.mark.parametrize(
    ("kind", "fuse", "make"),
    [
        *((kind, True, make_model) for kind in LEAN),
        ("qwen2", False, make_model),
        ("tied", True, with_adapters),
        ("qwen2", False, with_adapters),
    ],
)
def test_packed_forward_and_its_gradient_equal_the_models_own(kind, fuse, make, tokenizer):
    model = make(kind, tokenizer)
    sequences = [tuple(tokenizer(text)["input_ids"]) for text in (TEXT[0], "left", TEXT[5] * 2)]
    generator = torch.Generator().manual_seed(3)
    weigh = [torch.randn(len(ids), len(tokenizer), generator=generator) for ids in sequences]

    weights = llama_forward.read_weights(model, fuse=fuse)
    assert [len(layer.qkv) for layer in weights.layers] == [1 if fuse else 3] * 2
    ids = torch.tensor([token for one in sequences for token in one])
    packing = llama_forward.Packing([len(sequence) for sequence in sequences], ids.device)
    attend = llama_forward.CausalAttention(packing)
    ours = llama_forward.logits(weights, llama_forward.hidden_states(weights, ids, packing.positions, attend))
    (ours * torch.cat(weigh)).sum().backward()
    our_gradients = {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}
    model.zero_grad()
    theirs = torch.cat([model(input_ids=torch.tensor([ids])).logits[0] for ids in sequences])
    (theirs * torch.cat(weigh)).sum().backward()

    assert packing.lengths.tolist() == [len(ids) for ids in sequences]
    close(ours, theirs)
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert our_gradients.keys() == gradients.keys()
    for name, gradient in gradients.items():
        scale = gradient.abs().max()
        torch.testing.assert_close(our_gradients[name] / scale, gradient / scale, rtol=0, atol=5e-5, msg=name)


# ------------------------------------------------------------------ decoders


@pytest.mark.parametrize(
    ("kind", "kept"), [*((kind, False) for kind in LEAN + GENERIC), ("llama", True), ("qwen3", True)]
)
def test_decoders_give_the_models_own_logits_at_every_step(kind, kept, tokenizer, monkeypatch):
    monkeypatch.setattr(lean_decoder, "_KEEP_FROM", 0 if kept else 10**12)
    model = make_model(kind, tokenizer)
    decoder = TransformersModel(model, tokenizer).decoder
    assert type(decoder) is (GenericDecoder if kind in GENERIC else LeanDecoder)
    rng = np.random.default_rng(0)
    shared = rng.integers(len(tokenizer), size=6).tolist()
    for shared_tokens in (shared, []):
        prompts = [tuple(shared_tokens + rng.integers(len(tokenizer), size=n).tolist()) for n in (5, 1, 17, 9)]
        rows = [2, 0, 1, 2, 3, 0]
        grown = [list(prompts[row]) for row in rows]
        with torch.no_grad():
            batch, logits = decoder.start(prompts, rows)
            for step in range(40):
                if step % 13 == 0:
                    wanted = next_logits(model, *grown)
                    close(logits, wanted, 1e-3)
                if step == 20:  # rows leave, the others in another order
                    batch.keep(torch.tensor([4, 1, 0]))
                    grown = [grown[4], grown[1], grown[0]]
                tokens = rng.integers(len(tokenizer), size=len(grown))
                grown = [[*ids, token] for ids, token in zip(grown, tokens.tolist(), strict=True)]
                logits = batch.step(torch.from_numpy(tokens))


def test_shared_tokens_and_equal_prompts_are_computed_once(tokenizer):
    decoder = LeanDecoder(make_model("llama", tokenizer))
    instructions = tuple(range(50))
    with torch.no_grad():
        decoder.start([(*instructions, 1, 2), (*instructions, 3)], [0, 1, 1, 0, 0])
        assert decoder.prefill_tokens == 50 + 2 + 1
        decoder.start([(*instructions, 4), (*instructions, 5, 5, 5)], [0, 1])
        assert decoder.prefill_tokens == 53 + 1 + 3  # the shared tokens were kept
        decoder.start([(*instructions[:20], 9)], [0])
        assert decoder.prefill_tokens == 57 + 1


@pytest.mark.parametrize(("change", "kept"), [("optimizer", False), ("load", True), ("data", False)])
def test_what_is_kept_between_calls_is_dropped_when_the_weights_change(change, kept, tokenizer, monkeypatch):
    monkeypatch.setattr(lean_decoder, "_KEEP_FROM", 0 if kept else 10**12)
    model = make_model("llama", tokenizer)
    decoder = LeanDecoder(model)
    prompt = tuple(range(30))
    with torch.no_grad():
        decoder.start([prompt], [0])
        before = fingerprint(model)
        decoder.start([prompt], [0])
        assert fingerprint(model) == before
    if change == "optimizer":
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        model(input_ids=torch.tensor([prompt])).logits.square().mean().backward()
        optimizer.step()
    elif change == "load":
        model.load_state_dict(make_model("llama", tokenizer, seed=1).state_dict())
    else:
        model.model.layers[0].self_attn.k_proj.weight.data.mul_(1.5)
    with torch.no_grad():
        close(decoder.start([prompt], [0])[1][0], next_logits(model, prompt))


def test_tokens_are_drawn_with_their_probabilities():
    logits = torch.tensor([[1.0, 0.0, -1.0, 2.0, -30.0]])
    count = 20_000
    uniform = (torch.arange(count, dtype=torch.float64) + 0.5) / count  # a grid: frequencies are exact to 1 / count
    for temperature in (0.0, 0.5, 1.25):
        tokens, logprobs = choose(logits.expand(count, -1), Decoding(temperature=temperature), uniform)
        scores = (logits[0] / (temperature or 1.0)).log_softmax(-1)
        wanted = scores.exp() if temperature else torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0])
        got = torch.bincount(tokens, minlength=5) / count
        torch.testing.assert_close(got, wanted, rtol=0, atol=2 / count)
        torch.testing.assert_close(logprobs, scores[tokens])


@pytest.mark.parametrize("size", [1024, 2001])
def test_drawing_by_blocks_equals_summing_up_the_whole_vocabulary(size):
    rng = torch.Generator().manual_seed(size)
    weights = (torch.randn(500, size, generator=rng) * 4).softmax(-1)
    weights[:, ::3] = 0.0  # what top-p and masks leave out
    weights[:50, 128:] = 0.0
    uniform = torch.rand(500, generator=rng, dtype=torch.float64)
    uniform[:3] = torch.tensor([0.0, 1e-18, 1 - 2**-53])
    cumulative = weights.cumsum(-1, dtype=torch.float64)
    wanted = torch.searchsorted(cumulative, uniform[:, None] * cumulative[:, -1:], right=True)[:, 0]
    got = inverse_cumulative(weights, uniform)
    assert got[0] == wanted[0]
    assert (got == wanted)[3:].all()  # between them the last bit of a sum decides
    assert (weights.gather(1, got[:, None]) > 0).all()


class WatchedRecorder:
    """In place of a GPU's: a replay reads and writes the very memory that the recording did, or it is wrong."""

    last: Any = None

    def record(self, compute: Any, tokens: torch.Tensor) -> Any:
        before = self.places(compute.__self__)

        def replay(tokens: torch.Tensor) -> torch.Tensor:
            assert self.places(compute.__self__) == before
            return compute(tokens)

        self.last = replay
        return replay

    def places(self, batch: Any) -> list[int]:
        kept = [batch.bias, batch.positions, batch.column, *sum([*batch.caches, *batch.prefix], ())]
        return [tensor.data_ptr() for tensor in kept]


@pytest.mark.parametrize(
    ("device", "dtype"),
    [("cpu", torch.float32), ("cpu", torch.bfloat16), pytest.param("cuda", torch.bfloat16, marks=ON_A_GPU)],
)
def test_recorded_steps_and_half_precision_take_whole_caches_and_hide_what_is_empty(device, dtype, tokenizer):
    """Rows grow, leave and are of unequal length; what a recorded step reads stays where it is."""
    model = make_model("llama", tokenizer).to(dtype)
    plain, whole = LeanDecoder(deepcopy(model).float()), LeanDecoder(model.to(device))
    whole.recorder = recorder = whole.recorder or (WatchedRecorder() if dtype == torch.float32 else None)  # type: ignore
    rng = np.random.default_rng(0)
    prompts = [(7, 8, 9, *rng.integers(len(tokenizer), size=n).tolist()) for n in (5, 30, 17)]
    made = []
    with torch.no_grad():
        (batch, logits), (other, wanted) = whole.start(prompts, [0, 1, 2, 1]), plain.start(prompts, [0, 1, 2, 1])
        assert batch.whole
        assert not other.whole
        for step in range(60):
            tolerance = 1e-4 if dtype == torch.float32 else 0.1
            assert (logits.cpu() - wanted).abs().max() < tolerance * wanted.abs().max()
            if step == 20:
                for each in (batch, other):
                    each.keep(torch.tensor([3, 0], device=each.positions.device))
            tokens = torch.from_numpy(rng.integers(len(tokenizer), size=4 if step < 20 else 2))
            logits, wanted = batch.step(tokens.to(device)), other.step(tokens)
            made += [batch._recorded] if batch._recorded not in made else []
        if recorder is not None:
            # None until an action's name is over in 4 steps; anew when rows had left, and when they had grown
            assert len(made) == 1 + 3
            batches = [whole.start([(1, 2, 3)], [0])[0] for _ in range(2)]
            for step in range(8):  # all recordings share their memory, so that only the last one is sound
                for each in batches:
                    each.step(torch.tensor([step], device=device))
                    made.append(each._recorded)
            assert len({*made}) == 1 + 3 + 2 * 4


def stop_check(tokenizer: Any, stop: tuple[str, ...] = ("</action>",)) -> StopCheck:
    return TransformersModel(make_model("llama", tokenizer), tokenizer).stop_check(stop)


def first_end(check: StopCheck, ids: Sequence[int]) -> int | None:
    table = np.array([ids], np.int64)
    return next((n for n in range(1, len(ids) + 1) if check.ended(table, np.array([0]), n)[0]), None)


def test_a_stop_string_is_found_however_it_is_split(tokenizer):
    check = stop_check(tokenizer)
    text = "a > b <action>up</action"
    for pieces in (["</action>"], list("</action>"), ["</", "act", "ion>"]):
        ids = list(tokenizer(text.removesuffix("</action"))["input_ids"])
        ids += [token for piece in pieces for token in tokenizer(piece)["input_ids"]]
        assert first_end(check, ids) == len(ids)
    assert first_end(check, tokenizer(text)["input_ids"]) is None
    assert first_end(check, [5, tokenizer.eos_token_id]) == 2


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.text("</>aciton x", min_size=1, max_size=7), min_size=1, max_size=12),
    st.sampled_from(["</action>", "a", "aa", "tion", "<a<a>"]),
)
def test_the_table_of_tokens_never_hides_a_stop_string(pieces, stop):
    check = StopCheck([each.encode() for each in pieces], lambda ids: "".join(pieces[i] for i in ids), [], (stop,))
    text = ["".join(pieces[: n + 1]) for n in range(len(pieces))]
    wanted = next((n + 1 for n, so_far in enumerate(text) if stop in so_far), None)
    assert first_end(check, range(len(pieces))) == wanted


def test_only_tokens_that_can_end_a_stop_string_are_looked_at(tokenizer):
    check = stop_check(tokenizer)
    assert 0 < check.may_end.sum() < 10
    assert check.may_end[tokenizer("</action>")["input_ids"][-1]]
    assert first_end(stop_check(tokenizer, ("né",)), tokenizer("xxné")["input_ids"]) is not None


# ------------------------------------------------------------------ the player


@pytest.mark.parametrize(("kind", "pad"), [("llama", True), ("gpt2", False), *((kind, True) for kind in PLAYABLE)])
def test_sampled_log_probabilities_are_the_models(kind, pad):
    """Also in a batch whose rows end at different times, and leave it."""
    tokenizer = make_tokenizer(pad=pad)
    inner = make_hybrid(kind, len(tokenizer)) if kind in PLAYABLE else make_model(kind, tokenizer)
    model = TransformersModel(inner.train(), tokenizer)
    assert isinstance(model, LanguageModel)
    model.check()
    decoding = Decoding(temperature=1.25, max_tokens=24, stop=("</action>", "a", "e", "1 "))
    completions = model.generate(PROMPTS, decoding, [(k,) for k in range(len(PROMPTS))])
    assert inner.training, "dropout was off, and the mode is back"
    inner.eval()
    assert len({len(got.response_ids or ()) for got in completions}) > 1
    for prompt, got in zip(PROMPTS, completions, strict=True):
        assert got.response_ids
        assert got.prompt_ids == tuple(tokenizer(prompt[0].content)["input_ids"])
        with torch.no_grad():
            logits = inner(input_ids=torch.tensor([[*got.prompt_ids, *got.response_ids]])).logits[0]
        logprobs = (logits[len(got.prompt_ids) - 1 : -1] / 1.25).log_softmax(-1)
        wanted = logprobs.gather(1, torch.tensor(got.response_ids)[:, None])[:, 0]
        close(torch.tensor(got.logprobs), wanted, 1e-3)
        assert got.usage[:2] == (len(got.prompt_ids), len(got.response_ids))
        stopped = got.response.endswith(decoding.stop) or got.response_ids[-1] == tokenizer.eos_token_id
        assert (got.finish_reason == "stop") is stopped


@pytest.mark.parametrize("kind", ["tied", "gpt2"])
def test_a_completion_does_not_depend_on_the_rest_of_the_batch_and_greedy_ones_are_transformers(kind, tokenizer):
    model = make_model(kind, tokenizer)
    decoding = Decoding(temperature=1.0, max_tokens=20)
    seeds = [(7, k) for k in range(len(PROMPTS))]
    player = TransformersModel(model, tokenizer)
    together = player.generate(PROMPTS, decoding, seeds)
    alone = [player.generate([prompt], decoding, [seed])[0] for prompt, seed in zip(PROMPTS, seeds, strict=True)]
    chunked = TransformersModel(model, tokenizer, max_batch_tokens=100).generate(PROMPTS[::-1], decoding, seeds[::-1])
    for others in (alone, chunked[::-1]):
        assert [c.response_ids for c in others] == [c.response_ids for c in together]
    assert together[1].response_ids != together[4].response_ids  # one prompt, two seeds
    greedy = player.generate(PROMPTS, Decoding(temperature=0, max_tokens=20, stop=()), [()] * len(PROMPTS))
    for completion in greedy:
        ids = torch.tensor([completion.prompt_ids])
        theirs = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=20, do_sample=False)
        assert list(completion.response_ids or ()) == theirs[0, ids.shape[1] :].tolist()


def test_the_end_of_sequence_token_is_an_id_but_not_text(tokenizer):
    model = make_model("llama", tokenizer)
    with torch.no_grad():  # every hidden state points at the end-of-sequence token
        model.lm_head.weight.zero_()
        model.lm_head.weight[tokenizer.eos_token_id] = 0.0
    player = TransformersModel(model, tokenizer)
    seeds = [(k,) for k in range(16)]
    completions = player.generate(PROMPTS[:1] * 16, Decoding(temperature=1.0, max_tokens=300), seeds)
    ended = [c for c in completions if c.finish_reason == "stop"]
    assert ended  # logits are all equal, so about half of the rows draw the end in time
    for completion in completions:
        ids = completion.response_ids or ()
        assert (ids[-1] == tokenizer.eos_token_id) == (completion.finish_reason == "stop")
        assert completion.response == tokenizer.decode(list(ids)).removesuffix("<eos>")


def test_what_the_context_or_the_model_cannot_take_is_refused(tokenizer):
    model = TransformersModel(make_model("llama", tokenizer), tokenizer, name="small")
    with pytest.raises(ValueError, match="160 tokens and small can read 160"):
        model.generate_ids([(5,) * 160], Decoding(), [()])
    long, short = model.generate(prompts_of("c " * 200, "c"), Decoding(temperature=0, max_tokens=3), [(), ()])
    assert "tokens and small can read 160" in (long.error or "")
    assert (long.response, long.finish_reason) == ("", "error")
    assert (short.error, len(short.response_ids or ())) == (None, 3)
    with pytest.raises(ValueError, match="prompt is empty"):
        model.generate(prompts_of(""), Decoding(), [()])
    config = transformers.LlamaConfig(**SHAPE, vocab_size=64, bos_token_id=None, eos_token_id=None)
    stranger = TransformersModel(transformers.LlamaForCausalLM(config), tokenizer)
    with pytest.raises(ValueError, match="isn't the tokenizer that the model was trained with"):
        stranger.generate(PROMPTS[:1], Decoding(), [()])
    with pytest.raises(ValueError, match="one seed per prompt"):
        model.generate(PROMPTS, Decoding(), [()])
    assert model.generate([], Decoding(), []) == []


def test_a_small_model_needs_one_thread_unless_the_user_chose(tokenizer, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    model, threads = make_model("gpt2", tokenizer), []
    model.register_forward_pre_hook(lambda *_: threads.append(torch.get_num_threads()))
    torch.set_num_threads(2)
    try:
        for used in (1, 2):
            TransformersModel(model, tokenizer).generate(PROMPTS[:1], Decoding(max_tokens=2), [(0,)])
            assert (threads[-1], torch.get_num_threads()) == (used, 2)
            monkeypatch.setenv("OMP_NUM_THREADS", "2")
    finally:
        torch.set_num_threads(1)


def test_a_saved_model_loads_and_plays_alike(tmp_path, tokenizer):
    model = make_model("llama", tokenizer)
    model.save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")
    loaded = TransformersModel.from_pretrained(tmp_path / "base")
    assert loaded.name == str(tmp_path / "base")
    decoding, seeds = Decoding(max_tokens=10), [(1,), (2,)]
    ours = TransformersModel(model, tokenizer).generate(PROMPTS[:2], decoding, seeds)
    assert [c.response_ids for c in loaded.generate(PROMPTS[:2], decoding, seeds)] == [c.response_ids for c in ours]
    about = {"class": "LlamaForCausalLM", "forward": "lean", "dtype": "float32"}
    assert loaded.settings.items() >= about.items()
    half = TransformersModel.from_pretrained(tmp_path / "base", dtype="bfloat16")
    assert next(half.model.parameters()).dtype == torch.bfloat16


def test_loading_errors_say_what_is_wrong(tmp_path, tokenizer):
    def refused(said: str, place: object = tmp_path, **options: Any) -> None:
        with pytest.raises((ValueError, FileNotFoundError), match=said):
            TransformersModel.from_pretrained(str(place), **options)

    refused(r"no folder '\./nowhere'", "./nowhere")
    refused(r"no config\.json")
    model = make_model("llama", tokenizer)
    model.save_pretrained(tmp_path)
    refused("no tokenizer")
    tokenizer.save_pretrained(tmp_path)
    refused("dtype is auto, float32", dtype="int8")
    refused("device is auto, cpu", device="toaster")
    with pytest.raises(ValueError, match="no tokenizer"):
        TransformersModel(model, None)
    with pytest.raises(ValueError, match="not a causal language model"):
        TransformersModel(model.model.layers[0], tokenizer)
    model.model.layers[0].mlp.up_proj = torch.nn.Sequential(model.model.layers[0].mlp.up_proj)
    with pytest.raises(ValueError, match="the lean forward pass can't run this model: its layers are Sequential"):
        llama_forward.read_weights(model)
    config = transformers.T5Config(vocab_size=64, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2)
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    refused("not a causal language model: its type is 't5'")


def test_a_template_that_breaks_off_or_leaves_the_prefix_out_is_named():
    chat = make_tokenizer()
    chat.chat_template = "{% for m in messages %}{{ m["
    with pytest.raises(ValueError, match=r"the chat template of torn can't be used \(unexpected 'end of template'"):
        TransformersModel(make_model("llama", chat), chat, name="torn")
    chat.chat_template = "{% for m in messages if m['role'] == 'user' %}{{ m['content'] }}{% endfor %}"
    model = TransformersModel(make_model("llama", chat), chat, name="deaf")
    with pytest.raises(ValueError, match="deaf's chat template can't continue the response prefix '<action>'"):
        LanguageAgentPolicy(model, PromptMap.from_file("prefixed", "direct"))
    LanguageAgentPolicy(model, PromptMap("direct"))
