"""The command for sweeps: it trains every combination once, resumes, goes on after a failed run, and makes a table."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ernie_gram import pretrain
from ernie_gram.run.run_folder import lock_output
from tasks import finetune, sweep
from tasks.sweep import main
from tests.support.commands import ERNIE_GRAM, assert_one_line_error, call, kill_when
from tests.support.runs import TINY
from tests.support.static_programs import call_in_scope
from tests.support.task_files import write
from tests.support.tiny_task import LETTERS, SETTINGS

RATE, EPOCHS = "optimizer.learning_rate", "optimizer.epochs"
# Without what the sweeps of the tests vary.
FIXED = [option for option in SETTINGS if not option.startswith((f"--{RATE}", f"--{EPOCHS}", "--optimizer.batch_size"))]


def arguments(task: Path, output: Path, *more: str) -> list[str]:
    """Return the arguments of the command for the tiny task."""
    options = ["--data", str(task / "data"), "--output", str(output), *FIXED]
    return [str(task / "data" / "task.yaml"), str(task / "model"), *options, *more]


def results(output: Path) -> dict[str, dict[str, Any]]:
    lines = (output / "results.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    assert len({record["run"] for record in records}) == len(records)
    return {record["run"]: record for record in records}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command train in this process, one run after another."""

    def train_here(
        runs: Sequence[sweep.PlannedRun], jobs: int, processes: int, ended: Callable[[sweep.PlannedRun], str | None]
    ) -> list[str]:
        failed = []
        for run in runs:
            _, name, *options = run.command
            done = call_in_scope(finetune.main if name == "finetune" else pretrain.main, *options)
            if done.returncode or ended(run) is None:
                failed.append(f"{run.name}: {done.stderr}")
        return failed

    monkeypatch.setattr(sweep, "train_all", train_here)


def write_data(folder: Path) -> None:
    """Write the files of two tasks of the benchmark `chinese`, and one file of a third."""
    random = np.random.default_rng(0)
    for split, count in (("train", 24), ("dev", 11)):
        texts = [" ".join(random.choice(list(LETTERS), 5)) for _ in range(2 * count)]
        pairs = [f"{a}\t{b}\t{i % 2}\n" for i, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))]
        write(folder / "lcqmc" / f"{split}.tsv", "text_a\ttext_b\tlabel\n" + "".join(pairs))
        single = "".join(f"{i % 2}\t{text}\n" for i, text in enumerate(texts))
        write(folder / "chnsenticorp" / f"{split}.tsv", "label\ttext_a\n" + single)
    write(folder / "xnli" / "dev.tsv", "text_a\ttext_b\tlabel\na\tb\tneutral\n")


@pytest.mark.usefixtures("here")
def test_the_tasks_of_a_benchmark_are_trained_once_if_they_are_there(tiny_task: Path, tmp_path: Path) -> None:
    data, output = tmp_path / "data", tmp_path / "out"
    write_data(data)
    paths = [str(tiny_task / "model"), "--data", str(data), "--output", str(output)]
    command = [*paths, *SETTINGS, "--optimizer.epochs=1"]
    call(main, "lcqmc", *command).ok()
    done = call(main, "chinese", *command).ok()
    first, second, *_ = done.stdout.splitlines()
    assert first == f"no files in {data}: xnli, drcd, cmrc2018, dureader, dureader_robust, msra_ner"
    assert second.startswith("2 runs, 1 finished before")
    assert list(results(output)) == ["lcqmc,seed=1", "chnsenticorp,seed=1"]
    text = (output / "table.md").read_text()
    assert text in done.stdout
    rows = (
        "| xnli |  | 0 | - ",
        "| lcqmc | accuracy | 1 | ",
        "| mean of 2 tasks | ",
        "| dev.accuracy 90.6, test.accuracy 88.5 |",
    )
    for row in rows:
        assert row in text
    assert text.endswith("ERNIE-Gram (Chinese): published by the paper (Xiao et al., NAACL 2021).\n")
    # A recorded run needs no folder.
    shutil.rmtree(output / "lcqmc,seed=1")
    assert "2 runs, 2 finished before" in call(main, "chinese", *command).stdout
    assert not (output / "lcqmc,seed=1").exists()
    # With other data or settings the same run is refused.
    done = call(main, "lcqmc", *command, "--optimizer.weight_decay=0.5")
    assert_one_line_error(done, f"{output / 'lcqmc,seed=1'}: has the result of another run (optimizer.weight_decay: ")


def pretrainings(built: Path, folder: Path) -> list[str]:
    """Write the settings of two pre-trainings, and return them as options with those of both."""
    for name, weight in (("one", 0.1), ("two", 0.2)):
        write(folder / f"{name}.yaml", f"optimizer: {{weight_decay: {weight}}}\n")
    paths = [f"--pretrain.paths.{name}={built / name}" for name in ("corpus", "held_out")]
    tiny = [f"--pretrain.{option[2:]}" for option in TINY]
    steps = [f"--pretrain.trainer.{key}=4" for key in ("max_steps", "eval_every", "save_every")]
    steps.append("--pretrain.trainer.eval_sequences=20")
    return [*tiny, *paths, *steps, "--pretrain", str(folder / "one.yaml"), str(folder / "two.yaml")]


@pytest.mark.usefixtures("here")
def test_models_are_pre_trained_and_each_is_fine_tuned(built: Path, tiny_task: Path, tmp_path: Path) -> None:
    output, task = tmp_path / "out", tiny_task / "data" / "task.yaml"
    common = ["--data", str(tiny_task / "data"), "--output", str(output), *FIXED, "--vary", EPOCHS, "1"]
    command = [str(task), *common, *pretrainings(built, tmp_path)]
    call(main, *command, "--check").ok()
    assert not output.exists()
    # What an interrupted pre-training has left is no model yet.
    write(output / "one,seed=1" / "console.txt", "")
    call(main, *command).ok()
    records = results(output)
    names = [f"task,pretrain={name},epochs=1,pretrain_seed=1,seed=1" for name in ("one", "two")]
    assert list(records) == ["one,seed=1", "two,seed=1", *names]
    model, tuned = records["two,seed=1"], records[names[-1]]
    assert [each["step"] for each in model["curve"]] == [0, 4]
    assert model["curve"][-1]["ngram_perplexity"] == model["result"]["ngram_perplexity"] > 1
    assert (model["settings"]["optimizer.weight_decay"], model["varied"]) == (0.2, {"pretrain": "two"})
    assert (tuned["varied"], tuned["pretrain_seed"]) == ({"pretrain": "two", EPOCHS: "1"}, 1)
    text = (output / "table.md").read_text()
    assert "| task | two | 1 | accuracy | 1 | " in text
    assert "| pre-training | two |  | ngram_perplexity | 1 | " in text
    # Nothing is repeated, even without the folders.
    for name in records:
        shutil.rmtree(output / name)
    assert "4 runs, 4 finished before" in call(main, *command).stdout
    assert (output / "table.md").read_text() == text
    # One fine-tuning is missing: its model is trained again.
    lines = (output / "results.jsonl").read_text().splitlines(keepends=True)
    (output / "results.jsonl").write_text("".join(lines[:-1]) + '{"run": "ha')
    call(main, *command).ok()
    assert sorted(path.name for path in output.iterdir() if path.is_dir()) == sorted(["two,seed=1", names[-1]])
    assert json.loads((output / "results.jsonl").read_text().splitlines()[-1])["result"]["score"] > 0
    # Other settings of a pre-training are refused, and of its evaluations, which would not compare.
    for option, difference in (("data.batch_size=4", "8"), ("trainer.eval_sequences=10", "20")):
        done = call(main, *command, f"--pretrain.{option}")
        assert (done.returncode, done.stdout) == (2, "")
        assert f"{option.partition('=')[0]}: {difference} in " in done.stderr


@pytest.mark.usefixtures("here")
def test_a_grid_of_pre_training_alone_and_a_failed_one(built: Path, tiny_task: Path, tmp_path: Path) -> None:
    output, options = tmp_path / "out", pretrainings(built, tmp_path)
    rates = ["--vary", "pretrain.optimizer.learning_rate", "3e-3", "1e30", "--pretrain.optimizer.max_grad_norm=1e30"]
    options = [option for option in options if "learning_rate" not in option][:-1]
    task = [str(tiny_task / "data" / "task.yaml"), "--data", str(tiny_task / "data"), *FIXED, "--vary", EPOCHS, "1"]
    error = call(main, *task, *options, *rates, "--output", str(output)).refused()
    assert "one,learning_rate=1e+30,seed=1: " in error
    tuned = "task,pretrain=one,learning_rate=0.003,epochs=1,pretrain_seed=1,seed=1"
    found = results(output)
    assert list(found) == ["one,learning_rate=0.003,seed=1", tuned]
    varied = {"pretrain": "one", "pretrain.optimizer.learning_rate": "0.003"}
    assert [each["varied"] for each in found.values()] == [varied, varied | {EPOCHS: "1"}]


@pytest.mark.usefixtures("here")
def test_a_killed_sweep_resumes(tiny_task: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    command = arguments(tiny_task, output, "--vary", RATE, "1e-2", "--vary", EPOCHS, "1")
    run = output / "task,learning_rate=0.01,epochs=1,seed=1"
    kill_when([*ERNIE_GRAM, "sweep", *command], lambda: (run / "console.txt").exists())
    call(main, *command).ok()
    score = json.loads((run / "result.json").read_text())["score"]
    assert results(output)[run.name]["result"]["score"] == 100 * score


def test_a_sweep_refuses_a_run_that_another_process_trains(tiny_task: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    output.mkdir()
    with lock_output(output / "task,learning_rate=0.02,seed=1"):
        done = call(main, *arguments(tiny_task, output, "--vary", RATE, "2e-2"))
    assert done.returncode == 1
    assert "learning_rate=0.02,seed=1 is in use by process" in done.stderr
    assert len(list(output.iterdir())) == 1


def test_a_check_counts_the_runs_writes_nothing_and_names_tasks_in_errors(tiny_task: Path, tmp_path: Path) -> None:
    write_data(tmp_path)
    output, options = tmp_path / "out", ["--data", str(tmp_path), "--output", str(tmp_path / "out"), *SETTINGS]
    done = call(main, "chinese", str(tiny_task / "model"), *options, "--seeds", "2", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("4 runs, 0 finished before; ")
    for task in ("lcqmc", "chnsenticorp"):
        more = "--input.max_seq_len=4000"
        done = call(main, "chinese" if task == "lcqmc" else task, str(tiny_task / "model"), *options, more, "--check")
        assert done.refused().startswith(f"error: {task}: {more[2:].partition('=')[0]}: ")
    assert not output.exists()


def test_tasks_come_before_models_and_options(tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned: list[sweep.PlannedRun] = []
    monkeypatch.setattr(sweep, "check_finetunings", lambda runs, *_: planned.extend(runs))
    options = ["--on_bad_row", "skip", "mrpc", "cola", "--input.max_seq_len", "16", "a/m", "--jobs", "2", "b/n"]
    call(main, *options, "--data", str(tmp_path), "--output", str(tmp_path / "out"), "--check").ok()
    assert [run.name for run in planned] == [f"{task},model={m},seed=1" for task in ("mrpc", "cola") for m in "mn"]
    assert {(run.config.on_bad_row, run.config.input.max_seq_len) for run in planned} == {("skip", 16)}
    monkeypatch.setenv("DATA", "other")
    planned: list[str] = []
    monkeypatch.setattr(sweep, "check_finetunings", lambda runs, *_: planned.extend(r.config.paths.data for r in runs))
    mine, none = (write(tmp_path / f"{data}.yaml", f"task: mrpc\npaths: {{data: '{data}'}}\n") for data in ("mine", ""))
    for own, option in ((mine, []), (mine, ["--data", "given"]), (mine, ["--paths.data", "x"]), (none, [])):
        call(main, str(own), str(tmp_path / "model"), "--output", str(tmp_path / "out"), *option, "--check")
    assert planned == ["mine", "given", "x", "other"]


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--grid", "papers"], "conf/grids/papers.yaml"),
        (["--grid", "paper"], "paper.yaml: has no grid for"),
        (["--vary", "optimizer.epoch", "3"], "unknown key optimizer.epoch"),
        (["--vary", "optimizer.epochs"], "--vary: optimizer.epochs"),
        (["--vary", EPOCHS, "3", "--optimizer.epochs=2"], "--optimizer.epochs: "),
        (["--seed=3"], "--seed: "),
        (["--vary", RATE, "1e-3", "0.001"], "task,learning_rate=0.001,seed=1"),
        (["--vary", EPOCHS, "3", "--vary", EPOCHS, "2"], "--vary: optimizer.epochs"),
        (["--vary", "paths.output", "a", "b"], "paths.output: cannot vary"),
        (["--vary", "optimizer.batch_size", "0"], "optimizer.batch_size: "),
        (["--processes", "2", "--vary", "optimizer.batch_size", "1"], "optimizer.batch_size: "),
        (["--pretrain.seed=2"], "--pretrain: must be given"),
        (["--pretrain", "x.yaml"], "MODEL: "),
    ],
)
def test_errors_are_found_before_any_training(tiny_task: Path, tmp_path: Path, more: list[str], message: str) -> None:
    assert message in call(main, *arguments(tiny_task, tmp_path / "sweep", *more)).refused()
    assert not (tmp_path / "sweep").exists()


def test_tasks_and_models_must_be_there_and_the_folder_of_a_run_is_refused(tiny_task: Path, tmp_path: Path) -> None:
    model, common = str(tiny_task / "model"), ["--data", str(tmp_path), "--output", str(tmp_path / "out")]
    for names, message in (
        (["germn", model], "no task 'germn'"),
        (["clue", model], f"{tmp_path}: has no files of afqmc"),
        (["mrpc"], "TASK and MODEL: "),
        (["--pretrain", "x.yaml"], "x.yaml"),
    ):
        assert message in call(main, *names, *common).refused()
    (tmp_path / "log.jsonl").touch()
    assert call(main, *arguments(tiny_task, tmp_path)).refused().startswith("error: --output: ")
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
