"""Fine-tune a model with MS-GRPO: the same as python -m agents.msgrpo, with the benchmark's scenarios for evaluation.

example:
  textbench train --config tiny-frozen-lake --set iterations=10
"""

from argparse import Namespace


def run(args: Namespace) -> int:
    """Train; ``args.arguments`` goes to the trainer as it is."""
    from benchmark.errors import UsageError
    from textgames.extras import missing_packages

    missing = missing_packages("torch", "transformers", extra="train")  # the trainer asks for the rest where it is used
    if missing is not None:
        raise UsageError(f"training needs {missing}")
    from agents.msgrpo.__main__ import main

    return main(args.arguments)
