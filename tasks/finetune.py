"""Fine-tune a model on a task: `ernie-gram finetune TASK MODEL [--section.key VALUE ...]`.

The command checks its input; then it trains, or starts several processes, which divide each batch.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ernie_gram.config.loading import load_config
from ernie_gram.distributed.device import check_device
from ernie_gram.distributed.launcher import ENVIRONMENT, processes_of_job, start_ranks
from ernie_gram.distributed.world import WORLD_SIZE, start_world
from ernie_gram.run import checkpoint
from ernie_gram.run.run_folder import RESULT, check_output
from ernie_gram.run.termination import end_at_signals, lost_peer_error
from reader import console_script
from reader.console_script import run_command
from reader.errors import InputError, print_warning, write_or_drop
from reader.system.atomic_files import write_atomically
from tasks.files.submissions import form_of
from tasks.metrics.catalog import METRICS
from tasks.registry import find_task
from tasks.registry.task_file import settings_of
from tasks.training.config import FinetuneConfig
from tasks.training.data import share
from tasks.training.prepare import PREDICTIONS, Finetuning, output_folder, prepare

if TYPE_CHECKING:
    from ernie_gram.training.trainer import Trainer
    from tasks.training.network import Scorer

USAGE = """usage: {0} TASK MODEL [--section.key VALUE ...]

Fine-tune a model on a task. TASK is a name that `ernie-gram tasks` lists, with the settings in conf/tasks/TASK.yaml; or
the .yaml file of a custom task; or a .yaml file of settings, which has `task: NAME` or `base: FILE`. MODEL is a model
folder or a run. `{0} --print_config` prints all settings with their meaning. --check checks everything, and does not
train. The scores, the best model and the log are written to output/TASK (another folder: --paths.output). Settings that
are often changed: --optimizer.learning_rate, --optimizer.batch_size, --optimizer.epochs, --input.max_seq_len.

{1}
  DATA         folder with the official files of the task, or the benchmark's folder above it (or --paths.data)"""


def main() -> None:
    """Run the command line."""
    if {"-h", "--help"} & {*sys.argv[1:]}:
        print(USAGE.format(sys.argv[0], ENVIRONMENT))
        return
    arguments = settings(sys.argv[1:])
    config, given = load_config(FinetuneConfig, arguments, "check")
    job = processes_of_job()
    check_device(config.trainer.device, config.optimizer.precision, job.here)
    starts_ranks, is_first = job.is_launcher and "check" not in given, job.rank == 0
    if config.task:
        # Checked before the data are read, which may take long.
        check_output(output_folder(config, find_task(config.task)), is_first)
    run = prepare(config, job.size, is_first and not starts_ranks)
    if starts_ranks:
        share(run.data)
        del run  # its memory
        start_ranks([console_script.__file__, "finetune", *arguments], job, config.trainer.hang_seconds)
    if is_first:
        write_or_drop(sys.stdout, "".join(f"{line}\n" for line in run.describe()))
        for line in run.warnings():
            print_warning(line)
    if "check" not in given:
        lock = run.claim_output() if is_first else nullcontext()
        with lock, lost_peer_error(WORLD_SIZE):
            finetune(run)


def settings(arguments: Sequence[str]) -> list[str]:
    """Return the settings that a command line means, as options.

    Raises InputError unless it begins with TASK and MODEL, or with an option.
    """
    if arguments[:1] and arguments[0].startswith("-"):
        return [*arguments]
    if len(arguments) < 2 or arguments[1].startswith("-"):
        raise InputError(f"TASK and MODEL: must be given (see {sys.argv[0]} --help)")
    task, model, *more = arguments
    return [*settings_of(task), "--paths.model", model, *more]


def finetune(run: Finetuning) -> None:
    """Train a checked run, predict with the chosen model, and write everything into the run's folder."""
    world = start_world(run.config.trainer.device, run.config.optimizer.precision)
    # Imported late: they load Paddle, which takes seconds, and the errors above are reported without it.
    from ernie_gram.training.trainer import Trainer
    from tasks.training.network import TaskNetwork, finetuning_job, trained_scorer

    with end_at_signals():
        network = TaskNetwork.of(run.kind, run.encoder, run.model.parameters)
        scorer = cache(partial(trained_scorer, network, run.config.optimizer.precision))
        began = time.monotonic()
        trainer = Trainer(finetuning_job(run, network, scorer), world)
        first_step = trainer.step
        trainer.train()
        result = predict(run, trainer, scorer(trainer.executor, world))
    result["seconds"] = round(time.monotonic() - began, 1)
    result["steps"]["of_this_process"] = trainer.step - first_step
    if world.is_first:
        if "null_threshold" in result:
            run.write_description(result["null_threshold"])
        # Last: a run with a result is finished.
        write_atomically(run.output / RESULT, json.dumps(result, ensure_ascii=False, indent=1) + "\n")


def predict(run: Finetuning, trainer: Trainer, scorer: Scorer) -> dict[str, Any]:
    """Predict the labelled splits with the chosen model, write the predictions, and return the result of the run."""
    from ernie_gram.distributed.collectives import copy_from_first_rank
    from ernie_gram.training.variables import set_arrays
    from tasks.training.network import headline

    world, step, names = scorer.world, trainer.step, trainer.updater.parameters
    if trainer.progress.best_step is not None:
        step = trainer.progress.best_step
        if world.is_first:
            best = run.output / checkpoint.BEST
            checkpoint.verify(best, checkpoint.MODEL_FILES)
            set_arrays(checkpoint.load_model(best), names, str(best), world.place)
        copy_from_first_rank(trainer.executor, names, world)
    scores, metric, null_threshold = {}, METRICS[run.task.metric], None
    # The best answer that does not read the texts, if the kind has one.
    constant, of_constant = run.kind.constant_answer(run.train.examples), {}
    for split, predictions in scorer.predict(run.evaluated, run.config.evaluation.batch_size):
        null_threshold = predictions.options.get("threshold")
        scores[split.name] = run.kind.evaluate(predictions)
        if constant is not None:
            answers, details = [constant] * len(split.examples), [dict[str, Any]()] * len(split.examples)
            of_constant[split.name] = run.kind.evaluate(run.kind.predictions(split.examples, answers, details))
        if world.is_first:
            form = form_of(run.task)
            path = run.output / f"{PREDICTIONS}{split.name}{Path(form.file_name(run.task, split.name)).suffix}"
            write_atomically(path, form.content(predictions))
            headlines = headline(scores[split.name], metric.main)
            shown = "  ".join(f"{name} {value:.4f}" for name, value in headlines.items())
            write_or_drop(sys.stdout, f"final step {step}  {split.name}: {shown}  ({path})\n")
    return {
        "task": run.task.name,
        "metric": {"name": metric.name, "chooses": metric.main, "unit": metric.unit},
        "score": scores[run.dev[0].name][metric.main] if run.dev else None,
        "scores": scores,
        **({"constant": {"answer": constant, "scores": of_constant}} if of_constant else {}),
        **({} if null_threshold is None else {"null_threshold": null_threshold}),
        "steps": {"total": run.max_steps, "trained": trainer.step, "chosen": step},
        "rows": {
            split.name: {
                "rows": split.report.rows,
                "examples": len(split.examples),
                "left_out": len(split.report.omitted),
                "skipped": len(split.report.bad),
                "samples": len(split.features),
            }
            for split in run.splits
        },
        "processes": world.size,
        "model": {"source": str(run.model.source), "digest": run.identity["model"]},
        "identity": run.identity,
        "settings": asdict(run.config),
    }


# As `paddle.distributed.launch tasks/finetune.py` starts it.
if __name__ == "__main__":
    run_command("tasks.finetune")
