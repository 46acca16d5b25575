"""Settings, corpora and folders that cannot work: one line that names the culprit, and nothing touched."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ernie_gram import demo
from reader.errors import InputError
from tests.support.commands import ROOT, python
from tests.support.runs import FINISHED, options, pretrain


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--data.max_seq_len=30"], "data.max_seq_len: 32 in the checkpoint, 30 in this run"),
        (["--seed=2"], "seed: 1 in the checkpoint, 2 in this run"),
        (["--trainer.max_steps=30"], "optimizer.decay_steps: 24 in the checkpoint, 30 in this run"),
        (["--trainer.resume=never"], "trainer.resume: never, but"),
        (["--trainer.resume=nowhere"], "nowhere: no such checkpoint"),
        (["--data.batch_size=0"], "data.batch_size: must be positive"),
        (["--data.max_seq_len=8", "--paths.output=elsewhere"], "data.max_seq_len: 8 is too short"),
        (["--model.num_attention_heads=5"], "model.num_attention_heads: 5 heads do not divide"),
        (["--model.max_ngram_tokens=2", "--objective.fine_weight=1"], "model.max_ngram_tokens: 2 is too few"),
        (["--objective.rtd_weight=1"], "objective.rtd_weight: nothing is replaced without a generator"),
        (["--objective.coarse_weight=0"], "objective.coarse_weight: must be positive under explicit masking"),
        (
            ["--objective.masking=contiguous", "--objective.fine_weight=1"],
            "objective.coarse_weight: must be 0 under contiguous masking",
        ),
        (["--objective.fine_weight=-1"], "objective.fine_weight: must not be negative"),
        (["--generator.num_attention_heads=2"], "generator.num_attention_heads: None in the checkpoint, 2 in this run"),
        (["--model.vocab_size=10"], "model.vocab_size: 10 is less than the 1000 tokens"),
        (["--paths.corpus=nowhere"], "nowhere: no corpus there"),
        (["--paths.corpus="], "paths.corpus: must be given"),
        (["--modle.hidden_size=8"], "command line: unknown key modle.hidden_size; did you mean model.hidden_size?"),
        (["--data.batch_size=many"], "command line: Parser key"),
        (["--trainer.device=gpu"], "trainer.device: gpu asked for"),
    ],
)
def test_bad_settings_are_one_line(built: Path, finished: Path, change: list[str], message: str) -> None:
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*")}
    base = FINISHED
    done = pretrain(built, finished, *base, *change)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert message in done.stderr.splitlines()[-1]
    assert not (ROOT / "elsewhere").exists()
    if change != ["--trainer.device=gpu"]:
        assert len(done.stderr.splitlines()) == 1
        assert {path: path.stat().st_mtime_ns for path in finished.rglob("*")} == before


def test_a_held_out_corpus_of_another_vocabulary_is_refused(built: Path, tmp_path: Path) -> None:
    other = tmp_path / "held_out"
    arguments = ["--input", str(built / "held_out.txt"), "--vocab", str(built / "vocab.txt"), "--cased"]
    assert python("-m", "reader.build", "corpus", *arguments, "--output", str(other)).returncode == 0
    done = pretrain(built, tmp_path / "run", f"--paths.held_out={other}")
    assert done.returncode == 2
    assert "paths.held_out" in done.stderr
    assert "another vocabulary" in done.stderr
    assert not (tmp_path / "run").exists()


TOO_MANY = "data.batch_size: 9 processes, but only 8 sequences in a batch; use fewer processes"


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"NPROC": "9"}, TOO_MANY),
        ({"CUDA_VISIBLE_DEVICES": "3,1,0,2,4,5,6,7,9"}, TOO_MANY),
        ({"NPROC": "many"}, "NPROC: many is not a number of processes"),
        ({"NPROC": "0"}, "NPROC: 0 is not a number of processes"),
    ],
)
def test_a_wrong_number_of_processes_is_refused(
    built: Path, tmp_path: Path, environment: dict[str, str], message: str
) -> None:
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run")],
        cwd=ROOT,
        env={**os.environ, "PYTHON": sys.executable, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f"error: {message}\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("visible", "processes"), [(None, 9), ("", 1), ("-1", 1), ("1,-1,2,3,4,5,6,7,8,9", 1), ("0,1,2,3,4,5,6,7,8", 9)]
)
def test_processes_are_as_many_as_visible_gpus(
    built: Path, tmp_path: Path, visible: str | None, processes: int
) -> None:
    """Nine processes are one too many for the batch, and told so."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nseq 9\n")
    tool.chmod(0o755)
    environment = {key: value for key, value in os.environ.items() if key not in ("NPROC", "CUDA_VISIBLE_DEVICES")}
    environment |= {"PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHON": sys.executable}
    environment |= {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    done = subprocess.run(
        [str(ROOT / "run_pretrain.sh"), "conf/pretrain/demo.yaml", *options(built, tmp_path / "run"), "--check"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == (f"error: {TOO_MANY}\n" if processes == 9 else "")
    assert done.returncode == (2 if processes == 9 else 0)


def test_a_folder_in_use_is_refused(built: Path, finished: Path) -> None:
    with (finished / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = pretrain(built, finished, *FINISHED)
    assert done.returncode == 2
    assert "is in use by another process" in done.stderr


@pytest.mark.parametrize("steps", [0, -20, 9])
def test_too_short_a_demo_is_refused_before_the_last_one_is_removed(
    monkeypatch: pytest.MonkeyPatch, steps: int
) -> None:
    removed: list[Path] = []
    monkeypatch.setattr(shutil, "rmtree", lambda path, **_: removed.append(path))
    monkeypatch.setattr(demo, "step", lambda *_, **__: None)
    monkeypatch.setattr(sys, "argv", ["demo", f"--steps={steps}"])
    with pytest.raises(InputError, match=f"--steps: {steps} is too few"):
        demo.main()
    assert removed == []
