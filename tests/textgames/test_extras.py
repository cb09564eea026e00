from pathlib import Path

import textgames.extras
from textgames.extras import install_command, missing_packages


def test_advice_in_a_clone_is_the_command_of_the_readme():
    root = Path(textgames.extras.__file__).parents[1]
    assert install_command("local") == f'pip install -c constraints.txt -e ".[local]" (in {root})'


def test_what_brings_its_own_versions_is_installed_without_the_tested_ones():
    """As docs/players.md and docs/recipes.md say."""
    root = Path(textgames.extras.__file__).parents[1]
    for extra in ("litellm", "vllm"):
        assert install_command(extra) == f'pip install -e ".[{extra}]" (in {root})'
        pages = [(root / "docs" / page).read_text() for page in ("players.md", "recipes.md", "engines.md")]
        assert any(f'pip install -e ".[{extra}]"' in page for page in pages)
        assert not any(f'-c constraints.txt -e ".[{extra}]"' in page for page in pages)


def test_advice_elsewhere_names_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(textgames.extras, "__file__", str(tmp_path / "site-packages" / "agents" / "extras.py"))
    assert install_command("vllm") == 'pip install "textbench[vllm]"'


def test_only_what_is_missing_is_named():
    assert missing_packages("numpy", "json", extra="local") is None
    assert missing_packages("numpy", "no_such_package", extra="local") == f"no_such_package: {install_command('local')}"
