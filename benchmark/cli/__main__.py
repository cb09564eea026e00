"""``python -m benchmark.cli``: the command without its script."""

import sys

from benchmark.cli import main

sys.exit(main())
