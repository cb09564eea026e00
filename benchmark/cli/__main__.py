"""``python -m benchmark.cli``: the command without its script."""

from benchmark.cli import console_main

console_main()
