"""Run all steps once, without a download: text, vocabulary, lexicon, corpus, two-process pre-training, prediction.

`python -m ernie_gram.demo` prints each command before it runs it; the commands also work when typed.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ernie_gram.plot import plot_runs
from ernie_gram.run.run_log import read_log
from reader.batches import fields
from reader.batches.feeder import Feeder, Masking
from reader.corpus.memmap import Corpus
from reader.errors import InputError, OneLineParser, one_line_errors

if TYPE_CHECKING:
    from ernie_gram.fill_mask import Guess

ROOT = Path(__file__).resolve().parent.parent
CONFIG = "conf/pretrain/demo.yaml"


def step(command: str, **environment: str) -> None:
    """Print a command and run it; raises InputError if it fails."""
    settings = "".join(f"{key}={value} " for key, value in environment.items())
    print(f"\n$ {settings}{command}", flush=True)
    words = shlex.split(command)
    if words[0] == "python":
        words[0] = sys.executable
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, "PYTHON": sys.executable, **environment}, check=False)
    if done.returncode:
        raise InputError(f"`{command}` failed with status {done.returncode}; its output is above")


def show_predictions(output: Path, corpus: Corpus, limit: int = 4) -> None:
    """Print masked held-out sentences; for each mask the true unit, the five best units and the three best n-grams.

    Raises InputError if there is no valid checkpoint.
    """
    from ernie_gram.distributed.world import start_world
    from ernie_gram.fill_mask import MaskFiller, checkpoint_in

    filler = MaskFiller(checkpoint_in(output), start_world("cpu"))
    settings = filler.config
    feeder = Feeder(corpus, settings.data.max_seq_len, Masking(True, settings.objective.mask_fraction, settings.seed))
    # Sequences of a readable length, at even distances in the held-out text.
    sizes = np.diff(feeder.starts)
    readable = np.flatnonzero((sizes >= 15) & (sizes <= 30))
    indices = readable[:: max(1, len(readable) // limit)][:limit].astype(np.int64)
    batch = feeder.batch(indices, np.zeros(len(indices), np.int64))
    input_ids, slots = batch[fields.INPUT_IDS.name], batch[fields.SLOTS.name]
    probabilities = filler.probabilities(batch)
    for row, length in enumerate(batch[fields.LENGTHS.name]):
        print(f"\n{filler.text(input_ids[row, :length])}")
        for mask, slot in enumerate(np.flatnonzero(slots // input_ids.shape[1] == row), start=1):
            print(f"  [MASK {mask}] was: {filler.units.text(int(batch[fields.COARSE_LABELS.name][slot]))}")
            print(f"     best units:   {listed(filler.best(probabilities[slot], 5))}")
            print(f"     best n-grams: {listed(filler.best(probabilities[slot], 3, ngrams_only=True))}")


def listed(guesses: list[Guess]) -> str:
    """Return units and their probabilities in one line."""
    return ", ".join(f"{guess.unit} {guess.probability:.1%}" for guess in guesses)


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(prog="python -m ernie_gram.demo", description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="training processes (%(default)s)")
    parser.add_argument("--steps", type=int, help="training steps, at least 10 (default: the config's)")
    arguments = parser.parse_args()
    overrides: list[str] = []
    if arguments.steps is not None and arguments.steps < 10:
        raise InputError(f"--steps: {arguments.steps} is too few; at least 10 are needed")
    if arguments.steps:
        warmup = arguments.steps // 10
        overrides = ["--trainer.max_steps", str(arguments.steps), "--optimizer.warmup_steps", str(warmup)]
    folder = Path("output/demo")
    shutil.rmtree(ROOT / folder, ignore_errors=True)

    step(f"python -m reader.demo_text --output {folder}")
    texts = {name: f"--input {folder}/{name}.txt" for name in ("train", "held_out")}
    step(f"python -m reader.build vocab {texts['train']} --size 2500 --output {folder}/vocab.txt")
    step(
        f"python -m reader.build lexicon {texts['train']} --vocab {folder}/vocab.txt "
        f"--top 2:1000,3:500 --output {folder}/lexicon.tsv"
    )
    for name, corpus in (("train", "corpus"), ("held_out", "held_out")):
        step(
            f"python -m reader.build corpus {texts[name]} --vocab {folder}/vocab.txt "
            f"--lexicon {folder}/lexicon.tsv --output {folder}/{corpus}"
        )
    step(shlex.join(["./run_pretrain.sh", CONFIG, *overrides]), NPROC=str(arguments.processes), LOG_DIR=f"{folder}/log")

    os.chdir(ROOT)
    run = folder / "run"
    plot_runs([run], folder / "curve.png")
    print(f"\nCurves: {folder}/curve.png\n\nMasked held-out sentences and the predictions of the model:")
    show_predictions(run, Corpus(folder / "held_out"))
    evaluations = [record for record in read_log(run) if record["kind"] == "eval"]
    trend = " -> ".join(f"{record['perplexity']:.0f}" for record in evaluations)
    print(f"\nHeld-out perplexity: {trend}; unit frequencies: {evaluations[-1]['frequency_perplexity']:.0f}")


if __name__ == "__main__":
    one_line_errors(main)
