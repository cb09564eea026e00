"""A checkpoint is noticed to be damaged, and the copy that a run goes back to is right at every moment."""

import subprocess
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from agents.common.locking import FolderLock
from agents.msgrpo import ConfigError
from agents.msgrpo.run.saving import STAGE, STATE, SUMS, LastValid, RunState, find_checkpoint
from tests.agents.msgrpo import runs

SHORT = replace(runs.SHORT, iterations=1, checkpoint_every=1, **runs.ALONE)


@pytest.mark.parametrize("rank", [0, 2], ids=["weights", "adapter"])
def test_a_flipped_bit_is_noticed_in_every_file(make_trainer, tmp_path, rank):
    config = replace(SHORT, out=str(tmp_path / "out"), lora_rank=rank)
    make_trainer(config).train()
    folder = (tmp_path / "out/last").resolve()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    assert {STATE, "adapter_model.safetensors" if rank else "model.safetensors"} <= {file.name for file in files}
    trainer = make_trainer(replace(config, iterations=2), resume=folder)
    for file in files:
        sound = file.read_bytes()
        for place in {0, len(sound) // 2}:
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
            with pytest.raises(ConfigError, match=f"'{file.name}' was changed or damaged .* rm {folder / SUMS}"):
                trainer.resume(folder)
        file.unlink()
        if file.name != STATE:  # without which it is no checkpoint
            with pytest.raises(ConfigError, match=f"'{file.name}' was removed after"):
                trainer.resume(folder)
        file.write_bytes(sound)
    (folder / "notes.txt").write_text("a file of mine is no damage")
    trainer.resume(folder)
    told = subprocess.run(["sha256sum", "-c", SUMS], cwd=folder, capture_output=True, text=True)
    assert (told.returncode, told.stdout.count(": OK")) == (0, len(files))


def test_checksums_that_are_damaged_are_a_sentence_and_older_versions_have_none(make_trainer, tmp_path):
    config = replace(SHORT, out=str(tmp_path / "out"))
    trainer = make_trainer(config)
    trainer.train()
    sums = tmp_path / "out/last" / SUMS
    for text in ("\x00\xff", "no such line", f"{'0' * 64}  ../../../etc/passwd", f"{'0' * 64}  /dev/zero"):
        sums.write_bytes(text.encode("latin-1"))
        with pytest.raises(ConfigError, match=r"was removed after the checkpoint was written; resume from another"):
            trainer.resume(tmp_path / "out")
    sums.unlink()
    trainer = make_trainer(replace(config, iterations=2), resume=tmp_path / "out")
    assert len(trainer.train()) == 2


def test_a_checkpoint_that_was_moved_aside_when_its_process_was_killed_is_put_back(make_trainer, tmp_path):
    """As on a file system that can't exchange two folders; a draft of a process that still trains is left alone."""
    config = replace(SHORT, out=str(tmp_path / "out"))
    make_trainer(config).train()
    place = (tmp_path / "out/last").resolve()
    place.rename(place.with_name(f".{place.name}.{'a' * 16}.old"))
    draft = place.with_name(f".iteration-000002.{'b' * 16}.draft")
    draft.mkdir()
    with FolderLock(tmp_path / "out"):
        assert place.is_dir()  # the lock put it back, and cleared the draft away
        draft.mkdir()
        assert find_checkpoint(tmp_path / "out") == place
        assert draft.is_dir()
    place.rename(place.with_name(f".{place.name}.{'a' * 16}.old"))
    trainer = make_trainer(replace(config, iterations=2), resume=tmp_path / "out")
    assert len(trainer.train()) == 2


class Run:
    """A model that is trained, as much of it as the trainer's state has."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(128, 128), nn.Linear(128, 128), nn.Linear(128, 128, bias=False))
        self.model[2].weight = self.model[0].weight  # tied
        self.model[1].weight.requires_grad_(False)  # frozen, as under an adapter
        self.optimizer = torch.optim.AdamW([each for each in self.model.parameters() if each.requires_grad])
        self.learnt: dict[str, Any] = {"baseline": torch.zeros(8)}
        self.iteration = 0
        self.last_valid = LastValid(self.state, lambda: self.learnt, self.model, copies=True)

    def state(self) -> RunState:
        training = {
            "optimizer": self.optimizer.state_dict(),
            "methods": self.learnt,
            "torch_rng": torch.get_rng_state(),
        }
        training |= {"critic": None, "reference": None, "iteration": self.iteration}
        return RunState(self.iteration, training, self.model.state_dict())

    def update(self) -> None:
        self.optimizer.zero_grad()
        self.model(torch.randn(4, 128)).square().sum().backward()
        self.optimizer.step()
        self.learnt["baseline"] += 1

    def iterate(self, *, sound: bool = True) -> None:
        self.last_valid.begin_iteration()
        self.last_valid.begin_update(sound=sound)
        self.update()
        self.iteration += 1
        self.last_valid.end_iteration()


def flat(state: RunState | None) -> list[Tensor]:
    assert state is not None
    found: list[Tensor] = []

    def look(value: Any) -> None:
        if isinstance(value, Tensor):
            found.append(value)
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ():
            look(each)

    look([state.training, dict(state.weights)])
    return found


def copied(run: Run) -> list[Tensor]:
    return flat(run.last_valid.state(spoiled=True))


def test_the_copy_is_what_was_there_before_the_latest_sound_update() -> None:
    run = Run()
    for sound in (True, True, True, False):
        before = [each.clone() for each in (flat(run.state()) if sound else copied(run))]
        run.iterate(sound=sound)
        assert all(torch.equal(a, b) for a, b in zip(copied(run), before, strict=True))
    weights = run.last_valid.state(spoiled=True).weights  # type: ignore[union-attr]
    assert weights["0.weight"] is weights["2.weight"]  # tied weights stay tied


def test_a_copy_that_was_not_finished_is_none_and_later_ones_use_the_buffers_of_the_first(monkeypatch) -> None:
    """The weights haven't changed when the copying fails, so that they are what is saved."""
    run = Run()
    run.iterate()
    run.iterate()  # the optimiser has a state from here on
    buffers = {each.data_ptr() for each in copied(run)}
    run.iterate()
    assert {each.data_ptr() for each in copied(run)} == buffers
    run.last_valid.begin_iteration()
    monkeypatch.setattr(run, "model", None)  # state() raises
    with pytest.raises(AttributeError):
        run.last_valid.begin_update(sound=True)
    monkeypatch.undo()
    saved = flat(run.last_valid.state(spoiled=False))
    assert all(torch.equal(*pair) for pair in zip(saved, flat(run.state()), strict=True))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpus_weights_are_copied_through_a_pinned_stage() -> None:
    model = nn.Linear(64, 64, device="cuda")
    training = dict.fromkeys(("optimizer", "methods", "critic", "reference", "torch_rng"))
    last_valid = LastValid(lambda: RunState(0, training, model.state_dict()), dict, model, copies=True)
    for _ in range(2):
        last_valid.begin_update(sound=True)
        kept = last_valid.state(spoiled=True).weights["weight"]  # type: ignore[union-attr]
        assert not kept.is_pinned()
        assert last_valid._buffers[STAGE].is_pinned()
        assert torch.equal(kept, model.weight.detach().cpu())
        with torch.no_grad():
            model.weight.add_(1)
