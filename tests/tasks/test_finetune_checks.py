"""What a fine-tuning checks before it starts: rows, settings, the metric, the model, and the output folder."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ernie_gram.config.loading import load_config
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError, InUseError
from tasks.training.config import FinetuneConfig
from tasks.training.data import SHARED, share, shared
from tasks.training.prepare import prepare
from tests.support.commands import assert_every_file_is_own, assert_one_line_error
from tests.support.own_tasks import own_task
from tests.support.tiny_task import DEV_ROWS, TRAIN_ROWS, checked, finetune, options


def test_check_summarises_without_writing(tiny_task: Path, tmp_path: Path) -> None:
    done = finetune(tiny_task, tmp_path / "run", "--check").ok()
    counts = f"{TRAIN_ROWS} rows: {TRAIN_ROWS} examples; {TRAIN_ROWS} samples, {TRAIN_ROWS} inputs"
    assert done.stdout.startswith(f"train    {counts} with 8 tokens on average, 0.00% [UNK]\ndev  ")
    assert "training 32 steps of 8 samples, 4 epochs" in done.stdout
    assert f"output   {tmp_path / 'run'}: starts from step 0" in done.stdout
    assert not (tmp_path / "run").exists()


def test_the_launcher_knows_when_a_rank_hangs(tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[int] = []
    monkeypatch.setenv("NPROC", "2")
    monkeypatch.setattr("tasks.finetune.share", lambda _: None)
    monkeypatch.setattr("tasks.finetune.start_ranks", lambda *given: sys.exit(limits.append(given[2])))
    finetune(tiny_task, tmp_path / "run", "--trainer.hang_seconds=7").ok()
    assert limits == [7]


def damaged(task: Path, folder: Path, name: str, line: int, text: str) -> Path:
    """Return a copy of a tiny task with one line of a data file replaced."""
    copy = Path(shutil.copytree(task, folder / "task"))
    lines = (copy / "data" / name).read_text().splitlines()
    lines[line - 1] = text
    (copy / "data" / name).write_text("\n".join(lines) + "\n")
    return copy


def test_bad_rows_are_skipped_counted_and_listed_if_asked_for(tiny_task: Path, tmp_path: Path) -> None:
    task = damaged(tiny_task, tmp_path, "dev.tsv", 5, "a b c\t7")
    run = checked(task, tmp_path / "run", "--on_bad_row=skip")
    lines = run.describe()
    assert "  bad rows skipped 1:" in lines
    assert any("dev.tsv:5: the label '7'" in line for line in lines)
    run.claim_output().close()
    # Nothing of an earlier training stays that this one does not write again.
    earlier = [tmp_path / "run" / name for name in ("result.json", "predictions_dev.jsonl", "best")]
    earlier[-1].mkdir()
    for path in earlier[:-1]:
        path.touch()
    run.claim_output().close()
    assert not [path for path in earlier if path.exists()]
    assert len(run.dev[0].features) == DEV_ROWS - 1


# The rows of train.tsv and dev.tsv; None for no such split.
@pytest.mark.parametrize(
    ("train", "dev", "warnings"),
    [
        (["a\t0", "b\t1"], ["a\t0", "b\t1"], []),
        (["a\t0", "b\t1"], None, ["the task has no labelled dev split"]),
        (["a 文\t0", "b\t1"], ["文 一\t0", "b\t1"], ["train: 33.33% of the tokens are [UNK]", "dev: 66.67% of "]),
    ],
)
def test_data_that_are_unlikely_to_be_meant_give_a_warning_each(
    tiny_task: Path, tmp_path: Path, train: list[str], dev: list[str] | None, warnings: list[str]
) -> None:
    task = Path(shutil.copytree(tiny_task, tmp_path / "task"))
    if dev is None:
        description = task / "data" / "task.yaml"
        description.write_text(description.read_text().replace(", dev: dev.tsv", ""))
    for name, rows in (("train", train), ("dev", dev or [])):
        (task / "data" / f"{name}.tsv").write_text("\n".join(["text\tlabel", *rows * 40]) + "\n", encoding="utf-8")
    done = finetune(task, tmp_path / "run", "--check").ok()
    lines = done.stderr.splitlines()
    assert all(line.startswith(f"warning: {start}") for line, start in zip(lines, warnings, strict=True))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--task=sst3"], "no task 'sst3'"),
        (["--task="], "task: "),
        (["--paths.model="], "paths.model: "),
        (["--paths.model=nowhere"], "nowhere: "),
        (["--paths.data=nowhere"], "nowhere"),
        (["--input.max_seq_len=512"], "input.max_seq_len: 512 exceeds the 40 positions of "),
        (["--paths.output=/proc/else/run"], "/proc/else/run: "),
    ],
)
def test_what_does_not_fit_is_refused(tiny_task: Path, tmp_path: Path, more: list[str], message: str) -> None:
    assert_one_line_error(finetune(tiny_task, tmp_path / "run", *more), message)
    assert not (tmp_path / "run").exists()


def test_the_variable_stands_for_a_missing_key(
    tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(FinetuneConfig, options(tiny_task, tmp_path / "run"))[0]
    monkeypatch.setenv("DATA", str(tmp_path / "nowhere"))
    assert prepare(config).config.paths.data == config.paths.data
    monkeypatch.setenv("DATA", config.paths.data)
    without = replace(config, paths=replace(config.paths, data=""))
    assert prepare(without).config.paths.data == config.paths.data
    monkeypatch.delenv("DATA")
    with pytest.raises(InputError, match=r"^paths\.data: must be given, or DATA"):
        prepare(without)


def test_a_pair_needs_two_sentence_types_and_a_metric_fits_the_files(tiny_task: Path, tmp_path: Path) -> None:
    model = read_model(tiny_task / "model")
    parameters = {**model.parameters, "sent_embedding": model.parameters["sent_embedding"][:1]}
    model = replace(model, config=replace(model.config, sent_type_vocab_size=1), parameters=parameters)
    write_model(model, tmp_path / "model", "ernie_gram")
    more = (f"--paths.model={tmp_path / 'model'}", "--check")
    assert finetune(tiny_task, tmp_path / "run", *more).returncode == 0
    task = own_task(tmp_path / "data", "multiple_choice")
    done = finetune(tiny_task, tmp_path / "run", *more, f"--task={task}", f"--paths.data={tmp_path / 'data'}")
    assert_one_line_error(done, f"paths.model: {tmp_path / 'model'} has one sentence type ")
    task.write_text(task.read_text().replace('"accuracy"', '"race"'))
    done = finetune(tiny_task, tmp_path / "run", f"--task={task}", f"--paths.data={tmp_path / 'data'}")
    assert_one_line_error(done, f"{tmp_path / 'data' / 'dev.jsonl'}: the metric race does not fit: the ID '0' ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("more", [[], ["--check"]])
def test_a_wrong_output_is_refused_before_the_data_are_read(tiny_task: Path, tmp_path: Path, more: list[str]) -> None:
    done = finetune(tiny_task, tiny_task / "model", "--paths.data=nowhere", *more)
    assert_one_line_error(done, f"paths.output: {tiny_task / 'model'} is the folder of a model; choose another")
    with lock_output(tmp_path / "run"):
        done = finetune(tiny_task, tmp_path / "run", *more)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert f"paths.output: {tmp_path / 'run'} is in use by process {os.getpid()} on " in done.stderr


def test_checkpoints_that_another_process_wrote_are_kept_and_no_file_of_a_run_is_an_output(
    tiny_task: Path, finetuned: Path, tmp_path: Path
) -> None:
    run = checked(tiny_task, tmp_path / "run")
    shutil.copytree(finetuned, tmp_path / "run")
    with pytest.raises(InUseError, match=f"the checkpoints in {tmp_path / 'run'} have changed meanwhile; run the comm"):
        run.claim_output()
    checked(tiny_task, tmp_path / "run").claim_output().close()
    assert_every_file_is_own(finetuned, "(run|checkpoint)")


def test_a_new_training_removes_an_earlier_best_model_and_not_that_of_a_finished_run(
    tiny_task: Path, finetuned: Path, tmp_path: Path
) -> None:
    output = Path(shutil.copytree(finetuned, tmp_path / "run"))

    def claim() -> None:
        checked(tiny_task, output, "--seed=1").claim_output().close()

    (output / "result.json").rename(tmp_path / "result.json")
    claim()
    assert (output / "best").is_dir()
    for path in output.glob("step_*"):
        shutil.rmtree(path)
    (tmp_path / "result.json").rename(output / "result.json")
    done = finetune(tiny_task, output)
    assert f"paths.output: {output} has a finished run whose checkpoints were removed" in done.stderr
    assert read_model(output).source == output / "best"
    (output / "result.json").unlink()
    claim()
    assert not (output / "best").exists()


def test_a_model_without_vocabulary_or_with_a_larger_one_is_refused(tiny_task: Path, tmp_path: Path) -> None:
    model = Path(shutil.copytree(tiny_task / "model", tmp_path / "model"))
    vocabulary = (model / "vocab.txt").read_text()
    (model / "vocab.txt").write_text(f"{vocabulary}more\n")
    command = (tiny_task, tmp_path / "run", f"--paths.model={model}")
    assert_one_line_error(finetune(*command), f"{model / 'vocab.txt'}: 24 tokens")
    (model / "vocab.txt").unlink()
    assert "has no vocabulary" in finetune(*command).stderr


def test_a_run_with_other_settings_or_data_is_not_resumed(tiny_task: Path, finetuned: Path, tmp_path: Path) -> None:
    output = Path(shutil.copytree(finetuned, tmp_path / "run"))
    done = finetune(tiny_task, output, "--seed=2")
    assert "belongs to another run (seed: 1 in the checkpoint, 2 in this run)" in done.stderr
    changed = damaged(tiny_task, tmp_path, "train.tsv", 5, "a b c\t0")
    done = finetune(changed, output)
    assert "belongs to another run (data.train: " in done.stderr
    assert (output / "result.json").exists()
    description = changed / "data" / "task.yaml"
    description.write_text(description.read_text().replace("dev: dev.tsv", "dev: dev.tsv, test: dev.tsv"))
    run = checked(changed, tmp_path / "new")
    assert {"data.train", "data.dev", "data.test"} <= run.identity.keys()


def test_processes_take_the_data_of_a_launcher(
    tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, _ = load_config(FinetuneConfig, options(tiny_task, tmp_path / "run"))
    launcher = prepare(config, 2)
    monkeypatch.setenv(SHARED, "")
    share(launcher.data)
    # As in another process.
    monkeypatch.setattr("tasks.training.prepare.read_data", None)
    run = prepare(config, 2, is_first=False)
    os.close(int(Path(os.environ[SHARED]).name))
    assert run.describe() == launcher.describe()
    assert run.identity == launcher.identity
    assert run.kind.task == launcher.kind.task


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_on_a_full_disk_nothing_is_shared(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, "")
    monkeypatch.setattr("tempfile.TemporaryFile", partial(open, "/dev/full", "wb"))
    share(b"x" * size)
    assert shared() is None
