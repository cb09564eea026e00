"""``textbench reproduce`` with a pretrained model, from the command to the report and to what ships."""

import json

import pytest

from benchmark.cli import main
from research.jobs.tests.here import jobs_here
from research.reproduction.pretrained.tests.helpers import make_model, write_recipe


def test_the_report_of_an_empty_folder_is_honest(tmp_path, capsys):
    recipe, out = write_recipe(tmp_path, "some-model"), tmp_path / "out"
    out.mkdir()
    assert main(["reproduce", "--config", str(recipe), "--out", str(out), "--report"]) == 1
    assert "jobs have no result" in capsys.readouterr().out
    assert "not run yet |" in (out / "report.md").read_text()
    assert main(["reproduce", "--out", str(out), "--report"]) == 2
    assert "was made with" in capsys.readouterr().err


def test_a_plan_names_the_parts(tmp_path, capsys):
    recipe = write_recipe(tmp_path, "some-model")
    assert main(["reproduce", "--config", str(recipe), "--dry-run", "--parts", "main"]) == 0
    told = capsys.readouterr().out
    assert "4 training runs of part main" in told
    assert "with 1 process(es) on free cores; nothing was done" in told
    assert "baseline" not in told
    assert main(["reproduce", "--config", str(recipe), "--dry-run", "--parts", "main", "--jobs", "2"]) == 0
    assert "with 2 process(es)" in capsys.readouterr().out


def test_nothing_ships_that_is_not_trained(tmp_path, capsys):
    recipe, out = write_recipe(tmp_path, "some-model"), tmp_path / "out"
    assert main(["reproduce", "--config", str(recipe), "--out", str(out), "--ship", str(tmp_path / "models")]) == 2
    assert "has nothing finished that ships (starts.few, arms.plain; of trainings seed 0)" in capsys.readouterr().err


@pytest.mark.slow
def test_a_part_is_done_and_what_it_trained_ships(tmp_path, capsys):
    model, out = make_model(tmp_path / "pretrained"), tmp_path / "out"
    command = ["reproduce", "--config", str(write_recipe(tmp_path, model)), "--out", str(out)]
    with jobs_here():
        assert main([*command, "--parts", "main", "--jobs", "1"]) == 0
    assert "not complete" in capsys.readouterr().out  # other parts
    assert main([*command, "--ship", str(tmp_path / "models")]) == 0
    shipped = capsys.readouterr()
    written = [str(tmp_path / "models" / name) for name in ("little-start", "little-lake")]
    assert shipped.out.split() == written, shipped.err
    settings = json.loads((tmp_path / "models" / "little-lake" / "adapter_config.json").read_text())
    assert (settings["r"], settings["base_model_name_or_path"]) == (1, str(model))
    assert "a LoRA adapter of rank 1" in (tmp_path / "models" / "little-lake" / "README.md").read_text()
    assert "what a training begins from" in (tmp_path / "models" / "little-start" / "README.md").read_text()
