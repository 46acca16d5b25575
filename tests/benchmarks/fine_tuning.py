"""Time fine-tuning and prediction beside Hugging Face transformers: `python -m tests.benchmarks.fine_tuning --help`.

For each task and precision, a process of this project makes some updates and predicts some samples of dev. With
--hf_python, transformers then does the same in a process of its own, from the same parameters, with the batches that
the first process has written to a file. For bfloat16 it does so in both modes of PyTorch (see torch_modes.py).

Seconds are CPU seconds of all threads. Reading, encoding and decoding are not in them. Neither are the first update,
which has a column of its own, and a first batch of prediction, because they start the programs. "difference" is the
largest difference between the scores of both sides before the first update.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import islice, product
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.formats.registry import read_model
from reader.batches.fields import INPUT_IDS, LENGTHS, SENTENCE_IDS, SLOTS, Batch, Field
from reader.errors import InputError, one_line_errors
from tasks.data.batches import evaluation_batches
from tasks.kinds.settings import HeadSettings, InputSettings
from tasks.sweeps.table import markdown_table
from tasks.training.config import FinetuneConfig, FinetuneOptimizer, FinetunePaths, FinetuneTrainer
from tasks.training.prepare import prepare
from tests.benchmarks.batch_file import write_batches
from tests.benchmarks.measure import cpu_sum, times_of
from tests.benchmarks.processes import run_module
from tests.benchmarks.torch_modes import TORCH_MODES, mode_shown

# Task: maximum length and samples per update.
TASKS = {"rte": (128, 32), "stsb": (128, 32), "squad1": (384, 16)}
OURS = "ours"
SECONDS = ("first", "updates", "prediction")
# What transformers calls the fields of a batch.
NAMES = {
    INPUT_IDS.name: "input_ids",
    SENTENCE_IDS.name: "token_type_ids",
    SLOTS.name: "slots",
    "labels": "labels",
    "gold_scores": "labels",
    "start_slots": "start_positions",
    "end_slots": "end_positions",
}
Result = dict[str, Any]


def renamed(batch: Batch, fields: Sequence[Field]) -> Batch:
    """Return these fields of a batch as transformers takes them: lengths are an attention mask, int64 [B, L]."""
    mask_BL = np.arange(batch[INPUT_IDS.name].shape[1]) < batch[LENGTHS.name][:, None]
    named = {NAMES[field.name]: batch[field.name] for field in fields if field is not LENGTHS}
    return named | {"attention_mask": mask_BL.astype(np.int64)}


def config_of(
    task: str, precision: Literal["float32", "bfloat16"], data: Path, model: Path, output: Path
) -> FinetuneConfig:
    """Return settings in which a network is that of transformers: span extraction has no dropout before its output."""
    length, batch_size = TASKS[task]
    return FinetuneConfig(
        task=task,
        input=InputSettings(max_seq_len=length),
        head=HeadSettings(dropout=0.0 if task == "squad1" else 0.1, lm_transform=False),
        optimizer=FinetuneOptimizer(learning_rate=1e-4, batch_size=batch_size, layer_decay=1.0, precision=precision),
        paths=FinetunePaths(str(model), str(data), str(output)),
        trainer=FinetuneTrainer(device="cpu"),
    )


def measure_ours(arguments: argparse.Namespace, folder: Path) -> Result:
    """Measure the only task and precision of the arguments in this process, and write the batches."""
    from ernie_gram.distributed.world import start_world

    (task,), (precision,) = arguments.tasks, arguments.precision
    # It loads Paddle with the settings for this processor, so it comes before other imports of Paddle.
    world = start_world("cpu", precision)
    from ernie_gram.training.trainer import Trainer
    from ernie_gram.training.variables import get_arrays
    from tasks.training.evaluation import Predictor
    from tasks.training.job import finetuning_job, network_of
    from tasks.training.network import SCORES, build_prediction

    run = prepare(config_of(task, precision, arguments.data, arguments.model, folder))
    batch_size = run.config.optimizer.batch_size
    network = network_of(run)
    predictor = Predictor(network, batch_size, precision)
    trainer = Trainer(finetuning_job(run, network, predictor), world)
    with closing(trainer.job.batches(0, world)) as batches:
        train = [batch for (batch,) in islice(batches, arguments.steps + 1)]
    features = run.dev[0].features
    chosen = np.unique(np.linspace(0, len(features) - 1, arguments.rows).astype(np.int64))
    dev = [features.batch(chosen[rows]) for rows in evaluation_batches(features.lengths[chosen], batch_size)]
    dev.insert(0, dev[0])

    program, scores = build_prediction(network, precision), []
    predicted = times_of(lambda batch: scores.append(program.run(trainer.executor, batch)[SCORES]), dev)
    parts = ("weight", f"{run.kind.output}_w"), ("bias", f"{run.kind.output}_b")
    head = get_arrays([name for _, name in parts])
    write_batches(
        arguments.batches,
        {
            "train": [renamed(batch, run.kind.training_fields) for batch in train],
            "dev": [renamed(batch, run.kind.input_fields) for batch in dev],
            "scores": [{"scores": values} for values in scores],
            "head": [{part: head[name] for part, name in parts}],
        },
    )
    updated = times_of(lambda batch: trainer._update([batch]), train)
    trainer.log.close()
    seconds = {"first": updated[0][1], "updates": cpu_sum(updated[1:]), "prediction": cpu_sum(predicted[1:])}
    return {**seconds, "samples": len(chosen)}


def measure_pair(task: str, precision: str, arguments: argparse.Namespace) -> dict[str, Result]:
    """Measure both sides; return the results by mode, which is OURS for this project."""
    with tempfile.TemporaryDirectory() as folder:
        batches = Path(folder) / "batches.npz"
        given = {"data": arguments.data, "model": arguments.model, "tasks": task, "precision": precision}
        given |= {"steps": arguments.steps, "rows": arguments.rows, "batches": batches}
        options = [f"--{name}={value}" for name, value in given.items()]
        results = {OURS: run_module(sys.executable, "tests.benchmarks.fine_tuning", options, arguments.threads)}
        for mode in TORCH_MODES[precision] if arguments.hf_python else ():
            job = [arguments.model, batches, mode]
            module = "tests.benchmarks.fine_tuning_torch"
            results[mode] = run_module(arguments.hf_python, module, job, arguments.threads)
    print(task, precision, json.dumps(results), file=sys.stderr, flush=True)
    return results


def table_rows(task: str, precision: str, rounds: Sequence[Mapping[str, Result]]) -> list[list[str]]:
    """Return a row for each side, with the medians of some rounds, and the ratios of ours to it."""
    medians = {
        mode: {name: statistics.median(results[mode][name] for results in rounds) for name in SECONDS}
        for mode in rounds[0]
    }
    rows = []
    for mode, found in medians.items():
        last = rounds[-1][mode]
        cells = [task, OURS, precision] if mode == OURS else [task, "transformers", mode_shown(mode, last["bfloat16"])]
        cells.append(f"{found['first']:.2f}")
        for name in SECONDS[1:]:
            cells += [f"{found[name]:.2f}", "" if mode == OURS else f"{medians[OURS][name] / found[name]:.2f}"]
        rows.append([*cells, "" if mode == OURS else f"{last['difference']:.1e}"])
    return rows


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder above the folders of the benchmarks")
    parser.add_argument("--model", type=Path, required=True, help="model folder; that of a BERT for --hf_python")
    parser.add_argument("--hf_python", type=Path, help="interpreter with torch and transformers")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--precision", nargs="+", choices=TORCH_MODES, default=["float32"])
    parser.add_argument("--steps", type=int, default=20, help="updates after the first one (%(default)s)")
    parser.add_argument("--rows", type=int, default=256, help="samples of dev to predict (%(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="repetitions in new processes; medians are shown")
    parser.add_argument("--threads", type=int, default=1, help="threads of each process (%(default)s)")
    parser.add_argument("--batches", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.batches:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(measure_ours(arguments, Path(folder))))
        return
    arguments.data, arguments.model = arguments.data.resolve(), arguments.model.resolve()
    if arguments.hf_python and read_model(arguments.model).format != "bert":
        raise InputError(f"--model {arguments.model}: give the folder of a BERT, which transformers reads as well")
    pairs = list(product(arguments.tasks, arguments.precision))
    rounds = [[measure_pair(*pair, arguments) for pair in pairs] for _ in range(arguments.rounds)]
    samples = "/".join(str(result[OURS]["samples"]) for result in rounds[0][:: len(arguments.precision)])
    head = ["task", "tool", "precision", "first update, s", f"{arguments.steps} updates, s", "ours / this"]
    head += [f"prediction of {samples} samples, s", "ours / this", "difference"]
    rows = [row for i, pair in enumerate(pairs) for row in table_rows(*pair, [each[i] for each in rounds])]
    print(f"{processor_name(read_cpuinfo())}, threads: {arguments.threads}\n")
    print(*markdown_table(head, rows), sep="\n")


if __name__ == "__main__":
    one_line_errors(main)
