"""Checkpoints: written completely or not at all, kept in rotation, and refused when damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.pretraining.prepare import prepare
from ernie_gram.run import checkpoint
from reader.errors import InputError
from reader.system.atomic_files import sha256_of
from tests.support.commands import ROOT, python
from tests.support.configs import load
from tests.support.runs import FINISHED, options, pretrain, train_losses


def test_checkpoints_rotate_and_hold_state_and_optimizer(finished: Path) -> None:
    assert [path.name for path in checkpoint.checkpoints(finished)] == ["step_16", "step_20", "step_24"]
    state = checkpoint.load_state(finished / "step_20")
    assert (state.step, state.consumed) == (20, 160)
    assert state.learning_rate == pytest.approx(3e-3 * 4 / 22)
    moments = checkpoint.load_optimizer(finished / "step_20")
    assert {f"word_embedding{end}" for end in ("_moment1_0", "_moment2_0", "_beta1_pow_acc_0")} <= moments.keys()
    assert [path.name for path in finished.glob(".*")] == [".lock"]


DAMAGES = {
    "truncated": lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-9]),
    "altered": lambda path: (path / "state.json").write_text((path / "state.json").read_text().replace("24", "25")),
    "missing": lambda path: (path / "optimizer.safetensors").unlink(),
    "no checksums": lambda path: (path / "checksums.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_the_newest_valid_one_is_suggested(
    built: Path, finished: Path, tmp_path: Path, damage: str
) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    DAMAGES[damage](output / "step_24")
    more = FINISHED
    done = pretrain(built, output, *more)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "step_24" in line
    suggestion = f"--trainer.resume {output / 'step_20'}"
    assert suggestion in line
    if damage == "truncated":
        done = pretrain(built, output, *more, *suggestion.split())
        assert done.returncode == 0, done.stderr
        assert train_losses(output) == train_losses(finished)
        checkpoint.verify(output / "step_24")


@pytest.mark.parametrize("resume", ["auto", "step_20", "elsewhere"])
def test_a_resumed_run_reads_each_file_of_its_checkpoint_once_to_verify_it(
    built: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resume: str
) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    chosen = {"auto": output / "step_24", "step_20": output / "step_20", "elsewhere": finished / "step_20"}[resume]
    hashed: list[Path] = []
    monkeypatch.setattr(checkpoint, "sha256_of", lambda path: hashed.append(path) or sha256_of(path))
    config = load(*options(built, output, *FINISHED, f"--trainer.resume={'auto' if resume == 'auto' else chosen}"))
    assert prepare(config, 2).resume_from == chosen
    assert sorted(path for path in hashed if path.parent == chosen and path.name != checkpoint.STATE) == [
        chosen / checkpoint.MODEL,
        chosen / checkpoint.OPTIMIZER,
    ]
    assert {path.name for path in hashed if path.parent != chosen} <= {checkpoint.STATE}
    if resume == "auto":
        assert len(hashed) == 3
    # The other ranks read the state only, and leave the large files to rank 0.
    hashed.clear()
    assert prepare(config, 2, rank=1).resume_from == chosen
    assert {path.name for path in hashed} == {checkpoint.STATE}


def test_a_checkpoint_that_only_rank_0_finds_damaged_stops_all_processes(
    built: Path, finished: Path, tmp_path: Path
) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    DAMAGES["truncated"](output / "step_24")
    arguments = options(built, output, *FINISHED, "--trainer.max_steps=24")
    launcher = ["-m", "paddle.distributed.launch", "--nproc_per_node=2", f"--log_dir={tmp_path / 'log'}"]
    done = python(*launcher, str(ROOT / "ernie_gram" / "pretrain.py"), *arguments)
    assert done.returncode != 0
    assert "model.safetensors: truncated or altered" in done.stdout
    assert train_losses(output) == train_losses(finished)


def test_parameters_that_are_not_finite_are_not_saved(tmp_path: Path) -> None:
    state = checkpoint.State(1, 8, 0.1, {}, {})
    with pytest.raises(InputError, match=r"step_1: not written, b holds"):
        checkpoint.save(tmp_path, state, {"a": np.ones(2), "b": np.array([1, np.inf])}, {}, keep=2)
    assert checkpoint.checkpoints(tmp_path) == []


def test_a_full_disk_gives_a_one_line_error_and_leaves_no_partial_checkpoint(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    more = ["--trainer.max_steps=8", "--trainer.save_every=4", "--trainer.eval_every=1000"]
    # Limit every file to 100 KB, which is less than the size of the model.
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
    limited += "from ernie_gram.pretrain import main; from reader.errors import one_line_errors; one_line_errors(main)"
    done = python("-c", limited, *options(built, output, *more))
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {output / 'step_4'}: could not be written")
    assert not list(output.glob("*step_*"))
    assert pretrain(built, output, *more).returncode == 0
    checkpoint.verify(output / "step_8")
