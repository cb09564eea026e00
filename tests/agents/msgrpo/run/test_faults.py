"""Every call of a training that writes fails, once or from then on: a checkpoint stays whole, a resume ends equal."""

import shutil
from dataclasses import replace

import pytest

from agents.msgrpo.errors import ConfigError
from agents.msgrpo.run.saving import STATE, check_sums, load_state
from tests.agents.msgrpo import runs
from tests.agents.msgrpo.run.test_no_exit_loses_work import metrics_in
from tests.agents.msgrpo.runs import untimed
from tests.faults import broken, faults, full

SHORT = replace(runs.SHORT, iterations=2, checkpoint_every=1, keep_checkpoints=1, samples_every=1, **runs.ALONE)


@pytest.mark.parametrize(
    ("happen", "lasting", "stride"),
    [
        (full, False, 45),
        pytest.param(broken, True, 10, marks=pytest.mark.slow),
        pytest.param(full, False, 1, marks=pytest.mark.nightly),
        pytest.param(full, True, 10, marks=pytest.mark.slow),
        pytest.param(broken, False, 10, marks=pytest.mark.slow),
        pytest.param(full, True, 3, marks=pytest.mark.nightly),
        pytest.param(broken, False, 3, marks=pytest.mark.nightly),
    ],
)
def test_a_training_keeps_a_whole_checkpoint_and_ends_as_if_nothing_had_happened(
    make_trainer, tmp_path, happen, lasting, stride
):
    out = tmp_path / "out"
    config = replace(SHORT, out=str(out))
    with faults(out) as counting:
        make_trainer(config).train()
    whole, calls = metrics_in(out), counting.calls
    assert {"open", "file.write", "fsync", "replace", "rename", "symlink", "rmdir"} <= set(calls)
    stopped = 0
    for at in range(2, len(calls) + 1, stride):
        what = at, calls[at - 1]
        shutil.rmtree(out)
        try:
            with faults(out, at, happen, lasting=lasting):
                make_trainer(config).train()
        except (OSError, ConfigError):  # which the command says in a sentence
            stopped += 1
        for name in ("last", "best"):
            if (out / name).exists():
                check_sums(out / name)
                assert load_state(out / name)["iteration"] in (0, 1, 2)
        if (out / "last" / STATE).exists():
            trainer = make_trainer(config, resume=out)
        else:
            shutil.rmtree(out, ignore_errors=True)  # as it is told: there was no checkpoint yet
            trainer = make_trainer(config)
        trainer.train()
        assert untimed(metrics_in(out)) == untimed(whole), what
        assert [path.name for path in (out / "checkpoints").iterdir()] == ["iteration-000002"], what
    assert stopped > 0.7 * len(range(2, len(calls) + 1, stride))
