"""The folder of a run: only one run may use it at a time, and only the same run may continue it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import Identity, lock_output, resume_checkpoint
from reader.errors import InputError
from tests.support.commands import assert_every_file_is_own, assert_one_line_error
from tests.support.runs import FINISHED, pretrain


def test_a_run_folder_in_use_is_refused_by_the_training_and_its_check(built: Path, run_copy: Path) -> None:
    with lock_output(run_copy):
        for more in ([], ["--check"]):
            done = pretrain(built, run_copy, *FINISHED, *more)
            assert_one_line_error(done, f"paths.output: {run_copy} is in use by process {os.getpid()} on ", 1)


def test_checkpoints_that_another_process_has_written_meanwhile_are_not_removed(
    built: Path, finished: Path, run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends after this run has chosen its checkpoint, and before this run locks the folder."""
    shutil.rmtree(run_copy / "step_24")

    def end_of_the_other(*_: object) -> None:
        shutil.copytree(finished / "step_24", run_copy / "step_24")

    monkeypatch.setattr("ernie_gram.pretrain.check_output", end_of_the_other)
    saved = (finished / "step_24" / checkpoint.STATE).stat().st_mtime_ns
    done = pretrain(built, run_copy, *FINISHED)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("error: paths.output: ")
    assert (run_copy / "step_24" / checkpoint.STATE).stat().st_mtime_ns == saved


def test_no_file_of_a_corpus_or_of_a_run_may_be_an_output(built: Path, finished: Path) -> None:
    assert_every_file_is_own(built / "corpus", "corpus")
    assert_every_file_is_own(finished, "(run|checkpoint)")


def test_a_setting_that_an_earlier_version_lacks_has_its_default(tmp_path: Path) -> None:
    refusal(tmp_path, {"a.old": 1}, {"a.old": 2})
    mine = {"a.old": 1, "a.new": 5}
    defaults = {"a.old": 7, "a.new": 5, "trainer.log_every": 3}
    assert resume_checkpoint(tmp_path, mine, defaults=defaults)[1] == tmp_path / "step_1"
    with pytest.raises(InputError, match=r"a\.new: 5 in the checkpoint, 6 in this run"):
        resume_checkpoint(tmp_path, mine | {"a.new": 6}, defaults=defaults)


def refusal(folder: Path, theirs: Identity, mine: Identity) -> str:
    """Return the error when a run meets the checkpoint of another one."""
    checkpoint.save(folder, checkpoint.State(1, 1, 0.0, theirs, {}), {"w": np.zeros(1)}, {"w": np.zeros(1)}, 1)
    with pytest.raises(InputError) as caught:
        resume_checkpoint(folder, mine)
    return str(caught.value).removeprefix(f"{folder / 'step_1'}: ")


def test_what_differs_is_named_with_short_digests(tmp_path: Path) -> None:
    found = refusal(tmp_path, {"seed": 1}, {"task": f"my (task) ({'b' * 16})", "seed": 2})
    assert "(seed: 1 in the checkpoint, 2 in this run; task: None in the checkpoint, my (task) " in found
    found = refusal(tmp_path, {"corpus": "c" * 64}, {"corpus": "c" * 63 + "d", "lexicon": "e" * 64})
    assert f"(corpus: {'c' * 12} in the checkpoint, {'c' * 12} in this run; lexicon: None " in found
