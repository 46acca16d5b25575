"""Run all steps once, without a download: text, vocabulary, lexicon, corpus, two-process pre-training, prediction.

`ernie-gram demo` prints each command before it runs it; the commands also work when typed.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("ernie_gram.demo")

import resource
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from ernie_gram.api import Model
from ernie_gram.distributed.device import check_device, use_device
from ernie_gram.distributed.loading import load_paddle
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.formats.registry import read_model
from ernie_gram.inference.units import Guess, best_units
from ernie_gram.plot import plot_runs
from ernie_gram.pretraining.config import ObjectiveConfig, prediction_config
from ernie_gram.pretraining.count_baselines import Perplexities, count_baselines
from ernie_gram.run.run_log import Record, read_log
from reader.batches import fields
from reader.batches.feeder import Feeder, Masking
from reader.console_script import PROGRAM
from reader.corpus.memmap import Corpus
from reader.errors import InputError, OneLineParser
from reader.system.installation import child_environment

CONFIG = "conf/pretrain/demo.yaml"


def step(command: str, **environment: str) -> None:
    """Print a command and run it; raises InputError if it fails. The next command that it names is left out."""
    settings = "".join(f"{key}={value} " for key, value in environment.items())
    print(f"\n$ {settings}{command}", flush=True)
    program, *arguments = shlex.split(command)
    words = [sys.executable, "-m", "reader.console_script", *arguments] if program == PROGRAM else [program, *arguments]
    with subprocess.Popen(words, env=child_environment(**environment), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            if not line.startswith("next: "):
                print(line, end="", flush=True)
    if process.returncode:
        raise InputError(f"`{command}` failed with status {process.returncode}; its output is above")


def show_predictions(model: Model, feeder: Feeder, limit: int = 4) -> None:
    """Print masked held-out sentences; for each mask the true unit, the five best units and the three best n-grams."""
    # Sequences of a readable length, at even distances in the held-out text.
    sizes = np.diff(feeder.starts)
    readable = np.flatnonzero((sizes >= 15) & (sizes <= 30))
    indices = readable[:: max(1, len(readable) // limit)][:limit].astype(np.int64)
    batch = feeder.batch(indices, np.zeros(len(indices), np.int64))
    input_ids, slots = batch[fields.INPUT_IDS.name], batch[fields.SLOTS.name]
    probabilities = model.probabilities(batch)
    for row, length in enumerate(batch[fields.LENGTHS.name]):
        print(f"\n{model.texts.masked_text(input_ids[row, :length])}")
        for mask, slot in enumerate(np.flatnonzero(slots // input_ids.shape[1] == row), start=1):
            print(f"  [MASK {mask}] was: {model.units.text(int(batch[fields.COARSE_LABELS.name][slot]))}")
            print(f"     best units:   {listed(best_units(model.units, probabilities[slot], 5))}")
            print(f"     best n-grams: {listed(best_units(model.units, probabilities[slot], 3, ngrams_only=True))}")


def listed(guesses: list[Guess]) -> str:
    """Return units and their probabilities in one line."""
    return ", ".join(f"{guess.unit} {guess.probability:.1%}" for guess in guesses)


def summary(
    first: Record, last: Record, baselines: dict[str, Perplexities], objective: ObjectiveConfig, sequences: int
) -> str:
    """Return the held-out perplexities of the model, before and after training, and of the predictors that count.

    Args:
        first, last: evaluations of the model.
        sequences: number of held-out sequences.
    """
    rows = [
        ["", "model: start -> end", *baselines],
        ["all units", _trend(first, last, "perplexity"), *(f"{found.units:,.0f}" for found in baselines.values())],
        ["n-grams", _trend(first, last, "ngram_perplexity"), *(f"{found.ngrams:,.0f}" for found in baselines.values())],
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    table = "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    terms = {
        "comprehensive prediction": objective.fine_weight,
        "the generator": objective.generator_weight,
        "replaced token detection": objective.rtd_weight,
    }
    left_out = ", ".join(name for name, weight in terms.items() if not weight)
    return (
        f"Perplexity over the masked units of {sequences} held-out sequences, of the model and of counts:\n{table}\n"
        f"{CONFIG} leaves out: {left_out or 'nothing'}"
    )


def _trend(first: Record, last: Record, metric: str) -> str:
    return f"{first[metric]:,.0f} -> {last[metric]:,.0f}"


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="training processes (%(default)s)")
    parser.add_argument("--steps", type=int, help="training steps, at least 10 (default: the config's)")
    parser.add_argument("--seed", type=int, help="random seed of the training (default: the config's)")
    arguments = parser.parse_args()
    # Each process would need a GPU of its own.
    overrides = ["--trainer.device", "cpu"]
    overrides += [] if arguments.seed is None else ["--seed", str(arguments.seed)]
    if arguments.steps is not None and arguments.steps < 10:
        raise InputError(f"--steps: {arguments.steps} is too few; at least 10 are needed")
    if arguments.steps:
        warmup = arguments.steps // 10
        overrides += ["--trainer.max_steps", str(arguments.steps), "--optimizer.warmup_steps", str(warmup)]
    folder = Path("output/demo")
    if folder.exists() and any(folder.iterdir()) and not (folder / "train.txt").is_file():
        raise InputError(f"{folder}: not the folder of an earlier demo, which would be deleted; move it away")
    shutil.rmtree(folder, ignore_errors=True)

    step(f"ernie-gram demo-text --output {folder}")
    texts = {name: f"--input {folder}/{name}.txt" for name in ("train", "held_out")}
    step(f"ernie-gram vocab {texts['train']} --size 2500 --output {folder}/vocab.txt")
    step(
        f"ernie-gram lexicon {texts['train']} --vocab {folder}/vocab.txt "
        f"--top 2:1000,3:500 --output {folder}/lexicon.tsv"
    )
    for name, corpus in (("train", "corpus"), ("held_out", "held_out")):
        step(
            f"ernie-gram corpus {texts[name]} --vocab {folder}/vocab.txt "
            f"--lexicon {folder}/lexicon.tsv --output {folder}/{corpus}"
        )
    began, cpu_before = time.monotonic(), _cpu_seconds()
    step(shlex.join([PROGRAM, "pretrain", CONFIG, *overrides]), NPROC=str(arguments.processes), LOG_DIR=f"{folder}/log")
    wall, cpu = time.monotonic() - began, _cpu_seconds() - cpu_before

    run = folder / "run"
    plot_runs([run], folder / "curve.png")
    load_paddle()  # it sets the number of threads in the environment, which the training above must not inherit
    use_device(check_device("cpu"))
    record = read_model(run)
    model, config = Model(record), prediction_config(record)
    masking = Masking(True, config.objective.mask_fraction, config.seed)
    held_out = Feeder(Corpus(folder / "held_out"), config.data.max_seq_len, masking)
    print(f"\nCurves: {folder}/curve.png\n\nMasked held-out sentences and the predictions of the model:")
    show_predictions(model, held_out)
    evaluations = [record for record in read_log(run) if record["kind"] == "eval"]
    sequences = min(config.trainer.eval_sequences, len(held_out))
    baselines = count_baselines(Corpus(folder / "corpus"), held_out, sequences)
    print(f"\n{summary(evaluations[0], evaluations[-1], baselines, config.objective, sequences)}")
    print(f"Training took {wall:.0f} s, {cpu:.0f} CPU seconds, on {processor_name(read_cpuinfo())}")


def _cpu_seconds() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
