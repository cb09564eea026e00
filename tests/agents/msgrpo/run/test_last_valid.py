"""The copy that a run goes back to: right at every moment, and in the same memory from one update to the next."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from agents.msgrpo.run.saving import STAGE, LastValid, RunState, copy_staged


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


def test_the_copy_is_what_was_there_before_the_update() -> None:
    run = Run()
    for _ in range(3):
        before = [each.clone() for each in flat(run.state())]
        run.iterate()
        copied = flat(run.last_valid.state(spoiled=True))
        assert len(copied) == len(before)
        assert all(torch.equal(a, b) for a, b in zip(copied, before, strict=True))
    weights = run.last_valid.state(spoiled=True).weights  # type: ignore[union-attr]
    assert weights["0.weight"] is weights["2.weight"]  # tied weights stay tied


def test_a_copy_of_before_an_unsound_update_stays() -> None:
    run = Run()
    run.iterate()
    before = [each.clone() for each in flat(run.last_valid.state(spoiled=True))]
    run.iterate(sound=False)
    assert all(torch.equal(*pair) for pair in zip(flat(run.last_valid.state(spoiled=True)), before, strict=True))


def test_later_copies_use_the_buffers_of_the_first() -> None:
    run = Run()
    run.iterate()
    run.iterate()  # the optimiser has a state from here on
    buffers = {each.data_ptr() for each in flat(run.last_valid.state(spoiled=True))}
    run.last_valid.begin_iteration()
    run.last_valid.begin_update(sound=True)
    assert {each.data_ptr() for each in flat(run.last_valid.state(spoiled=True))} == buffers


def test_buffers_follow_what_has_another_form_now() -> None:
    run = Run()
    run.iterate()
    run.learnt = {"baseline": torch.ones(5, dtype=torch.float64), "more": torch.arange(3)}
    run.iterate()
    kept = run.last_valid.state(spoiled=True).training["methods"]  # type: ignore[union-attr]
    assert torch.equal(kept["baseline"], torch.ones(5, dtype=torch.float64))
    assert kept["more"].tolist() == [0, 1, 2]


def test_a_copy_that_was_not_finished_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The weights haven't changed when the copying fails, so that they are what is saved."""
    run = Run()
    run.iterate()
    run.last_valid.begin_iteration()
    monkeypatch.setattr(run, "model", None)  # state() raises
    with pytest.raises(AttributeError):
        run.last_valid.begin_update(sound=True)
    monkeypatch.undo()
    assert all(
        torch.equal(*pair) for pair in zip(flat(run.last_valid.state(spoiled=False)), flat(run.state()), strict=True)
    )


@pytest.mark.parametrize("shape", [(), (0,), (3,), (16,), (5, 7)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.uint8])
def test_a_copy_through_a_small_stage_is_exact(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    source = (torch.rand(shape) * 200).to(dtype)
    for value in (source, source.T if len(shape) == 2 else source):  # not contiguous either
        target = torch.empty(value.shape, dtype=dtype)
        copy_staged(target, value, torch.empty(64, dtype=torch.uint8))
        assert torch.equal(target, value)


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
