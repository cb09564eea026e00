"""For the tests of research, ``pytest research``: they need the distribution, whose entry points the product reads."""

import pytest

from textgames.plugins import research_advice

if advice := research_advice():
    raise pytest.UsageError(f"the tests of research need its entry points{advice}")
