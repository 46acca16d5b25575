"""Compare the losses of the first steps with those of Hugging Face transformers: without dropout, and with the same
output layer and the same batches, both programs compute the same numbers.

`python -m tests.benchmarks.fine_tuning_steps --help`. Each program tokenizes the texts itself. The scores of
fine_tuning.py differ between seeds, and this shows what is equal before chance comes in.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.distributed.world import start_world
from ernie_gram.run.run_log import read_log
from ernie_gram.training.job import StartValues
from reader.errors import one_line_errors
from tasks.data.batches import epoch_batches
from tasks.registry import TASKS
from tasks.training.config import DropoutConfig
from tasks.training.prepare import Run, prepare
from tests.benchmarks.fine_tuning import SCRIPT, table
from tests.benchmarks.fine_tuning_plan import PLANS, Plan, plain, settings_of
from tests.benchmarks.subsets import with_examples
from tests.support.static_programs import fresh_scope


def run_of(plan: Plan, arguments: argparse.Namespace, folder: Path) -> Run:
    """Return a run of one epoch over the plan's rows, without dropout and without evaluation."""
    config = plan.config(arguments.model, arguments.data, folder / plan.task, arguments.seed)
    config = replace(
        config,
        head=replace(config.head, dropout=0.0),
        dropout=DropoutConfig(0.0, 0.0),
        trainer=replace(config.trainer, log_every=1),
    )
    run = prepare(config)
    run.output.mkdir()
    return replace(run, train=with_examples(run, run.train, plan.rows, training=True), dev=(), final=())


def our_losses(run: Run, head: dict[str, np.ndarray]) -> list[float]:
    """Train with this output layer; return the loss of each step."""
    from ernie_gram.training.trainer import Trainer
    from tasks.training.evaluation import Predictor
    from tasks.training.job import finetuning_job, network_of

    world = start_world("cpu")
    with fresh_scope():
        network = network_of(run)
        job = finetuning_job(run, network, Predictor(network, 1))
        Trainer(replace(job, start_values=(*job.start_values, StartValues("drawn", lambda: head))), world).train()
    return [record["loss"] for record in read_log(run.output) if record["kind"] == "train"]


def their_losses(run: Run, weight: np.ndarray, bias: np.ndarray, arguments: argparse.Namespace) -> list[float]:
    """Return the loss of each step of transformers with the same batches and the same output layer."""
    config = run.config
    settings = config.optimizer
    lengths = run.train.features.lengths
    batches = epoch_batches(lengths, settings.batch_size, settings.length_pool, config.seed, 0)
    job: dict[str, Any] = {
        "kind": run.kind.name,
        "model": str(arguments.model),
        "labels": list(run.kind.classes),
        "settings": settings_of(config, 1),
        "train": [plain(example, True) for example in run.train.examples],
        "dev": [plain(example, False) for example in run.train.examples[:1]],
        "batches": [batch.tolist() for batch in batches],
        "head": {"weight": weight.T.tolist(), "bias": bias.tolist()},
    }
    job_file, result_file = run.output / "job.json", run.output / "result.json"
    job_file.write_text(json.dumps(job), encoding="utf-8")
    subprocess.run([arguments.hf_python, str(SCRIPT), str(job_file), str(result_file)], check=True)
    losses: list[float] = json.loads(result_file.read_text(encoding="utf-8"))["losses"]
    return losses


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder above the folders of the benchmarks")
    parser.add_argument("--model", type=Path, required=True, help="folder of a BERT that both programs read")
    parser.add_argument("--hf_python", required=True, help="interpreter with torch and transformers")
    parser.add_argument("--tasks", nargs="+", choices=PLANS, default=["cola", "stsb", "conll2003", "squad1"])
    parser.add_argument("--steps", type=int, default=8, help="(%(default)s)")
    parser.add_argument("--batch_size", type=int, default=8, help="samples of a step (%(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = [["task", "steps", "first loss", "last loss", "greatest relative difference"]]
    with tempfile.TemporaryDirectory() as folder:
        for task in arguments.tasks:
            # The loss of transformers' head for answers counts the padding of a batch among the possible answers.
            size = 1 if TASKS[task].kind == "span" else arguments.batch_size
            plan = replace(PLANS[task], rows=size * arguments.steps, batch_size=size, epochs=1)
            run = run_of(plan, arguments, Path(folder))
            random = np.random.default_rng(arguments.seed)
            shape = (run.model.config.hidden_size, run.kind.width)
            weight = (random.standard_normal(shape) * 0.02).astype(np.float32)
            bias = np.zeros(run.kind.width, np.float32)
            name = run.kind.output
            ours = np.array(our_losses(run, {f"{name}_w": weight, f"{name}_b": bias}))
            theirs = np.array(their_losses(run, weight, bias, arguments))
            difference = np.abs(ours / theirs - 1).max()
            rows.append([task, str(len(ours)), f"{ours[0]:.6f}", f"{ours[-1]:.6f}", f"{difference:.1e}"])
    print(table(rows, 1))


if __name__ == "__main__":
    one_line_errors(main)
