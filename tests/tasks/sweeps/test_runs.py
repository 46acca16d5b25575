"""Grids: those of the project, and that of a task of one's own; finished runs of what has changed since."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ernie_gram.config.loading import load_config
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.run import checkpoint
from reader.errors import InputError
from reader.system.untrusted_text import read_yaml
from tasks.registry import TASKS
from tasks.registry.task_file import settings_of
from tasks.sweeps.runs import (
    GRIDS,
    Grid,
    PlannedRun,
    check_finetunings,
    finished_finetuning,
    finished_pretraining,
    planned_runs,
    read_grid,
)
from tasks.training.config import FinetuneConfig
from tests.support.task_files import write
from tests.support.tiny_task import SETTINGS, TASK

EPOCHS = "optimizer.epochs"


def planned(
    task: str, folder: Path, grid: Grid, *overrides: str, seed: int = 1, data: str = "data"
) -> list[PlannedRun]:
    paths, settings = {"model": str(folder / "model"), "data": data}, settings_of(task)
    return list(planned_runs("finetune", settings, overrides, grid, folder / "out", {}, {"seed": seed}, **paths))


def test_the_grid_of_a_task_of_ones_own_has_its_name_and_values_may_be_null(tmp_path: Path) -> None:
    stars = write(tmp_path / "conf" / "stars.yaml", TASK)
    named = write(tmp_path / "file.yaml", f"name: reviews\n{TASK}")
    grid = str(write(tmp_path / "grid.yaml", "stars: {optimizer.epochs: [2, 3]}\nreviews: {optimizer.epochs: [4]}\n"))
    assert read_grid(grid, str(stars)) == {EPOCHS: [2, 3]}
    assert read_grid(grid, str(named)) == {EPOCHS: [4]}
    star = write(tmp_path / "star.yaml", TASK)
    for wrong in ("5: {optimizer.epochs: [2]}", "star: {optimizer.epochs: 2}", "star: {optimizer.epochs: []}"):
        path = write(tmp_path / "wrong.yaml", f"{wrong}\n")
        with pytest.raises(InputError, match=rf"^{path}: .*star"):
            read_grid(str(path), str(star))
    grid = str(write(tmp_path / "grid.yaml", "mrpc: {dropout.hidden: [null, 0.2]}\n"))
    runs = planned("mrpc", tmp_path, read_grid(grid, "mrpc"))
    assert [run.config.dropout.hidden for run in runs] == [None, 0.2]
    own = write(tmp_path / "own.yaml", "task: mrpc\noptimizer: {batch_size: 5}\n")
    [run] = planned(str(own), tmp_path, {"optimizer.learning_rate": [0.001]})
    assert (run.config.task, run.config.optimizer.batch_size) == ("mrpc", 5)
    assert read_grid("paper", str(own)) == read_grid("paper", "mrpc")


# ernie-gram/task_conf of the branch repro of PaddlePaddle/ERNIE: learning rates, epochs, weight decay, sequence length.
TASK_CONF: dict[str, tuple[list[float], list[int], float, int]] = {
    "mnli": ([8e-5, 1e-4], [3], 0.1, 256),
    "qnli": ([6e-5, 8e-5, 1e-4], [12], 0.01, 128),
    "qqp": ([1e-4, 1.25e-4, 1.5e-4], [10], 0.0, 128),
    "sst2": ([6e-5, 8e-5, 1e-4], [12], 0.0, 128),
    "cola": ([3e-5, 5e-5, 8e-5], [10, 12, 15], 0.01, 128),
    "rte": ([1e-4, 1.25e-4, 1.5e-4], [10, 15], 0.1, 128),
    "mrpc": ([1e-4, 1.25e-4, 1.5e-4], [10, 12, 15], 0.01, 128),
    "stsb": ([1e-4, 1.25e-4, 1.5e-4], [10, 12, 15], 0.1, 128),
    "race": ([8e-5, 1e-4], [4], 0.01, 512),
    "race_high": ([8e-5, 1e-4], [5], 0.01, 512),
    "race_middle": ([1e-4, 1.25e-4, 1.5e-4], [6], 0.1, 512),
    "imdb": ([8e-5, 1e-4, 1.25e-4], [3], 0.1, 512),
    "ag_news": ([8e-5, 1e-4, 1.25e-4, 1.5e-4], [3], 0.0, 512),
    "squad1": ([2.25e-4, 2.5e-4, 2.75e-4], [2], 0.0, 384),
    "squad2": ([1.25e-4, 1.5e-4], [4], 0.0, 384),
}


def test_the_runs_of_upstreams_grid_have_the_settings_of_its_task_conf() -> None:
    assert set(read_yaml(GRIDS / "upstream.yaml")) == set(TASK_CONF)
    assert set(read_yaml(GRIDS / "paper.yaml")) <= set(TASKS)  # its values are those of test_paper.py
    for task, (rates, epochs, weight_decay, length) in TASK_CONF.items():
        grid = read_grid("upstream", task)
        assert grid.pop("optimizer.learning_rate") == rates, task  # YAML reads 5e-5 as a text
        [*runs] = planned(task, Path(), grid)
        assert sorted(run.config.optimizer.epochs for run in runs) == sorted(epochs), task
        assert {(run.config.optimizer.weight_decay, run.config.input.max_seq_len) for run in runs} == {
            (weight_decay, length)
        }
        # `has_fc` is false for MRPC alone.
        assert {run.config.head.sentence_output for run in runs} == {"cls" if task == "mrpc" else "pooled"}


def test_every_combination_has_its_own_folder_and_settings(tmp_path: Path) -> None:
    grid = {"optimizer.learning_rate": ["1e-3", 0.002], "optimizer.batch_size": [8, 16]}
    varied, seeds = {"pretrain": "full", "pretrain.objective.rtd_weight": "7"}, {"pretrain_seed": 2, "seed": 3}
    overrides = ["--input.max_seq_len=16"]
    runs = list(planned_runs("finetune", settings_of("mrpc"), overrides, grid, tmp_path / "mrpc", varied, seeds))
    of_model = "mrpc,pretrain=full,rtd_weight=7"
    assert [run.name for run in runs] == [
        f"{of_model},learning_rate={rate},batch_size={size},pretrain_seed=2,seed=3"
        for rate in ("0.001", "0.002")
        for size in (8, 16)
    ]
    last = runs[-1].config
    assert (last.optimizer.learning_rate, last.optimizer.batch_size, last.seed) == (0.002, 16, 3)
    assert (last.task, last.optimizer.epochs, last.input.max_seq_len) == ("mrpc", 10, 16)
    # The command gives the same settings.
    assert load_config(FinetuneConfig, list(runs[-1].command[2:]))[0] == last
    assert runs[-1].varied["pretrain.objective.rtd_weight"] == "7"


def check(run: PlannedRun, record: dict[str, Any]) -> None:
    check_finetunings([run], {run.name: record}, (), 1)


@pytest.mark.parametrize("changed", ["model", "vocabulary", "task", "data.train", "data.dev", "optimizer.batch_size"])
def test_the_result_of_another_run_is_refused(tiny_task: Path, finetuned: Path, tmp_path: Path, changed: str) -> None:
    """The run of a copy of a tiny task is planned, and the record is that of a finished run of the original."""
    task, data = Path(shutil.copytree(tiny_task, tmp_path / "task")), str(tmp_path / "task" / "data")
    [run] = planned(f"{data}/task.yaml", task, {}, *SETTINGS, seed=FinetuneConfig().seed, data=data)
    record = finished_finetuning(finetuned)
    # New settings and splits that are gone do not make another run.
    del record["settings"]["max_train_examples"]
    record["settings"]["data.test"] = "0" * 64
    check(run, record)
    if changed == "model":
        model = read_model(task / "model")
        parameters = {**model.parameters, "pos_embedding": model.parameters["pos_embedding"] + 1}
        shutil.rmtree(task / "model")
        write_model(replace(model, parameters=parameters), task / "model", "ernie_gram")
    elif changed == "optimizer.batch_size":
        record["settings"][changed] = 999
    else:
        vocabulary, description = task / "model" / "vocab.txt", task / "data" / "task.yaml"
        path = {"vocabulary": vocabulary, "task": description}.get(changed, task / "data" / f"{changed[5:]}.tsv")
        before = path.read_text()
        path.write_text(
            before.replace("\na\nb\n", "\nb\na\n").replace("metric: accuracy", "metric: macro_f1")
            if changed in ("vocabulary", "task")
            else f"{before}a b\t1\n"
        )
    with pytest.raises(InputError) as error:
        check(run, record)
    message = str(error.value)
    assert message.startswith(f"{run.folder}: has the result of another run ({changed}: ")
    assert message.count(" in results.jsonl, ") == 1


def test_the_record_of_a_run_has_its_scores_in_percent(finetuned: Path, tmp_path: Path) -> None:
    found = json.loads((finetuned / "result.json").read_text())
    record = finished_finetuning(finetuned)
    assert (record["task"], record["metric"]) == ("task", found["metric"])
    assert record["result"]["score"] == record["result"]["dev.accuracy"] == 100 * found["score"]
    assert record["result"]["steps"] == found["steps"]["total"]
    for damaged in ("{}", json.dumps({**found, "score": None}), json.dumps({**found, "identity": None})):
        write(tmp_path / "result.json", damaged)
        with pytest.raises(InputError, match=r"result\.json: damaged"):
            finished_finetuning(tmp_path)


def test_a_pretraining_is_finished_with_its_last_checkpoint_and_its_last_evaluation(tmp_path: Path) -> None:
    paths, trainer = SimpleNamespace(held_out="held_out"), SimpleNamespace(max_steps=4)
    config: Any = SimpleNamespace(paths=paths, trainer=trainer)
    records = [{"kind": "eval", "step": step, "perplexity": 9.0 - step} for step in (2, 4)]
    given = {"trainer": {"eval_sequences": 5, "eval_draws": 1}}
    for step, log in ((2, records), (4, records[:1]), (4, records)):
        assert finished_pretraining(tmp_path, config) is None
        checkpoint.save(tmp_path, checkpoint.State(step, 8 * step, 0.0, {"seed": 1}, given), {}, {}, 2)
        (tmp_path / "log.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in log))
    found = finished_pretraining(tmp_path, config)
    assert found is not None
    settings = {"seed": 1, "trainer.eval_sequences": 5, "trainer.eval_draws": 1}
    assert (found["result"], found["settings"]) == ({"perplexity": 5.0, "steps": 4}, settings)
