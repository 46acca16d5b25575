"""The pre-trainings of a sweep: their plan, their results, and the checks before they start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from ernie_gram.config.checks import require
from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.pretraining.config import PretrainConfig
from ernie_gram.pretraining.prepare import evaluation_settings, prepare
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import CONFIG
from ernie_gram.run.run_log import CPU, RATE, read_log
from reader.errors import located
from tasks.sweeps.planned_run import Grid, PlannedRun, Record, combinations, folder_name

LAUNCHER = "ernie_gram.pretrain"
PRETRAIN = "pretrain"
# Of an evaluation; the first one is the score of a pre-training.
METRICS = ("ngram_perplexity", "perplexity", "accuracy", "generator_ngram_perplexity")


def finished(folder: Path, config: PretrainConfig) -> Record | None:
    """Return the last evaluation of a run, all evaluations as `curve`, and the median times of a step.

    A run whose last checkpoint or last evaluation is missing is not finished.
    """
    newest = checkpoint.newest_valid(folder, (checkpoint.STATE,))
    if newest is None or checkpoint.step_of(newest) != config.trainer.max_steps:
        return None
    log = read_log(folder)
    curve = [{key: each[key] for key in ("step", *METRICS) if key in each} for each in log if each["kind"] == "eval"]
    if config.paths.held_out and (not curve or curve[-1]["step"] != config.trainer.max_steps):
        return None
    last = curve[-1] if config.paths.held_out else {}
    result = {**{key: last[key] for key in METRICS if key in last}, "steps": config.trainer.max_steps}
    train = [record for record in log if record["kind"] == "train"]
    if rates := [record[RATE] for record in train if record.get(RATE)]:
        result["seconds_per_step"] = config.data.batch_size / median(rates)
    if spent := [record[CPU] for record in train if record.get(CPU)]:
        result[CPU] = median(spent)
    known = {"kind": "pre-training", "task": "pre-training", "result": result, "curve": curve}
    return {**known, "settings": checkpoint.load_state(newest).identity}


def plan(file: str, output: Path, grid: Grid, seed: int, overrides: Sequence[str]) -> Iterator[PlannedRun]:
    """Yield the pre-trainings with a file of settings, every combination of a grid, and one seed.

    `overrides` are options for every run. Raises InputError for an unknown or invalid setting.
    """
    name, seeds = Path(file).stem, {"seed": seed}
    for config, options, own in combinations(PretrainConfig, ("--config", file), overrides, grid):
        varied = {PRETRAIN: name, **{f"{PRETRAIN}.{key}": value for key, value in own.items()}}
        paths = {"output": str(output / folder_name(name, own, seeds))}
        yield PlannedRun.of(LAUNCHER, options, config, paths, varied=varied, seeds=seeds, finished=finished)


def check_pretrainings(runs: Sequence[PlannedRun], recorded: Mapping[str, Record], processes: int) -> None:
    """Raise InputError if a run cannot be trained, or if a finished one is another run or was evaluated otherwise."""
    for run in runs:
        config, given = load_config(PretrainConfig, list(run.command[1:]))
        with located(run.name):
            if run.name not in recorded:
                check_device(
                    config.trainer.device, config.optimizer.precision, processes, attention=config.model.attention
                )
            today = prepare(config, processes, False, given).identity
        if run.name in recorded:
            run.check_recorded(recorded[run.name], today, {})
        if (before := run.folder / CONFIG).is_file():
            old = load_config(PretrainConfig, ["--config", str(before)])[0]
            is_same = evaluation_settings(old) == evaluation_settings(config)
            require(is_same, str(run.folder), "was evaluated with other settings; choose another --output")
