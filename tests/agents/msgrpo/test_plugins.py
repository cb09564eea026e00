"""Plug-in points: methods by name, their settings and errors, in a config, in a file, on the command line."""

from typing import Any, ClassVar

import numpy as np
import pytest

from agents.msgrpo import POINTS, ConfigError, MSGRPOConfig, Variant, checked_credit, configured
from agents.msgrpo.configuration.methods import Methods
from agents.msgrpo.credit import METHODS, Batch, Credit, register
from agents.msgrpo.credit.methods import Compared
from tests.agents.msgrpo.hand_made import batch, trajectory
from tests.agents.msgrpo.runs import COUNTING, MOVING, SAMPLER


@configured
class Scaled:
    """A method with a setting."""

    factor: float = 1.0
    """Multiplies the rewards."""

    needs: ClassVar[frozenset[str]] = frozenset()

    def assign(self, batch: Batch, rng: np.random.Generator) -> Credit:
        return Credit.of([self.factor * each.rewards for each in batch.trajectories])


def test_every_built_in_method_can_be_made_with_its_defaults_and_documents_its_settings():
    for registry in POINTS.values():
        for name in registry.names:
            registry.make(name, {}, vars(MSGRPOConfig()))
            assert registry.find(name).__doc__
            for setting, about in registry.settings_of(name).items():
                assert about.get("description"), f"[{registry.point}.{name}] {setting} has no documentation"


@pytest.mark.parametrize("name", ["scaled", f"{__name__}:Scaled"])
def test_a_registered_method_or_one_named_by_its_place_is_used_with_its_own_settings(name):
    register("scaled")(Scaled)
    config = MSGRPOConfig(credit=name, method_settings={"credit": {name: {"factor": 3.0}}})
    credit = Methods.of(config).credit.assign(batch(trajectory([1.0, -2.0])), np.random.default_rng(0))
    assert credit.advantages[0].tolist() == [3.0, -6.0]
    assert credit.draw_weight.tolist() == [4.5]


def test_a_method_that_ships_keeps_its_name_and_a_method_is_a_class():
    with pytest.raises(ConfigError, match="credit = 'msgrpo' is a method that ships; register yours under another"):
        register("msgrpo")(Scaled)
    with pytest.raises(ConfigError, match=r"registered under a name, such as register\('mine'\), got 5"):
        register(5)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="credit = 'three' is to be a class, got 3"):
        register("three")(3)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"needs": frozenset()}, "credit = 'half': Half has no assign; a method of credit has needs"),
        ({"needs": {"gold"}, "assign": None}, "needs 'gold'; accepted are old_logprobs, entropies"),
    ],
)
def test_a_method_of_credit_that_lacks_a_part_is_refused_before_anything_is_played(parts, said):
    register("half")(type("Half", (), parts))
    with pytest.raises(ConfigError, match=said):
        Methods.of(MSGRPOConfig(credit="half"))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "a NoneType, and a Credit is accepted"),
        (Credit.of([np.zeros(2)]), "1 advantages and 1 draw weights"),
        (Credit.of([np.zeros(9), np.zeros(9)]), "9 advantages for the 2 steps of episode 0"),
        (Credit(np.zeros(2), [[0.0, 0.0], [0.0]]), "and NumPy arrays are accepted"),
    ],
)
def test_credit_of_another_form_than_the_batch_is_refused(returned, said):
    played = batch(trajectory([1.0, -2.0]), trajectory([1.0]))
    with pytest.raises(ConfigError, match=f"credit = 'mine': assign returned .*{said}"):
        checked_credit("mine", returned, played)
    fits = Credit.of([each.rewards for each in played.trajectories])
    assert checked_credit("mine", fits, played) is fits


def test_a_variants_settings_count_more_than_the_runs_and_less_than_its_own_table():
    run: dict[str, Any] = {"advantage_baseline": "none", "advantage_eps": 0.5, "discount": 0.5, "credit": "lite_ppo"}
    assert Methods.of(MSGRPOConfig(**run)).credit == Compared(scale="returns_std", eps=1e-4, discount=0.5)
    own = MSGRPOConfig(**run, method_settings={"credit": {"lite_ppo": {"eps": 0.1}, "msgrpo": {"eps": 0.2}}})
    assert Methods.of(own).credit == Compared(scale="returns_std", eps=0.1, discount=0.5)
    assert METHODS.settings_of("lite_ppo")["eps"]["default"] == 1e-4


def of_credit(**tables: dict[str, Any]) -> dict[str, Any]:
    return {"method_settings": {"credit": tables}}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (of_credit(msgrpo={"epss": 1.0}), ["[credit.msgrpo] epss is not a setting", "did you mean 'eps'?"]),
        (of_credit(msgrpo={"eps": "much"}), ["[credit.msgrpo] eps must be a number of at least 0, got 'much'"]),
        (of_credit(ppo_turn={"gamma": 0.9}), ["gamma is not a setting; it is called discount"]),
        ({"method_settings": {"filter": {"off": {"size": 3}}}}, ["[filter.off] can't be used", "its settings: none"]),
        ({"method_settings": {"credits": {}}}, ["[credits] holds no methods", "credit, draw"]),
        ({"credit": "msgrp"}, ["credit = 'msgrp'", "did you mean 'msgrpo'?", "my_module:MyClass"]),
        ({"loss_normalizer": 3}, ["loss_normalizer must be one of token, step, episode", "my_module:MyClass, got 3"]),
        ({"horizon": 3}, ["horizon is not a setting; it is called max_steps"]),
        ({"credit": "no_such_module:Mine"}, ["can't be imported"]),
        ({"credit": f"{__name__}:Missing"}, ["can't be imported"]),
    ],
)
def test_wrong_names_and_settings_are_told_with_their_place(settings, words):
    with pytest.raises(ConfigError) as error:
        Methods.of(MSGRPOConfig(**settings))
    for word in words:
        assert word in str(error.value)


SIZED: dict[str, Any] = {"sized": {"credit": "halved", "group_size": 4}}
HALVED = Variant("msgrpo", {"eps": 0.5})


def test_installed_packages_add_methods_variants_and_presets(tmp_path, monkeypatch):
    folder = tmp_path / "my_methods-1.0.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: my-methods\nVersion: 1.0\n")
    (folder / "entry_points.txt").write_text(
        f"[textbench.credit]\nscaled = {__name__}:Scaled\nhalved = {__name__}:HALVED\n"
        f"gone = {__name__}:Gone\nthree = {__name__}:SIZED\n"
        f"[textbench.presets]\nmine = {__name__}:SIZED\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert isinstance(Methods.of(MSGRPOConfig(credit="scaled")).credit, Scaled)
    assert Methods.of(MSGRPOConfig.preset("sized", discount=1.0)).credit == Compared(eps=0.5, discount=1.0)
    with pytest.raises(ConfigError, match=r"credit = 'gone' \(.*:Gone\) can't be imported"):
        METHODS.find("gone")
    with pytest.raises(ConfigError, match=r"credit = 'three' .* is to be a class or a Variant"):
        METHODS.find("three")


def test_what_is_not_installed_is_told_with_what_installs_it(monkeypatch):
    monkeypatch.setattr("textgames.plugins._installed", lambda group, path: {})
    for settings in ({"credit": "hgpo"}, {"surrogate": "sapo"}, {"preset": "hgpo"}):
        with pytest.raises(ConfigError, match="; more come with textbench-research: pip install -e research"):
            MSGRPOConfig.from_mapping(settings)


def test_methods_settings_go_through_files_and_overrides(tmp_path):
    file, path = tmp_path / "run.toml", f"{__name__}:Scaled"
    file.write_text(f'[advantages]\ncredit = "{path}"\n\n[credit."{path}"]\nfactor = 2.0\n')
    config = MSGRPOConfig.from_toml(file, ["credit.msgrpo.scale=none", "surrogate.ppo.clip_high=0.28"])
    assert config.method_settings == {
        "credit": {path: {"factor": 2.0}, "msgrpo": {"scale": "none"}},
        "surrogate": {"ppo": {"clip_high": 0.28}},
    }
    file.write_text(config.to_toml(documented=True))
    assert MSGRPOConfig.from_toml(file) == config
    with pytest.raises(ConfigError, match=r"--set credits\.msgrpo\.eps=1: credits\.msgrpo\.eps is not a setting"):
        config.with_overrides(["credits.msgrpo.eps=1"])


def taken_up(was: MSGRPOConfig, now: MSGRPOConfig, *, told: bool = True) -> dict[str, Any]:
    """What methods know that begin with what others have learnt; ``told``: the checkpoint says whose it is."""
    old, new = Methods.of(was), Methods.of(now)
    old.credit.assign(batch(trajectory([1.0]), trajectory([2.0])), np.random.default_rng(0))
    new.load_state_dict(old.state_dict(), old.learners() if told else None)
    return new.state_dict()


MOVES, COUNTS = MSGRPOConfig(credit=MOVING), MSGRPOConfig(credit=COUNTING)


@pytest.mark.parametrize(
    ("was", "now", "says"),
    [
        (MOVES, COUNTS, "credit: Counting begins anew and leaves what Moving has learnt"),
        (MSGRPOConfig(task_sampling=SAMPLER), MSGRPOConfig(), "task_sampling: .* leaves what Sampler has learnt"),
    ],
)
def test_another_method_begins_anew_and_says_so(was, now, says):
    with pytest.warns(UserWarning, match=says):
        assert taken_up(was, now) == Methods.of(now).state_dict()


@pytest.mark.parametrize(
    ("point", "name", "setting", "own"),
    [
        ("credit", "rtg", "discount", 1.0),
        ("credit", "gigpo", "discount", 0.95),
        ("surrogate", "gspo", "clip_low", 3e-4),
    ],
)
def test_the_run_s_settings_take_the_place_of_the_paper_s(point, name, setting, own):
    table = {point: {name: {setting: 0.25}}}
    for told, value in (({}, own), ({setting: 0.5}, 0.5), ({setting: 0.5, "method_settings": table}, 0.25)):
        made = getattr(Methods.of(MSGRPOConfig(**{point: name}, **told)), point)
        assert getattr(made, setting) == value
