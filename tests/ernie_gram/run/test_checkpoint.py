"""Checkpoints: written completely or not at all, kept in rotation, and refused when damaged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from safetensors.numpy import load_file

from ernie_gram.pretraining.prepare import prepare
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError, InUseError
from reader.system.atomic_files import sha256_of
from tests.support.commands import in_ranks, python
from tests.support.objectives import load
from tests.support.runs import FINISHED, options, train_losses


def test_checkpoints_rotate_and_hold_state_and_optimizer(finished: Path) -> None:
    assert [path.name for path in checkpoint.checkpoints(finished)] == ["step_16", "step_20", "step_24"]
    state = checkpoint.load_state(finished / "step_20")
    assert (state.step, state.consumed) == (20, 160)
    assert state.learning_rate == pytest.approx(3e-3 * 4 / 22)
    moments = checkpoint.load_optimizer(finished / "step_20")
    assert {"word_embedding_moment1_0", "word_embedding_moment2_0", "beta1_power", "beta2_power"} <= moments.keys()
    assert [path.name for path in finished.glob(".*")] == [".lock"]


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    """Remove the last bytes of a file."""
    path.write_bytes(path.read_bytes()[:-9])


FILES = (*checkpoint.FILES, checkpoint.CHECKSUMS)


@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_checkpoint_is_passed_over_with_a_warning(
    built: Path, run_copy: Path, capsys: pytest.CaptureFixture[str], damage: Callable[..., None], name: str
) -> None:
    damage(run_copy / "step_24" / name)
    config = load(*options(built, run_copy, *FINISHED))
    assert prepare(config, 1).resume_from == run_copy / "step_20"
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {run_copy / 'step_24'}/")
    if name == checkpoint.STATE:
        damage(run_copy / "step_16" / name)
        damage(run_copy / "step_20" / name)
        with pytest.raises(InputError, match=r"step_24/.*no valid checkpoint"):
            prepare(config, 1)


def test_a_resumed_run_reads_each_file_of_its_checkpoint_once_to_verify_it(
    built: Path, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = run_copy / "step_24"
    hashed: list[Path] = []
    monkeypatch.setattr(checkpoint, "sha256_of", lambda path: hashed.append(path) or sha256_of(path))
    config = load(*options(built, run_copy, *FINISHED))
    assert prepare(config, 2).resume_from == chosen
    large = [path for path in hashed if path.name != checkpoint.STATE]
    assert sorted(large) == [chosen / checkpoint.MODEL, chosen / checkpoint.OPTIMIZER]
    # The other ranks read the state only, and leave the large files to rank 0.
    hashed.clear()
    assert prepare(config, 2, is_first=False).resume_from == chosen
    assert {path.name for path in hashed} == {checkpoint.STATE}


def test_a_locked_folder_is_refused_before_its_checkpoints_are_read(built: Path, run_copy: Path) -> None:
    config = load(*options(built, run_copy, *FINISHED))
    with lock_output(run_copy), pytest.raises(InUseError, match="is in use by process"):
        prepare(config, 1)


def test_old_checkpoints_that_cannot_be_removed_are_no_failure(run_copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "remove_folder", Mock(side_effect=OSError("quota exceeded")))
    model = checkpoint.load_model(run_copy / "step_24")
    state = replace(checkpoint.load_state(run_copy / "step_24"), step=25)
    assert checkpoint.save(run_copy, state, model, checkpoint.load_optimizer(run_copy / "step_24"), 1).name == "step_25"
    checkpoint.verify(run_copy / "step_25")


def test_all_processes_pass_over_a_checkpoint_that_only_rank_0_finds_damaged(
    built: Path, finished: Path, run_copy: Path, tmp_path: Path
) -> None:
    flip(run_copy / "step_24" / checkpoint.MODEL)
    done = python(*in_ranks(tmp_path / "log"), *options(built, run_copy, *FINISHED)).ok()
    assert "model.safetensors: truncated or altered" in done.stdout
    assert "step_20 is used instead" in done.stdout
    # From step 20 on, with other dropout, because two ranks draw other random numbers than one.
    assert [loss for loss in train_losses(run_copy) if loss[0] <= 20] == train_losses(finished)[:20]
    assert [step for step, *_ in train_losses(run_copy)] == [*range(1, 25)]
    checkpoint.verify(run_copy / "step_24")


def test_a_full_disk_does_not_stop_training_and_leaves_no_partial_checkpoint(
    built: Path, finished: Path, tmp_path: Path
) -> None:
    # Functions that are compiled for the first time need more; since the run `finished` they are in the cache.
    output = tmp_path / "run"
    more = ["--trainer.max_steps=12", "--trainer.save_every=4", "--trainer.eval_every=1000"]
    # A file may have 100 KB at most, which is less than the model; with `lifted`, only until the first save.
    lifted = """
from ernie_gram.training.trainer import Trainer
def save(self, save=Trainer.save):
    save(self)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
Trainer.save = save
"""
    limited = """
import resource, signal
from ernie_gram.pretrain import main
from reader.errors import one_line_errors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
{}
one_line_errors(main)
"""
    done = python("-c", limited.format(""), *options(built, output, *more))
    assert done.returncode == 2, done.stderr
    lines = [line for line in done.stderr.splitlines() if "step_" in line]
    refused = "the checkpoint is not saved: " + str(output)
    starts = [
        *(f"warning: {refused}/step_{n}: could not be written" for n in (4, 8, 12)),
        f"error: {refused}/step_12: ",
    ]
    assert [line[: len(start)] for line, start in zip(lines, starts, strict=True)] == starts
    assert len(train_losses(output)) == 12
    assert not list(output.glob("*step_*"))
    done = python("-c", limited.format(lifted), *options(built, output, *more)).ok()
    (line,) = (line for line in done.stderr.splitlines() if "is not saved" in line)
    assert line.startswith(f"warning: {refused}/step_4: ")
    assert [path.name for path in checkpoint.checkpoints(output)] == ["step_8", "step_12"]
    checkpoint.verify(output / "step_12")


def test_arrays_in_any_order_of_their_axes_are_written_as_they_are(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    checkpoint.save_safetensors(tmp_path / "x", {"turned": array.T, "part": array[:, ::2]})
    found = load_file(tmp_path / "x")
    np.testing.assert_array_equal(found["turned"], array.T)
    np.testing.assert_array_equal(found["part"], array[:, ::2])
