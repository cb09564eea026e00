"""``textbench serve`` where OpenEnv isn't installed; tests/integrations/openenv has the rest."""

import pytest

from benchmark.cli import main
from textgames import extras


def test_missing_package_comes_with_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda package: None)
    assert main(["serve", "frozen-lake"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("textbench: textbench serve needs what isn't installed, openenv: pip install ")
    assert '[openenv]"' in said
