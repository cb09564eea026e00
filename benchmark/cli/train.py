"""Fine-tune a model with MS-GRPO: the same as python -m agents.msgrpo, with the benchmark's scenarios for evaluation.

example:
  textbench train --config tiny-frozen-lake --set iterations=10
"""

from argparse import Namespace


def run(args: Namespace) -> int:
    """Train; ``args.arguments`` goes to the trainer as it is."""
    from agents.msgrpo.__main__ import main

    return main(args.arguments)
