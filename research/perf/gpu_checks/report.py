"""The figures of research/perf/gpu.py as Markdown."""

from collections.abc import Iterable, Sequence
from typing import Any

GIB = 2**30


def markdown(result: dict[str, Any]) -> str:
    """Return the whole report as Markdown."""
    about = result["machine"]
    size = "tiny shapes in place of the recipes' own" if result["small"] else "the recipes' own shapes"
    lines = [f"# {about['name']}: {size}", ""]
    lines += [f"{key}: {_short(value)}  " for key, value in about.items() if not key.endswith(("_flops", "_second"))]
    lines += [
        "",
        f"Matrix products: {about['bfloat16_flops'] / 1e12:.3g} TFLOP/s in bfloat16 and "
        f"{about['float32_flops'] / 1e12:.3g} in float32. A large copy: {about['bytes_per_second'] / 1e9:.3g} GB/s. "
        f"All of it took {result['seconds']:.0f} s. Times below are {_clock(about)} seconds.",
    ]
    for part in (_recipes, _attention, _sampling, _vllm, _troubles):
        lines += part(result)
    return "\n".join(lines)


def _recipes(result: dict[str, Any]) -> list[str]:
    found = {name.split(": ")[1]: one for name, one in result.items() if name.startswith("recipes: ")}
    if not found:
        return []
    head = [
        "recipe",
        "weights",
        "trained",
        "packing",
        "attention",
        "rollout tokens/s",
        "update tokens/s",
        "update FLOP/s",
    ]
    head += ["share of products", "mismatch mean", "max", "peak of rollout (computed)", "peak of update (computed)"]
    rows = [
        [
            name, f"{one['weights'] / 1e6:,.2f}M", f"{one['trained'] / 1e6:,.2f}M", one["packing"], one["attention"],
            f"{one['rollout_tokens_per_second']:,.0f}", f"{one['update_tokens_per_second']:,.0f}",
            f"{one['update_flops_per_second']:.2g}", f"{one['update_share_of_products']:.1%}",
            _number(one.get("mismatch_mean")), _number(one.get("mismatch_max")),
            *(f"{_bytes(one[f'peak_{part}'])} ({one['predicted'][part] / GIB:.2f})" for part in ("rollout", "update")),
        ]
        for name, one in found.items()
    ]  # fmt: skip
    lines = ["", "## Recipes: one iteration, random weights", "", *_table(head, rows), ""]
    for name, one in found.items():
        idle = "; nothing was learnt, as no group had an advantage" if one["skipped"] else ""
        lines.append(
            f"- {name}: {one['episodes']:.0f} episodes of {one['steps']:.0f} steps in all, prompts of "
            f"{one['prompt_tokens']:.0f} tokens, {one['response_tokens']:.0f} response tokens in "
            f"{one['rollout_seconds']:.2f} s; the update computes {one['update_tokens_computed']:.0f} tokens for rows "
            f"of {one['update_tokens']:.0f} in {one['update_seconds']:.2f} s{idle}"
        )
    return lines


def _attention(result: dict[str, Any]) -> list[str]:
    one = result.get("attention")
    if one is None:
        return []
    lines = ["", f"## Attention within trees: {one['batch']} x {one['length']} tokens, {one['heads']} heads", ""]
    if one["why_not"]:
        lines.append(f"Not used for training here: {one['why_not']}.")
    if "largest_relative_difference" in one:
        lines.append(
            f"{one['blocks_not_computed']:.0%} of the matrix isn't computed; the output differs from that with a dense "
            f"mask by {one['largest_relative_difference']:.1e} of its largest value."
        )
        rows = [
            [
                name, f"{one[f'{name}_forward_seconds'] * 1e3:.2f}", _milliseconds(one.get(f"{name}_both_seconds")),
                _bytes(one[f"{name}_peak"]),
            ]
            for name in ("blocks", "dense")
        ]  # fmt: skip
        lines += ["", *_table(["mask", "forward ms", "forward and backward ms", "peak memory"], rows)]
    return lines


def _sampling(result: dict[str, Any]) -> list[str]:
    lines = []
    if (waits := result.get("sampling: waits")) is not None:
        lines.append(
            f"- The host waits for the device {waits['per_token']:.3f} times a token of the batch, and "
            f"{waits['of_a_batch_besides']:.0f} times a batch besides."
        )
    if (one := result.get("sampling: recorded")) is not None:
        recorded, launched = (one[f"{name}_seconds_per_token"] * 1e3 for name in ("recorded", "launched"))
        lines.append(
            f"- A token of {one['rows']:.0f} rows takes {recorded:.2f} ms where steps are recorded, {launched:.2f} "
            f"where kernels are launched one by one; {one['tokens_alike']:.0%} of the tokens come before rows "
            f"part, with log-probabilities alike to {one['largest_difference']:.1e}."
        )
    if (one := result.get("sampling: adapter")) is not None:
        lines.append(
            f"- An adapter of rank {one['rank']} costs {one['bytes_factors'] / 2**20:,.2f} MiB beside the model's "
            f"weights while it is sampled; merged weights would be {one['bytes_merged'] / 2**20:,.2f} MiB. "
            f"Log-probabilities differ from peft's by at most {one['largest_difference_factors']:.1e} (merged: "
            f"{one['largest_difference_merged']:.1e})."
        )
    return ["", "## Sampling", "", *lines] if lines else []


def _vllm(result: dict[str, Any]) -> list[str]:
    one = result.get("vllm")
    if one is None:
        return []
    if "skipped" in one:
        return ["", "## vLLM beside our own generation", "", f"Skipped: {one['skipped']}."]
    rows = [
        [
            name, f"{one[f'{name}_tokens_per_second']:,.0f}", _number(one[f"{name}_mismatch_mean"]),
            _number(one[f"{name}_mismatch_max"]),
        ]
        for name in ("own", "vllm")
    ]  # fmt: skip
    head = ["sampler", "tokens/s", "mismatch with the learner, mean", "max"]
    return ["", "## vLLM beside our own generation", "", *_table(head, rows)]


def _troubles(result: dict[str, Any]) -> list[str]:
    lines = [f"- failed: {name}: {reason}" for name, reason in result["failed"].items()]
    lines += [f"- {note}" for note in result["notes"]]
    return ["", "## Failures and notes", "", *lines] if lines else []


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


def _bytes(peak: dict[str, int]) -> str:
    return ", ".join(f"{size / GIB:.2f} GiB {kind}" for kind, size in peak.items())


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2g}"


def _milliseconds(seconds: float | None) -> str:
    return "no gradient on a CPU" if seconds is None else f"{seconds * 1e3:.2f}"


def _clock(about: dict[str, Any]) -> str:
    return "wall-clock" if about["device"].startswith("cuda") else "processor"


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
