"""Our side of fine_tuning.py, for one task and one seed.

`python -m tests.benchmarks.fine_tuning_ours JOB.json RESULT.json`
"""

from __future__ import annotations

import json
import resource
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import tasks.finetune
import tasks.training.job
from ernie_gram.training.job import Job, StartValues
from reader.errors import one_line_errors
from tasks.metrics.catalog import METRICS
from tasks.training.job import finetuning_job
from tasks.training.prepare import Run, prepare
from tests.benchmarks.fine_tuning_plan import Plan
from tests.benchmarks.subsets import with_examples

Seconds = dict[str, float]


def timed(function: Callable[..., Any], name: str, seconds: Seconds) -> Callable[..., Any]:
    """Return the function so that each call adds its wall and CPU seconds to `name` and "`name` processor".

    The CPU seconds are those of all threads, with those that make batches.
    """

    def call(*arguments: Any) -> Any:
        wall, processor = time.perf_counter(), time.process_time()
        value = function(*arguments)
        seconds[name] += time.perf_counter() - wall
        seconds[f"{name} processor"] += time.process_time() - processor
        return value

    return call


def timed_finetune(run: Run) -> tuple[dict[str, Any], Seconds]:
    """Fine-tune; return the result, and the seconds of the updates and of the prediction after the last of them.

    Neither has the checkpoint, and the first call of each has the start of its program.
    """
    from ernie_gram.training.trainer import Trainer

    seconds = dict.fromkeys(("training", "training processor", "prediction", "prediction processor"), 0.0)
    updates = patch.object(Trainer, "_update", timed(Trainer._update, "training", seconds))
    predictions = patch.object(tasks.finetune, "predict", timed(tasks.finetune.predict, "prediction", seconds))
    with updates, predictions:
        return tasks.finetune.finetune(run), seconds


def with_output_layer(run: Run, layer: dict[str, Any]) -> Callable[..., Job]:
    """Return `finetuning_job` so that training starts from an output layer of torch: "weight" [width, size], "bias"."""
    name = run.kind.output
    weight, bias = (np.array(layer[part], np.float32) for part in ("weight", "bias"))
    given = StartValues("transformers", lambda: {f"{name}_w": weight.T.copy(), f"{name}_b": bias})

    def make_job(*arguments: Any) -> Job:
        job = finetuning_job(*arguments)
        return replace(job, start_values=(*job.start_values, given))

    return make_job


def run_job(job: dict[str, Any]) -> dict[str, Any]:
    """Train and predict; return scores, seconds and counts."""
    plan = Plan(**job["plan"])
    output = Path(job["output"])
    shutil.rmtree(output, ignore_errors=True)
    run = prepare(plan.config(job["model"], job["data"], output, job["seed"]))
    dev = run.dev[0]
    train = with_examples(run, run.train, plan.rows, training=True)
    # As a final split, dev is predicted once, by the last model.
    run = replace(run, train=train, dev=(), final=(dev,), identity=run.identity | {"rows": plan.rows})
    for line in run.describe():
        print(line, flush=True)
    make_job = with_output_layer(run, job["output_layer"]) if "output_layer" in job else finetuning_job
    with patch.object(tasks.training.job, "finetuning_job", make_job):
        result, seconds = timed_finetune(run)
    metric = METRICS[run.task.metric]
    scores = result["scores"][dev.name]
    done = {
        "scores": scores,
        "score": scores[metric.main],
        "steps": result["steps"]["trained"],
        "samples": len(train.features),
        "seconds": seconds,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }
    shutil.rmtree(output)
    return done


def main() -> None:
    """Run the command line."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    Path(sys.argv[2]).write_text(json.dumps(run_job(job)), encoding="utf-8")


if __name__ == "__main__":
    one_line_errors(main)
