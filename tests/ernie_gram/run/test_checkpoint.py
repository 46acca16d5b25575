"""Checkpoints and logs: whole or absent, refused when damaged, and what stops a run costs nothing saved."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.run_log import read_log
from reader.errors import InputError
from tests.support.commands import python
from tests.support.objectives import as_options
from tests.support.runs import FINISHED, options, pretrain, train_losses


def test_checkpoints_rotate_and_hold_what_they_say(finished: Path) -> None:
    assert [path.name for path in checkpoint.checkpoints(finished)] == ["step_16", "step_20", "step_24"]
    state = checkpoint.load_state(finished / "step_20")
    assert (state.step, state.consumed) == (20, 160)
    assert state.learning_rate == pytest.approx(3e-3 * 4 / 22)
    moments = checkpoint.load_optimizer(finished / "step_20")
    assert {f"word_embedding{end}" for end in ("_moment1_0", "_moment2_0", "_beta1_pow_acc_0")} <= moments.keys()
    assert [path.name for path in finished.glob(".*")] == [".lock"]


def test_a_finished_run_has_nothing_to_do(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    before = train_losses(output)
    done = pretrain(built, output, *FINISHED)
    assert done.returncode == 0
    assert "already at step 24" in done.stdout
    assert train_losses(output) == before


DAMAGES = {
    "truncated": lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-9]),
    "altered": lambda path: (path / "state.json").write_text((path / "state.json").read_text().replace("24", "25")),
    "missing": lambda path: (path / "optimizer.safetensors").unlink(),
    "no checksums": lambda path: (path / "checksums.json").write_text("{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_refused_and_the_last_whole_one_offered(
    built: Path, finished: Path, tmp_path: Path, damage: str
) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    DAMAGES[damage](output / "step_24")
    more = FINISHED
    done = pretrain(built, output, *more)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "step_24" in line
    offer = f"--trainer.resume {output / 'step_20'}"
    assert offer in line
    if damage == "truncated":
        done = pretrain(built, output, *more, *offer.split())
        assert done.returncode == 0, done.stderr
        assert train_losses(output) == train_losses(finished)
        checkpoint.verify(output / "step_24")


@pytest.mark.parametrize("which", ["loss", "grad_norm"])
def test_a_loss_that_is_no_number_stops_the_run(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    from ernie_gram.training.program import Program

    plain_run, updates = Program.run, []

    def run(self: Program, *arguments: object) -> dict[str, np.ndarray]:
        fetched = plain_run(self, *arguments)  # type: ignore[arg-type]
        if "loss" in fetched:
            updates.append(1)
            if len(updates) == 7:
                fetched[which] = np.float32("nan")
        return fetched

    monkeypatch.setattr(Program, "run", run)
    output = tmp_path / "run"
    done = pretrain(built, output, "--trainer.max_steps=20", "--trainer.save_every=2", "--trainer.eval_every=1000")
    assert done.returncode == 2
    line = done.stderr.splitlines()[-1]
    assert line.startswith("error: step 7: ")
    assert "nan" in line
    assert f"The last checkpoint is {output / 'step_6'}." in line
    assert checkpoint.checkpoints(output)[-1] == output / "step_6"
    checkpoint.verify(output / "step_6")


def test_a_run_that_diverges_stops_with_its_step(built: Path, tmp_path: Path) -> None:
    """The generator's samples are drawn from what is not finite any more, too."""
    settings = ["--trainer.max_steps=20", "--optimizer.learning_rate=1e30", *as_options("full")]
    done = pretrain(built, tmp_path / "run", *settings)
    assert done.returncode == 2
    assert re.match(r"error: step \d+: the loss is (nan|inf)", done.stderr.splitlines()[-1])


def test_parameters_that_are_no_numbers_are_not_saved(tmp_path: Path) -> None:
    state = checkpoint.State(1, 8, 0.1, {}, {})
    with pytest.raises(InputError, match=r"step_1: not written, b holds"):
        checkpoint.save(tmp_path, state, {"a": np.ones(2), "b": np.array([1, np.inf])}, {}, keep=2)
    assert checkpoint.checkpoints(tmp_path) == []


def test_a_full_disk_is_one_line_and_costs_nothing_saved(built: Path, tmp_path: Path) -> None:
    output = tmp_path / "run"
    more = ["--trainer.max_steps=8", "--trainer.save_every=4", "--trainer.eval_every=1000"]
    # No file may grow beyond 100 KB: the model takes more.
    limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    limited += "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
    limited += "from ernie_gram.pretrain import main; from reader.errors import one_line_errors; one_line_errors(main)"
    done = python("-c", limited, *options(built, output, *more))
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"error: {output / 'step_4'}: could not be written")
    assert not list(output.glob("*step_*"))
    assert pretrain(built, output, *more).returncode == 0
    checkpoint.verify(output / "step_8")


def test_an_evaluation_lost_to_a_kill_is_made_up_for(built: Path, finished: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finished, tmp_path / "run"))
    lines = (output / "log.jsonl").read_text().splitlines(keepends=True)
    assert '"eval"' in lines[-1]
    (output / "log.jsonl").write_text("".join(lines[:-1]))
    done = pretrain(built, output, *FINISHED)
    assert done.returncode == 0
    assert read_log(output) == read_log(finished)


def test_the_log_outlives_a_cut_line(finished: Path, tmp_path: Path) -> None:
    lines = (finished / "log.jsonl").read_text()
    (tmp_path / "log.jsonl").write_text(lines + '{"kind": "tra')
    assert read_log(tmp_path) == read_log(finished) == [json.loads(line) for line in lines.splitlines()]
