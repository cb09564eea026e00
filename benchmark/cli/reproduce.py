"""Reproduce the paper's experiment in miniature: pretraining, MS-GRPO, evaluation, report."""

from argparse import Namespace


def run(args: Namespace) -> int:
    """Run the experiment, where this version has it; ``args.arguments`` goes to it as it is."""
    from importlib import import_module
    from importlib.util import find_spec

    from benchmark.errors import UsageError

    if find_spec("benchmark.reproduce") is None or find_spec("benchmark.reproduce.__main__") is None:
        raise UsageError(
            "this version has no reproduce command yet; train with textbench train --config configs/NAME.toml"
        )
    return int(import_module("benchmark.reproduce.__main__").main(args.arguments))
