"""Recipes of the comparison of improvers: what they may say, the order of jobs, and what a folder accepts."""

from pathlib import Path

import pytest

from benchmark.cli import main
from benchmark.errors import UsageError
from research.improve.study.settings import ComparedFolder, Comparison, jobs_of

MINIATURE = Path("research/improve/study/recipes/improvers-miniature.toml")


def written(tmp_path: Path, old: str, new: str) -> Path:
    text = MINIATURE.read_text(encoding="utf-8")
    assert old in text
    file = tmp_path / "mine.toml"
    file.write_text(text.replace(old, new), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('games = ["frozen-lake"]', 'games = ["frozen-lak"]', "no scenario named 'frozen-lak'; did you mean"),
        ('games = ["frozen-lake"]', 'games = ["snake"]', "snake has no exact values for one player, or no twin"),
        ('games = ["frozen-lake"]', 'games = ["tic-tac-toe"]', "tic-tac-toe has no exact values for one player"),
        ("[3_000]", "[6_000, 3_000]", r"budgets must rise, got .*\(6000, 3000\)"),
        ("[3_000]", "[0]", "budgets.* must .* greater than or equal to 1, got 0"),
        ("[methods.offline]", "[methods.library]", "no method with counted tokens named 'library'; there are: gepa"),
        ("[methods.offline]", "[methods.gepa]", "methods.gepa: rates = .* accepted: none, as it trains no weights"),
        ("rates = [1e-3, 3e-3]", "rates = []", "methods.imitate: rates = .* accepted: one learning rate or more"),
        ("[base]", "twin = 0\n[base]", "twin = 0 needs a pretrained base"),
        ("[base]", 'pretrained = "tiny-lake"\n[base]', "pretrained = 'tiny-lake' makes no base: leave out base"),
        ("[methods.msgrpo]", "[methods.nobody]", "no method with counted tokens named 'nobody'"),
        ('trained = "msgrpo"', "", "players.router: trained = '' doesn't go with spec"),
        (
            '"search({base})"',
            '"imagine({base})"',
            r"players.search: 'imagine\(tiny\)' is not of the form imagine\(AGENT",
        ),
        ('"search({base})"', '"search({bsae})"', r"a name in braces; accepted: \{base\} and \{trained\}"),
        ("[base]", 'dtype = "bfloat16"\n[base]', "dtype = 'bfloat16' is of the play of a pretrained base"),
        ("[base]", 'dtype = "bfloat"\n[base]', "dtype must be 'auto', 'float32' or 'bfloat16'"),
        ("group_size = 4", "group_size = 0", "methods.msgrpo.options: group_size"),
        ("proposals = 2", "propsals = 2", "no option of players.search named 'propsals'; did you mean 'proposals'"),
        (
            "[methods.offline]",
            "[methods.gepa]\noptions = { writer = 'smolm2' }\n\n[methods.offline]",
            r"methods.gepa: writer: unknown agent 'smolm2' \(did you mean 'smollm2'\?\)",
        ),
        ("attempts = 2", "attemps = 2", "no option of offline named 'attemps'; did you mean 'attempts'"),
        ("layers = 1", "layers = 0", "base: layers must be a whole number of at least 1, got 0"),
        ("seeds = 2", "sedes = 2", "no setting of a comparison of improvers .* named 'sedes'; did you mean 'seeds'"),
    ],
)
def test_a_wrong_recipe_is_refused_in_a_sentence(tmp_path, old, new, message):
    with pytest.raises(UsageError, match=message) as refused:
        Comparison.read(written(tmp_path, old, new))
    assert "\n" not in str(refused.value)


def test_an_agents_folder_may_write(tmp_path):
    (tmp_path / "agent.toml").write_text('spec = "smollm2"')
    gepa = f"[methods.gepa]\noptions = {{ writer = '{tmp_path}' }}\n\n[methods.offline]"
    study = Comparison.read(written(tmp_path, "[methods.offline]", gepa))
    assert study.methods["gepa"].options["writer"] == str(tmp_path)


def test_a_pretrained_base_must_know_how_it_is_asked(tmp_path):
    file = written(tmp_path, "seeds = 2", 'seeds = 2\npretrained = "tiny-lake"')
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace("[base]" + text.split("[base]")[1].split("\n\n")[0], ""), encoding="utf-8")
    with pytest.raises(UsageError, match="'tiny-lake' is no model that textbench warmup or a training made with"):
        Comparison.read(file)  # it reasons before it answers


def test_a_method_with_one_rate_is_not_tuned():
    study = Comparison.read("improvers-miniature")
    tuned = {job.method for job in jobs_of(study) if job.kind == "tune"}
    assert tuned == {"imitate"}


def test_the_command_refuses_what_is_of_other_experiments(capsys):
    for option in (["--arms", "imitate"], ["--iterations", "3"], ["--ship", "here"]):
        assert main(["reproduce", "--config", "improvers", *option]) == 2
        assert "a recipe of the comparison of improvers takes --games, --seeds" in capsys.readouterr().err
    assert main(["reproduce", "--config", "improvers", "--games", "frozen-lak"]) == 2
    assert "no game in this recipe named 'frozen-lak'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["improvers", "improvers-miniature", "improvers-pretrained"])
def test_every_job_has_what_it_needs_before_it(name):
    study = Comparison.read(name)
    jobs, done = jobs_of(study), set[str]()
    for job in jobs:
        assert set(job.needs) <= done, job
        done.add(job.name)
    assert len(done) == len(jobs)
    learnt = [job for job in jobs if job.kind == "learn"]
    assert len(learnt) == len(study.games) * len(study.methods) * len(study.budgets) * study.seeds


def test_what_is_cut_short_has_whole_games_and_there_whole_seeds():
    study = Comparison.read("improvers")
    jobs = jobs_of(study)
    games = [job.game for job in jobs]
    assert games == sorted(games, key=study.games.index)
    compared = [job for job in jobs if job.game == study.games[0] and job.kind == "learn"]
    per_seed = len(study.methods) * len(study.budgets)
    assert [job.seed for job in compared] == [seed for seed in range(study.seeds) for _ in range(per_seed)]
    assert {(job.method, job.budget) for job in compared[:per_seed]} == {
        (method, budget) for method in study.methods for budget in study.budgets
    }


def test_a_folder_takes_more_seeds_and_games_and_nothing_else(tmp_path):
    study, folder = Comparison.read("improvers"), ComparedFolder(tmp_path / "out")
    folder.claim(study.model_copy(update={"games": study.games[:1], "seeds": 3}))
    folder.claim(study)
    with pytest.raises(UsageError, match="was made with seeds = 5, now it is 3"):
        folder.claim(study.model_copy(update={"seeds": 3}))
    with pytest.raises(UsageError, match="was made with episodes"):
        folder.claim(study.model_copy(update={"episodes": 3}))
