"""Sweeps train every combination once, resume, go on after a failed run, and report medians over seeds."""

from __future__ import annotations

import csv
import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from ernie_gram.config.loading import flatten
from ernie_gram.experiments.planned_run import PlannedRun, Result
from ernie_gram.run.run_folder import lock_output
from reader.errors import InputError
from reader.system.untrusted_text import read_yaml
from tasks import benchmark, study, sweep
from tasks.registry import TASKS
from tasks.sweep import main, markdown, report
from tasks.sweeps.runs import GRIDS, plan, read_grid
from tasks.training.config import FinetuneConfig
from tests.support.commands import call, kill_when, python
from tests.support.tiny_task import SETTINGS

RATE, SIZE, EPOCHS = "optimizer.learning_rate", "optimizer.batch_size", "optimizer.epochs"
# Without what the sweeps of the tests vary.
FIXED = [option for option in SETTINGS if not option.startswith((f"--{RATE}", f"--{EPOCHS}", f"--{SIZE}"))]


def arguments(task: Path, output: Path, *more: str) -> list[str]:
    """Return the arguments of the command for the tiny task."""
    options = ["--data", str(task / "data"), "--output", str(output), *FIXED]
    return [str(task / "data" / "task.yaml"), str(task / "model"), *options, *more]


def test_every_combination_has_every_seed_and_its_own_folder(tiny_task: Path, tmp_path: Path) -> None:
    grid = {RATE: ["1e-3", 0.002], SIZE: [8, 16]}
    runs = plan("mrpc", tiny_task / "model", tmp_path, grid, [1, 2], ["--input.max_seq_len=16"])
    assert [run.name for run in runs[:4]] == [
        "learning_rate=0.001,batch_size=8,seed=1",
        "learning_rate=0.001,batch_size=16,seed=1",
        "learning_rate=0.002,batch_size=8,seed=1",
        "learning_rate=0.002,batch_size=16,seed=1",
    ]
    assert len({run.folder for run in runs}) == len(runs) == 8
    last = runs[-1].config
    assert (last.optimizer.learning_rate, last.optimizer.batch_size, last.seed) == (0.002, 16, 2)
    assert (last.task, last.optimizer.epochs, last.input.max_seq_len) == ("mrpc", 10, 16)
    assert tuple(runs[-1].command[2:5]) == ("tasks.run_finetune", "mrpc", str(tiny_task / "model"))


def test_the_grids_are_those_of_tasks_and_settings_that_exist() -> None:
    defaults = flatten(asdict(FinetuneConfig()))
    for path in GRIDS.glob("*.yaml"):
        for task, grid in read_yaml(path).items():
            assert task in TASKS
            assert grid == read_grid(path.stem, task)
            for key, values in grid.items():
                # YAML reads 5e-5 as a text.
                assert {type(value) for value in values} == {type(defaults[key])}
                assert len(set(values)) == len(values)
    assert {key: len(values) for key, values in read_grid("paper", "cola").items()} == {SIZE: 2, RATE: 3, EPOCHS: 2}
    [run] = plan("lcqmc", Path("model"), Path("out"), read_grid("paper", "lcqmc"), [1], [])
    assert (run.config.optimizer.batch_size, run.config.optimizer.epochs, run.name) == (32, 2, "seed=1")


def finished_run(folder: Path, rate: float, seed: int, accuracy: float, f1: float) -> None:
    """Write the result of a run of MRPC."""
    [run] = plan("mrpc", Path("model"), folder, {RATE: [rate]}, [seed], ["--paths.data=data"])
    run.folder.mkdir(parents=True)
    result = {
        "task": "mrpc",
        "metric": {"name": "accuracy_f1", "chooses": "accuracy", "unit": "fraction"},
        "score": accuracy,
        "scores": {"dev": {"accuracy": accuracy, "f1": f1, "average": 0.5}},
        "steps": {"total": 20, "trained": 20, "chosen": 10},
        "seconds": {"training": 2.0, "prediction": 0.5},
        "settings": asdict(run.config),
        "made_from": {},
    }
    (run.folder / "result.json").write_text(json.dumps(result))


def finished_sweep(folder: Path) -> list[tuple[PlannedRun, Result]]:
    for rate, accuracies in ((0.001, (0.7, 0.9, 0.71)), (0.002, (0.8, 0.6, 0.75))):
        for seed, accuracy in enumerate(accuracies, 1):
            finished_run(folder, rate, seed, accuracy, accuracy / 2)
    runs = plan("mrpc", Path("model"), folder, {RATE: [0.001, 0.002]}, [1, 2, 3], ["--paths.data=data"])
    return [(run, result) for run in runs if (result := run.result())]


def test_the_table_has_median_best_worst_and_deviation_of_each_combination(tmp_path: Path) -> None:
    finished = finished_sweep(tmp_path)
    lines = markdown(finished).splitlines()
    assert lines[0] == "mrpc: 6 runs. The score is accuracy on the first of the splits dev, in percent."
    head = "optimizer.learning_rate | seeds | median | best | worst | deviation | median dev.accuracy | median dev.f1"
    assert lines[2] == f"| {head} |"
    assert lines[4] == "| 0.001 | 3 | 71.00 | 90.00 | 70.00 | 11.27 | 71.00 | 35.50 |"
    assert lines[5] == "| 0.002 | 3 | **75.00** | 80.00 | 60.00 | 10.41 | 75.00 | 37.50 |"
    assert lines[7] == (
        "Best median: 75.00 over 3 seeds (deviation 10.41) with optimizer.learning_rate 0.002. Best run: "
        "learning_rate=0.001,seed=2."
    )
    assert finished[0][1] == {
        "score": 70.0,
        "dev.accuracy": 70.0,
        "dev.f1": 35.0,
        "chosen_step": 10,
        "steps": 20,
        "seconds": 2.5,
    }
    alone = markdown(finished[:1]).splitlines()
    assert alone[4] == "| 0.001 | 1 | **70.00** | 70.00 | 70.00 | - | 70.00 | 35.00 |"
    assert alone[6].startswith("Best median: 70.00 over 1 seed with optimizer.learning_rate 0.001. ")
    assert report(finished, tmp_path) == markdown(finished)
    assert (tmp_path / "scores.png").read_bytes().startswith(b"\x89PNG")


def test_scores_without_a_unit_have_significant_digits(tmp_path: Path) -> None:
    (run, result), *_ = finished_sweep(tmp_path)
    (tmp_path / "own.yaml").write_text(
        "kind: regression\nlanguage: en\nlayout: tsv\ncolumns: {text_a: text, score: value}\n"
        "files: {train: train.tsv, dev: dev.tsv}\nmetric: mean_squared_error\n"
    )
    run = replace(run, config=replace(run.config, task=str(tmp_path / "own.yaml")))
    lines = markdown([(run, result | {"score": 0.00412345, "dev.mean_squared_error": 0.00412345})]).splitlines()
    assert "| **0.004123** | 0.004123 | 0.004123 | - |" in lines[4]
    assert lines[6].startswith("Best median: 0.004123 over 1 seed")


def test_a_file_of_settings_stands_for_its_task(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text("task: mrpc\noptimizer: {batch_size: 5}\n")
    [run] = plan(str(own), Path("model"), tmp_path, {RATE: [0.001]}, [1], ["--paths.data=data"])
    assert (run.config.task, run.config.optimizer.batch_size) == ("mrpc", 5)
    assert read_grid("paper", str(own)) == read_grid("paper", "mrpc")


@pytest.mark.parametrize(
    ("in_file", "option", "used"),
    [
        ("mine", [], "mine"),
        ("mine", ["--data", "given"], "given"),
        ("mine", ["--paths.data", "x"], "x"),
        ("", [], "other"),
    ],
)
def test_the_data_of_a_file_of_settings_precede_the_variable(
    in_file: str, option: list[str], used: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(f"task: mrpc\npaths: {{data: '{in_file}'}}\n")
    monkeypatch.setenv("DATA", "other")
    planned: list[str] = []
    monkeypatch.setattr(sweep, "check_runs", lambda runs, _: planned.extend(run.config.paths.data for run in runs))
    monkeypatch.setattr(sweep, "run_experiment", lambda *_: None)
    done = call(main, str(own), str(tmp_path / "model"), "--output", str(tmp_path / "out"), *option)
    assert (done.returncode, planned) == (0, [used]), done.stderr


def test_a_split_that_some_runs_lack_has_the_median_of_the_others(tmp_path: Path) -> None:
    (first, result), *others = finished_sweep(tmp_path)
    for finished, medians in (
        ([(first, result | {"test.f1": 50.0}), *others], ("35.50 | 50.00 |", "37.50 | - |")),
        ([(first, result), *[(run, each | {"test.f1": 40.0}) for run, each in others]], ("40.00 |", "40.00 |")),
    ):
        lines = markdown(finished).splitlines()
        assert lines[0].endswith("on the first of the splits dev, test, in percent.")
        assert lines[2].endswith("| median dev.f1 | median test.f1 |")
        assert [line.endswith(end) for line, end in zip(lines[4:6], medians, strict=True)] == [True, True]


def test_a_result_of_other_settings_is_refused(tmp_path: Path) -> None:
    finished_run(tmp_path, 0.001, 1, 0.7, 0.7)
    options = ["--paths.data=data", "--optimizer.weight_decay=0.1"]
    [run] = plan("mrpc", Path("model"), tmp_path, {RATE: [0.001]}, [1], options)
    with pytest.raises(InputError, match=r"optimizer\.weight_decay 0.01, not 0.1; choose another"):
        run.result()
    options = ["--paths.data=data", "--trainer.log_every=7"]
    [run] = plan("mrpc", Path("model"), tmp_path, {RATE: [0.001]}, [1], options)
    assert run.result() is not None
    (run.folder / "result.json").write_text("{}")
    with pytest.raises(InputError, match=r"result\.json: damaged"):
        run.result()


def test_a_killed_sweep_resumes_and_continues_after_a_failed_run(tiny_task: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    command = arguments(tiny_task, output, "--vary", "optimizer.max_grad_norm", "1e30", "--epochs", "2", "--jobs", "2")
    command.append("--optimizer.warmup_share=0")
    good, bad = (output / f"learning_rate={rate},epochs=2,max_grad_norm=1e+30,seed=1" for rate in ("0.01", "1e+30"))
    rates = ["--learning_rates", "1e-2", "1e30"]
    kill_when(["-m", "tasks.sweep", *command, *rates], lambda: (good / "console.txt").exists())
    done = python("-m", "tasks.sweep", *command, *rates)
    assert done.returncode == 2, done.stdout
    assert f"{bad / 'console.txt'}: the run failed: error: " in done.stderr
    assert "the same command runs the failed ones again" in done.stderr
    score = json.loads((good / "result.json").read_text())["score"]
    [row] = list(csv.DictReader((output / "table.csv").read_text().splitlines()))
    assert float(row["dev.accuracy"]) == float(row["score"]) == 100 * score
    [line] = (output / "results.jsonl").read_text().splitlines()
    assert json.loads(line)["result"]["score"] == 100 * score
    written = (good / "result.json").stat().st_mtime_ns
    done = call(main, *command, *rates[:2])
    assert "1 run, 1 finished before; 2 at a time" in done.stdout
    assert (good / "result.json").stat().st_mtime_ns == written
    # The tables would lose the finished run.
    table = (output / "table.md").read_text()
    with (output / "results.jsonl").open("a") as file:
        file.write('{"run": "ha')
    done = call(main, *command, "--learning_rates", "2e-2")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"--output: {output} has the result of {good.name}, which is not among these runs; give" in done.stderr
    assert (output / "table.md").read_text() == table


def test_a_sweep_refuses_a_run_that_another_process_trains_before_it_starts_any(
    tiny_task: Path, tmp_path: Path
) -> None:
    output = tmp_path / "sweep"
    output.mkdir()
    with lock_output(output / "learning_rate=0.02,seed=1"):
        done = call(main, *arguments(tiny_task, output, "--learning_rates", "1e-2", "2e-2"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "learning_rate=0.02,seed=1 is in use by process" in done.stderr
    assert len(list(output.iterdir())) == 1


def test_a_check_counts_the_runs_and_writes_nothing(tiny_task: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    done = call(main, *arguments(tiny_task, output, "--learning_rates", "1e-2", "2e-2", "--check"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 runs, 0 finished before; ")
    assert not output.exists()


def test_errors_are_found_before_any_training(tiny_task: Path, tmp_path: Path) -> None:
    output = tmp_path / "sweep"
    for more, message in (
        (["--grid", "papers"], "conf/grids/papers.yaml: no such grid; the grids are paper, upstream"),
        (["--grid", "paper"], "paper.yaml: has no grid for"),
        (["--vary", "optimizer.epoch", "3"], "unknown key optimizer.epoch; did you mean optimizer.epochs?"),
        (["--vary", "optimizer.epochs"], "--vary: optimizer.epochs has no values"),
        (["--epochs", "3", "--optimizer.epochs=2"], "--optimizer.epochs: not among the options for every run"),
        (["--seed=3"], "--seed: not among the options for every run"),
        (["--learning_rates", "1e-3", "0.001"], "would be called learning_rate=0.001,seed=1; is a value there twice?"),
        (["--epochs", "3", "--vary", "optimizer.epochs", "2"], "--vary: optimizer.epochs has its values already"),
        (["--vary", "head.dropout", "0", "--vary", "head.dropout", "0.1"], "--vary: head.dropout has its values"),
        (["--vary", "paths.output", "a", "b"], "paths.output: cannot vary; this command sets it"),
        (["--vary", "paths.model", "a/b", "a/c"], "paths.model: cannot vary; this command sets it"),
        (["--batch_sizes", "many"], "optimizer.batch_size: expected a whole number"),
        (["--batch_sizes", "0"], "optimizer.batch_size: must be positive"),
        (["--seeds", "0"], "argument --seeds: '0': expected an integer of at least 1"),
        (["--input.max_seq_len=4000"], "input.max_seq_len: 4000 exceeds the 40 positions"),
        (
            ["--vary", "evaluation.metric", "accuracy", "f1"],
            "evaluation.metric: cannot vary: scores of different metrics",
        ),
        (["--processes", "2", "--batch_sizes", "8", "1"], "optimizer.batch_size: 2 processes, but only 1 sample in"),
    ):
        done = call(main, *arguments(tiny_task, output, *more))
        assert done.returncode == 2, more
        assert message in done.stderr.splitlines()[-1]
        assert not output.exists()


def test_the_folder_of_a_run_is_refused(tiny_task: Path, tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").touch()
    message = f"error: --output: {tmp_path} is the folder of a run; choose another --output\n"
    model, data = str(tiny_task / "model"), ["--data", str(tiny_task / "data"), "--output", str(tmp_path)]
    for command, *more in ((main, "cola", model), (benchmark.main, "clue", model), (study.main, "ladder")):
        done = call(command, *more, *data)
        assert (done.returncode, done.stderr) == (2, message)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
