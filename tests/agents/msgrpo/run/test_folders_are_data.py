"""A training's folder from elsewhere: going on with it imports nothing and asks no server that it alone names."""

import shlex
import sys
from pathlib import Path

import pytest

from agents.claims import approve
from agents.msgrpo import ConfigError, MSGRPOConfig, main
from agents.msgrpo.plugins import Registry
from agents.msgrpo.run.saving import asked_for, claims_of

pytestmark = pytest.mark.usefixtures("added_players")
SENTINEL = "from pathlib import Path\nPath('SENTINEL').write_text(__name__)\n"


@pytest.fixture(autouse=True)
def workplace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("TEXTBENCH_CACHE_DIR", str(tmp_path / "cache"))
    Path("evilmod.py").write_text(SENTINEL)
    yield tmp_path
    sys.modules.pop("evilmod", None)


def stranger(*lines: str) -> Path:
    """A checkpoint with these settings, whose model isn't there."""
    folder = Path("theirs/checkpoints/iteration-000001")
    folder.mkdir(parents=True)
    (folder / "trainer_state.pt").touch()
    (folder / "msgrpo.toml").write_text("\n".join(['model = "./no-such-model"', *lines]))
    Path("theirs/last").symlink_to(folder.absolute())
    return Path("theirs")


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ('credit = "evilmod:X"', "evilmod:X"),
        ('engine = "evilmod:X"', "evilmod:X"),
        ('scenarios = ["evilmod:X-v0"]', "evilmod:X-v0"),
        ('eval_opponent = "evilmod.py:X"', "evilmod.py:X"),
        ('[rollout.opponents]\ncheckpoint = 1\n"evilmod.py:X" = 1', "evilmod.py:X"),
        ('[game]\nopponents = "evilmod.py:X"', "evilmod.py:X"),
        ('["credit"."evilmod:X"]\nweight = 1', "evilmod:X"),
        ('[credit.msgrpo]\nof = ["msgrpo", "evilmod:X"]', "evilmod:X"),
        ('engine = "vllm"\nengine_urls = ["http://127.0.0.1:9"]', "http://127.0.0.1:9"),
        ('[engine]\nengine = "vllm"\nengine_options = {dtype = "half"}', "engine_options.dtype=half"),
        ('around = "told(openai:gpt-5-pro, learner)"', "openai:gpt-5-pro"),
        ('eval_opponent = "hf:someones/model"', "someones/model"),
        ('eval_opponent = "hf:./adapter"', "someones/base"),
        ('tokenizer = "someones/tokenizer"', "someones/tokenizer"),
        ('prompt_file = "secret.toml"', "secret.toml"),
        ('eval_opponent = "script:secret.toml"', "script:secret.toml"),
        ('around = "told(script:secret.toml, learner)"', "script:secret.toml"),
        ('out = "theirs"\ntrackers = ["tensorboard", "wandb"]', "wandb"),
        (
            '[rollout]\naround = "told(hf:./evil, learner)"\naround_options = {trust_remote_code = true}',
            "around_options.trust_remote_code=True",
        ),
        ('[rollout]\naround = "told(tiny, learner)"\naround_options = {adapter = "a/b"}', "around_options.adapter=a/b"),
    ],
)
def test_what_only_the_folder_names_is_refused(line, named, capsys):
    Path("secret.toml").write_text('system = "the secret"\n')
    Path("adapter").mkdir()
    Path("adapter/adapter_config.json").write_text('{"base_model_name_or_path": "someones/base"}')
    folder = stranger(line)
    assert main(["--resume", str(folder), "--quiet"]) == 2
    error = capsys.readouterr().err.strip()
    advised = shlex.split(error.partition("python -m agents.msgrpo ")[2])
    assert advised == ["--resume", str(folder), "--allow", named]
    assert ("iterations of" in error) == ("the paid model" in error) == named.startswith("openai:")
    assert not Path("SENTINEL").exists()
    assert "evilmod" not in sys.modules
    assert main([*advised, "--quiet"]) == 2  # which goes further now, as far as what isn't there
    assert "if you trust this folder" not in capsys.readouterr().err


def test_a_command_line_that_names_it_itself_needs_no_approval(capsys):
    folder = stranger('credit = "evilmod:X"')
    assert main(["--resume", str(folder), "--set", 'credit="evilmod:X"', "--quiet"]) == 2
    error = capsys.readouterr().err
    assert "if you trust this folder" not in error
    assert "evilmod" in error  # it was imported, and has no such class


def test_what_the_training_was_begun_with_is_known(capsys):
    folder = stranger('credit = "evilmod:X"')
    begun = MSGRPOConfig(model="./no-such-model", credit="evilmod:X")
    approve(folder, claims_of(begun), asked_for(begun))
    assert main(["--resume", str(folder), "--quiet"]) == 2
    assert "if you trust this folder" not in capsys.readouterr().err
    checkpoint = folder / "checkpoints/iteration-000001/msgrpo.toml"
    checkpoint.write_text(begun.with_overrides(["iterations=1000000"]).to_toml())
    assert main(["--resume", str(folder), "--quiet"]) == 2
    assert "if you trust this folder" in capsys.readouterr().err, "it asks for more than it did"


@pytest.mark.parametrize("module", ["hf", "script"])
@pytest.mark.parametrize("line", ['scenarios = ["{}:X-v0"]', 'credit = "{}:X"', 'engine = "{}:X"'])
def test_a_module_that_is_called_like_a_provider_is_no_model(line, module, capsys):
    Path(f"{module}.py").write_text(SENTINEL)
    assert main(["--resume", str(stranger(line.format(module))), "--quiet"]) == 2
    assert f" --allow {module}:X" in capsys.readouterr().err
    assert not Path("SENTINEL").exists()
    assert module not in sys.modules


def test_a_method_that_ships_is_not_looked_for_here(monkeypatch, tmp_path):
    """A folder in the working directory may be called like a package that a method imports."""
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(tmp_path)])
    with pytest.raises(ConfigError, match="can't be imported"):
        Registry[object]("credit", {"ours": "evilmod:X"}).find("ours")
    assert not Path("SENTINEL").exists()


def test_a_model_of_a_hub_is_fetched_for_no_folder_that_alone_names_it(capsys):
    Path(stranger(), "checkpoints/iteration-000001/msgrpo.toml").write_text('model = "someones/model"\n')
    assert main(["--resume", "theirs", "--quiet"]) == 2
    assert capsys.readouterr().err.endswith("--resume theirs --allow someones/model\n")


def test_models_and_files_are_read_as_data(workplace):
    Path("x.toml").touch()
    config = MSGRPOConfig(model="C:/models/base", eval_opponent="hf:./best", prompt_file="x.toml", device="cuda:1")
    assert claims_of(config, workplace) == []
    ships = MSGRPOConfig(model="tiny-quick", prompt_file="without-clock", trackers=("tensorboard",), out="o")
    assert claims_of(ships) == []
