"""For the tests of research, ``pytest research``: they need the distribution, whose entry points the product reads."""

import pytest

from textgames.plugins import research_advice

if advice := research_advice():
    raise pytest.UsageError(f"the tests of research need its entry points{advice}")


@pytest.fixture(scope="session")
def reader(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the spec of the model that reads documents of :mod:`research.tests.rooms`."""
    from research.tests.rooms import make_reader

    return make_reader(tmp_path_factory.mktemp("rooms") / "reader")
