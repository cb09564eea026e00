"""A bit that flips in a checkpoint is noticed by the resume, in whichever file it is."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from agents.msgrpo import MSGRPOConfig, MSGRPOTrainer
from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.saving.checkpoint import STATE, SUMS

SHORT = MSGRPOConfig(
    groups=2, group_size=4, iterations=1, minibatches=1, response_mode="direct", max_response_tokens=2, temperature=1.0,
    learning_rate=1e-3, checkpoint_every=1, eval_every=0, samples_every=0, stop_after=0, preflight_episodes=0,
)  # fmt: skip


@pytest.mark.parametrize("rank", [0, 2], ids=["weights", "adapter"])
def test_a_flipped_bit_is_noticed_in_every_file(
    make_trainer: Callable[..., MSGRPOTrainer], tmp_path: Path, rank: int
) -> None:
    config = replace(SHORT, out=str(tmp_path / "out"), lora_rank=rank)
    make_trainer(config).train()
    folder = (tmp_path / "out/last").resolve()
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SUMS)
    assert {STATE, "adapter_model.safetensors" if rank else "model.safetensors"} <= {file.name for file in files}
    trainer = make_trainer(replace(config, iterations=2))
    trainer.resume(folder)
    for file in files:
        sound = file.read_bytes()
        for place in {0, len(sound) // 2}:
            file.write_bytes(sound[:place] + bytes([sound[place] ^ 4]) + sound[place + 1 :])
            with pytest.raises(
                ConfigError, match=f"'{file.name}' was changed or damaged after the checkpoint was"
            ) as e:
                trainer.resume(folder)
            assert f"rm {folder / SUMS}" in str(e.value)
        file.unlink()
        if file.name != STATE:  # without which it is no checkpoint
            with pytest.raises(ConfigError, match=f"'{file.name}' was removed after"):
                trainer.resume(folder)
        file.write_bytes(sound)
    trainer.resume(folder)
    (folder / "notes.txt").write_text("a file of mine is no damage")
    trainer.resume(folder)
    told = subprocess.run(["sha256sum", "-c", SUMS], cwd=folder, capture_output=True, text=True)
    assert (told.returncode, told.stdout.count(": OK")) == (0, len(files))


def test_a_checkpoint_of_an_older_version_loads(make_trainer: Callable[..., MSGRPOTrainer], tmp_path: Path) -> None:
    config = replace(SHORT, out=str(tmp_path / "out"))
    make_trainer(config).train()
    (tmp_path / "out/last" / SUMS).unlink()
    trainer = make_trainer(replace(config, iterations=2))
    trainer.resume(tmp_path / "out")
    assert len(trainer.train()) == 2


@pytest.mark.parametrize(
    "text", ["\x00\xff", "no such line", f"{'0' * 64}  ../../../etc/passwd", f"{'0' * 64}  /dev/zero"]
)
def test_damaged_checksums_are_a_sentence(
    make_trainer: Callable[..., MSGRPOTrainer], tmp_path: Path, text: str
) -> None:
    config = replace(SHORT, out=str(tmp_path / "out"))
    trainer = make_trainer(config)
    trainer.train()
    (tmp_path / "out/last" / SUMS).write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError, match=r"was removed after the checkpoint was written; resume from another"):
        trainer.resume(tmp_path / "out")
