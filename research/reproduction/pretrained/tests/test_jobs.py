"""The jobs of the experiment with a pretrained model: their order, their needs, and what their folder refuses."""

import pytest

from agents.msgrpo import MSGRPOConfig
from benchmark.cli import main
from benchmark.errors import UsageError
from research.reproduction.pretrained.jobs import PretrainedFolder, chosen, jobs_of, settings_of, typical_seconds
from research.reproduction.pretrained.settings import Pretrained
from research.reproduction.pretrained.tests.helpers import write_recipe


@pytest.fixture
def experiment(tmp_path):
    return Pretrained.read(write_recipe(tmp_path, "some-model"))


def test_what_is_needed_comes_first(experiment):
    jobs = jobs_of(experiment)
    names = [job.name for job in jobs]
    assert len(set(names)) == len(names)
    for place, job in enumerate(jobs):
        assert all(names.index(need) < place for need in job.needs), job
    needs = {job.name: job.needs for job in jobs}
    assert needs["train/small/0"] == ("start/near",)
    assert needs["train/large/0"] == ("train/small/0",)
    assert needs["train/alone/0"] == ()
    assert needs["train/trl-seconds/0"] == ("start/few", "train/plain/0")
    assert needs["start/equal"] == ()
    assert needs["play/trained/1/frozen-lake"] == ("train/plain/1",)
    assert needs["play/base--retry-1/0/frozen-lake"] == ()
    assert names.index("train/other/0") < names.index("train/plain/1")  # seed by seed


def test_a_part_is_its_jobs_and_what_they_wait_for(experiment):
    names = {job.name for job in chosen(jobs_of(experiment), ["baseline"], experiment)}
    assert names == {
        *("start/few", "train/plain/0", "train/trl-episodes/0", "train/trl-seconds/0"),
        "play/TRL-s/0/frozen-lake",
    }
    with pytest.raises(UsageError, match=r"no part in this recipe named 'mein'; did you mean 'main'"):
        chosen(jobs_of(experiment), ["mein"], experiment)


def test_every_run_may_begin_from_a_warm_start_of_its_own(tmp_path):
    several = ("examples = 8\n", "examples = 8\nseeds = 2\n")
    experiment = Pretrained.read(write_recipe(tmp_path, "m", (several,)))
    jobs = {job.name: job for job in jobs_of(experiment)}
    assert [jobs[f"train/plain/{seed}"].needs for seed in (0, 1)] == [("start/few/0",), ("start/few/1",)]
    assert jobs["play/imitation/1/frozen-lake"].needs == ("start/few/1",)
    settings = [settings_of(jobs[f"start/few/{seed}"], experiment)["imitation"] for seed in (0, 1)]
    assert settings[1] == settings[0] | {"seed": 1}
    fewer = {job.name for job in jobs_of(Pretrained.read(write_recipe(tmp_path, "m", (several,)), {"seeds": 1}))}
    assert "start/few/0" in fewer
    assert "start/few/1" not in fewer
    with pytest.raises(UsageError, match=r"arms\.plain has 2 seeds and starts\.few 1: accepted is a warm start of its"):
        Pretrained.read(write_recipe(tmp_path, "m", (("examples = 8\n", "examples = 8\nseeds = 1\n"),)))


def test_settings_come_from_the_recipe_the_file_and_the_arm(experiment):
    settings = experiment.training_settings("plain", 1)
    assert settings["learning_rate"] == 0.002  # the file's
    assert experiment.training_settings("other", 1)["learning_rate"] == 0.001  # the recipe's
    assert experiment.training_settings("alone", 1)["lora_rank"] == 2  # the arm's
    assert (settings["seed"], settings["threads"], settings["out"]) == (1, 0, "")
    assert settings["scenarios"] == ["frozen-lake"]
    assert experiment.training_settings("small", 0)["scenarios"] == []
    assert experiment.game_of("small").kwargs["size"] == 3  # type: ignore[union-attr]
    assert experiment.game_of("plain") == ""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('start = "near"', 'start = "nar"', r"no one for arms.small.start named 'nar'; did you mean 'near'"),
        ("size = 3", "sise = 3", "arms.small.view: .*sise"),
        ('trainer = "trl"\nlike = "plain"\nequal', 'like = "plain"\nequal', "each needs the other"),
        ("[starts.equal]", "[starts.alone]", "alone is a warm start and an arm"),
        ("lora_rank = 2\nmax_response", "lora_rnk = 2\nmax_response", "settings of starts.few: lora_rnk is not"),
        (
            "max_steps = 2",
            'max_steps = 2\nresponse_mode = "think"',
            "arms.small is trained with .*'think' and .*, near, with 'direct'",
        ),
        ('protocol = "retry:1"', 'protocol = "retri"', "protocol must be one of"),
        ('["imitation", "base"]', '["imitation", "bass"]', "did you mean 'base'"),
        (
            'scenarios = ["frozen-lake", "blackjack"]',
            'scenarios = ["frozen-lake", "blackjack"]\nview = { size = 3 }',
            "arms.alone.view needs one scenario.*got frozen-lake, blackjack",
        ),
        (
            'part = "screen"\nstart = "near"',
            'part = "screen"\nstart = "large"',
            "(small needs large|large needs small).*something has to come first",
        ),
    ],
)
def test_wrong_settings_are_one_sentence(old, new, message, tmp_path):
    recipe = write_recipe(tmp_path, "m", ((old, new),))
    with pytest.raises(UsageError, match=message):
        Pretrained.read(recipe)


def test_a_recipe_may_change_where_nothing_is_done(tmp_path, experiment):
    """What is done is refused by name, what was only begun begins anew, what goes on keeps its files."""
    folder = PretrainedFolder(tmp_path / "out")
    folder.claim(experiment)
    jobs = {job.name: job for job in jobs_of(experiment)}
    for name in ("start/few", "start/near"):
        folder.begin(jobs[name], experiment)
        (folder.path / name / "state.pt").write_text("begun")
    folder.write_result("start/few", {})
    changed = Pretrained.read(write_recipe(tmp_path, "some-model", (("examples = 6\n", "examples = 7\n"),)))
    folder.claim(changed)
    for name in ("start/few", "start/near"):
        folder.begin(jobs[name], changed)
    assert (folder.path / "start/few/state.pt").exists()
    assert not (folder.path / "start/near/state.pt").exists()
    other = Pretrained.read(write_recipe(tmp_path, "some-model", (("examples = 8\n", "examples = 9\n"),)))
    with pytest.raises(UsageError, match=r"start/few was made with examples = 8, now it is 9: put it back, remove"):
        folder.claim(other)
    with pytest.raises(UsageError, match=r"was made with model = 'some-model', now it is 'another'"):
        folder.claim(Pretrained.read(write_recipe(tmp_path, "another")))


def test_times_are_counted_in_text_and_decisions(experiment, tmp_path):
    seconds = typical_seconds(experiment, jobs_of(experiment))
    assert set(seconds) == {job.name for job in jobs_of(experiment)}
    assert all(value >= 10 for value in seconds.values())
    assert seconds["play/random/0/snake"] == 10
    assert seconds["train/trl-episodes/0"] > 5 * seconds["train/plain/0"]
    more = Pretrained.read(write_recipe(tmp_path, "m", (("groups = 2\n", "groups = 20\n"),)))
    assert typical_seconds(more, jobs_of(more))["train/other/0"] > seconds["train/other/0"]


@pytest.mark.parametrize(
    ("recipe", "parts"),
    [
        ("smollm2", ("screen", "main", "scale", "draws", "carry", "baseline")),
        ("smollm2-collapse", ("collapse",)),
    ],
)
def test_a_recipe_has_all_parts_of_the_experiment(recipe, parts, workplace, capsys):
    assert main(["reproduce", "--config", recipe, "--dry-run"]) == 0
    told = capsys.readouterr().out
    for part in parts:
        assert f"of part {part}" in told
    assert "nothing was done" in told


CHANGED = {
    "plain": set(),
    "entropy-02": {"entropy_coefficient"},
    "entropy-10": {"entropy_coefficient"},
    "legal": {"legal_only"},
    "no-penalty": {"format_penalty", "invalid_action"},
    "clip-higher": {"clip_high", "update_passes"},
    "starts": {"task_sampling"},
    "starts-legal": {"task_sampling", "legal_only"},
}
"""What each arm of the screen of format collapse changes of its training."""


def test_each_arm_changes_one_thing_of_a_run_that_nothing_stops():
    screen = Pretrained.read("smollm2-collapse")
    assert set(screen.arms) == set(CHANGED)
    plain = MSGRPOConfig.from_mapping(screen.training_settings("plain", 0))
    assert (plain.min_valid_share, plain.stop_after) == (0.0, 0)
    for name, arm in screen.arms.items():
        assert (arm.start, arm.seeds) == ("", 1)
        config = MSGRPOConfig.from_mapping(screen.training_settings(name, 0))
        assert set(config.differences(plain)) == CHANGED[name]
    played = {player.agent for player in screen.players.values()}
    assert played == {"blind", "model", *(f"arms.{name}" for name in CHANGED)}
    legal = {player.agent for player in screen.players.values() if player.options}
    assert legal == {"arms.legal", "arms.starts-legal"}  # they are played as they were trained
