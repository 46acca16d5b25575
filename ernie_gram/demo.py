"""Run all steps once, without a download: text, vocabulary, lexicon, corpus, two-process pre-training, prediction.

`ernie-gram demo` prints each command before it runs it; the commands also work when typed. The model is tiny, and is
trained with explicit masking only: without comprehensive prediction, generator and replaced token detection.
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

from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from reader.console_script import PROGRAM
from reader.errors import InputError, OneLineParser
from reader.system.installation import child_environment

CONFIG = "conf/pretrain/demo.yaml"
TEXTS = ("if [MASK] , the default value is used .", "return the [MASK] of the list .")


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
    step(f"ernie-gram plot {folder}/run --output {folder}/curve.png")
    # For comparison with the perplexities of the last evaluation.
    step(f"ernie-gram count-baselines {folder}/run")
    step(shlex.join([PROGRAM, "fill-mask", f"{folder}/run", *TEXTS]))
    print(f"\nTraining took {wall:.0f} s, {cpu:.0f} CPU seconds, on {processor_name(read_cpuinfo())}")


def _cpu_seconds() -> float:
    """Return the CPU seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
