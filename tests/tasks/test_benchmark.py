"""The command for a benchmark: runs the tasks that are there, names the missing ones, and prints one table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ernie_gram.experiments import processes
from tasks import benchmark
from tasks.benchmark import main
from tests.support.commands import Done, call
from tests.support.task_files import write
from tests.support.tiny_task import LETTERS, SETTINGS
from tests.support.toy_study import train_here


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Done:
    monkeypatch.setattr(processes, "train_each", train_here)
    return call(main, *arguments)


def write_data(folder: Path) -> None:
    random = np.random.default_rng(0)
    for split, count in (("train", 24), ("dev", 11)):
        texts = [" ".join(random.choice(list(LETTERS), 5)) for _ in range(2 * count)]
        pairs = [f"{a}\t{b}\t{i % 2}\n" for i, (a, b) in enumerate(zip(texts[::2], texts[1::2], strict=True))]
        write(folder / "lcqmc" / f"{split}.tsv", "text_a\ttext_b\tlabel\n" + "".join(pairs))
        single = "".join(f"{i % 2}\t{text}\n" for i, text in enumerate(texts))
        write(folder / "chnsenticorp" / f"{split}.tsv", "label\ttext_a\n" + single)
    write(folder / "xnli" / "dev.tsv", "text_a\ttext_b\tlabel\na\tb\tneutral\n")


def test_the_tasks_that_are_there_are_trained_once_and_the_others_are_named(
    tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, output = tmp_path / "data", tmp_path / "out"
    write_data(data)
    options = ["--data", str(data), "--output", str(output), *SETTINGS, "--optimizer.epochs=1"]
    command = ["chinese", str(tiny_task / "model"), *options]
    done = run(monkeypatch, *command, "--seeds", "2")
    assert done.returncode == 0, done.stderr
    first = done.stdout.splitlines()[0]
    assert first == f"no files in {data}: xnli, drcd, cmrc2018, dureader, dureader_robust, msra_ner"
    assert {path.name for path in output.iterdir() if path.is_dir()} == {
        f"{task},seed={seed}" for task in ("lcqmc", "chnsenticorp") for seed in (1, 2)
    }
    text = (output / "table.md").read_text()
    assert text in done.stdout
    lines = text.splitlines()
    assert lines[4] == "| XNLI (zh) | dev | accuracy | 0 | - | - | - | - |"
    assert lines[5].startswith("| LCQMC | dev | accuracy | 2 | ")
    [mean] = [line for line in lines if line.startswith("Mean of the scores of 2 of 8 tasks: ")]
    assert lines[lines.index(mean) + 1 :] == [
        f"{name}: PaddleNLP, examples/benchmark/clue." for name in ("BERT-Base-Chinese", "ERNIE-Gram-zh")
    ]
    done = run(monkeypatch, *command, "--tasks", "lcqmc", "--seeds", "2")
    assert "4 runs, 4 finished before" in done.stdout
    assert (output / "table.md").read_text() == text
    done = run(monkeypatch, *command, "--tasks", "lcqmc", "--seeds", "1")
    assert f"--output: {output} has the result of lcqmc,seed=2 (and 1 more), which is not among" in done.stderr
    assert (output / "table.md").read_text() == text


def test_only_the_given_tasks_are_trained_and_the_table_keeps_the_others(
    tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    options = ["--data", str(tmp_path), "--output", str(tmp_path / "out"), *SETTINGS, "--optimizer.epochs=1"]
    command = ["chinese", str(tiny_task / "model"), *options, "--tasks"]
    done = run(monkeypatch, *command, "lcqmc")
    assert "1 run, 0 finished before" in done.stdout
    assert "| ChnSentiCorp | dev | accuracy | 0 | - |" in done.stdout
    done = run(monkeypatch, *command, "chnsenticorp")
    assert "2 runs, 1 finished before" in done.stdout
    for task in ("LCQMC", "ChnSentiCorp"):
        assert f"| {task} | dev | accuracy | 1 | " in (tmp_path / "out" / "table.md").read_text()


def test_a_failed_task_is_named_and_the_others_are_in_the_table(
    tiny_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_data(tmp_path)
    monkeypatch.setattr(benchmark, "check_runs", lambda runs, processes: None)
    write(tmp_path / "lcqmc" / "dev.tsv", "text_a\ttext_b\tlabel\na\tb\t7\n")
    options = ["--data", str(tmp_path), "--output", str(tmp_path / "out"), *SETTINGS, "--optimizer.epochs=1"]
    done = run(monkeypatch, "chinese", str(tiny_task / "model"), *options)
    assert done.returncode == 2
    assert "lcqmc,seed=1/console.txt: the run failed: error: " in done.stderr
    assert "| LCQMC | dev | accuracy | 0 | - | - |" in done.stdout
    assert "| ChnSentiCorp | dev | accuracy | 1 | " in done.stdout


def test_a_check_trains_and_writes_nothing_and_a_setting_that_does_not_fit_names_its_task(
    tiny_task: Path, tmp_path: Path
) -> None:
    write_data(tmp_path)
    output = tmp_path / "out"
    command = ["chinese", str(tiny_task / "model"), "--data", str(tmp_path), "--output", str(output), *SETTINGS]
    done = call(main, *command, "--seeds", "2", "--check")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("4 runs, 0 finished before; ")
    for more, message in (
        (["--evaluation.metric=f2"], "lcqmc: evaluation.metric: 'f2'"),
        (["--tasks", "chnsenticorp", "--input.max_seq_len=4000"], "chnsenticorp: input.max_seq_len: 4000"),
    ):
        done = call(main, *command, *more, "--check")
        assert done.returncode == 2
        assert done.stderr.startswith(f"error: {message}")
    assert not output.exists()


def test_errors_are_found_before_any_training(tiny_task: Path, tmp_path: Path) -> None:
    model = str(tiny_task / "model")
    common = ["--data", str(tmp_path), "--output", str(tmp_path / "out")]
    for arguments, message in (
        (["germn", model, *common], "no such benchmark; the benchmarks are chinese, clue, english"),
        (["clue", model, *common], "has no files of afqmc, tnews"),
        (["clue", model, *common, "--tasks", "tnew"], "--tasks: tnew is not one of its tasks"),
        (["clue", model, *common, "--paths.data", "x"], "--paths.data: give --data"),
        (["clue", model, "--output", "out"], "the following arguments are required: --data"),
    ):
        done = call(main, *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert not (tmp_path / "out").exists()
