"""Run "Ten minutes" of the README: text, vocabulary, lexicon, corpora, pre-training, fine-tuning, predictions.

`ernie-gram demo` prints each command before it runs it; the commands also work when typed. Nothing is downloaded. The
model is small, and is trained with explicit masking only: no comprehensive prediction, no generator, no replaced token
detection.
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
from reader.build_options import parse_positive
from reader.console_script import PROGRAM
from reader.errors import InputError, OneLineParser
from reader.system.installation import child_environment

STEPS, WARMUP_STEPS = 1000, 100
# Fine-tuning examples per step of pre-training, if there are fewer than STEPS steps.
EXAMPLES_PER_STEP = 10
TASK = """\
kind: classification
language: en
layout: tsv
columns: {text_a: text, label: words}
files: {train: train.tsv, dev: dev.tsv}
metric: accuracy
"""
TEXTS = """\
text
Return the shortest path between two nodes of the graph.
Return the shortest path two between nodes of the graph.
"""


def commands(folder: Path, steps: int, options: list[str]) -> list[str]:
    """Return the README's commands for another folder, with more options for pre-training and fine-tuning.

    The folder has TASK as order.yaml, and TEXTS as own.tsv.
    """
    vocabulary, lexicon = f"--vocab {folder}/vocab.txt", f"--lexicon {folder}/lexicon.tsv"
    pretrain = f"ernie-gram pretrain conf/pretrain/small_en.yaml --paths.corpus {folder}/corpus"
    pretrain += f" --paths.held_out {folder}/held_out --paths.output {folder}/model"
    pretrain += f" --trainer.max_steps {steps} --optimizer.warmup_steps {min(WARMUP_STEPS, steps // 10)}"
    finetune = f"ernie-gram finetune {folder}/order.yaml {folder}/model --paths.data {folder}"
    finetune += f" --paths.output {folder}/order --input.max_seq_len 64"
    finetune += " --optimizer.learning_rate 5e-4 --optimizer.epochs 3"
    fewer = f"--max_train_examples {EXAMPLES_PER_STEP * steps}" if steps < STEPS else ""
    return [
        f"ernie-gram demo-text --output {folder}",
        f"ernie-gram vocab --input {folder}/train.txt --size 6000 --output {folder}/vocab.txt",
        f"ernie-gram lexicon --input {folder}/train.txt {vocabulary} --top 2:300,3:100 --output {folder}/lexicon.tsv",
        f"ernie-gram corpus --input {folder}/train.txt {vocabulary} {lexicon} --output {folder}/corpus",
        f"ernie-gram corpus --input {folder}/held_out.txt {vocabulary} {lexicon} --output {folder}/held_out",
        shlex.join([*pretrain.split(), *options]),
        f"ernie-gram plot {folder}/model --output {folder}/curve.png",
        f"ernie-gram count-baselines {folder}/model",
        f'ernie-gram fill-mask {folder}/model "if [MASK] , the default value is used ."',
        shlex.join([*finetune.split(), *options, *fewer.split()]),
        f"ernie-gram predict {folder}/order --input {folder}/own.tsv --output {folder}/answers.jsonl",
        f"cat {folder}/answers.jsonl",
    ]


def step(command: str, **environment: str) -> None:
    """Print a command and run it; raises InputError if it fails."""
    settings = "".join(f"{key}={value} " for key, value in environment.items())
    print(f"\n$ {settings}{command}", flush=True)
    program, *arguments = shlex.split(command)
    words = [sys.executable, "-m", "reader.console_script", *arguments] if program == PROGRAM else [program, *arguments]
    with subprocess.Popen(words, env=child_environment(**environment), stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
    if process.returncode:
        raise InputError(f"`{command}` failed with status {process.returncode}; its output is above")


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--processes", type=parse_positive, default=2, help="training processes (%(default)s)")
    parser.add_argument(
        "--steps",
        type=int,
        default=STEPS,
        help="steps of pre-training, at least 10 (%(default)s); with fewer than the default, "
        f"fine-tuning takes {EXAMPLES_PER_STEP} examples per step",
    )
    parser.add_argument("--seed", type=int, help="random seed of both trainings (default: that of the settings)")
    arguments = parser.parse_args()
    if arguments.seed is not None and arguments.seed < 0:
        raise InputError(f"--seed: {arguments.seed} is negative")
    if arguments.steps < 10:
        raise InputError(f"--steps: {arguments.steps} is too few; at least 10 are needed")
    folder = Path("output/demo")
    if folder.exists() and any(folder.iterdir()) and not (folder / "order.yaml").is_file():
        raise InputError(f"{folder}: not the folder of an earlier demo, which would be deleted; move it away")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / "order.yaml").write_text(TASK, encoding="utf-8")
    (folder / "own.tsv").write_text(TEXTS, encoding="utf-8")

    # Each process would need a GPU of its own.
    options = ["--trainer.device", "cpu", *([] if arguments.seed is None else ["--seed", str(arguments.seed)])]
    training = {"NPROC": str(arguments.processes), "LOG_DIR": f"{folder}/log"}
    began = time.monotonic()
    for command in commands(folder, arguments.steps, options):
        step(command, **(training if command.split()[1] in ("pretrain", "finetune") else {}))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = used.ru_utime + used.ru_stime
    print(
        f"\nAll of it took {time.monotonic() - began:.0f} s, {cpu:.0f} CPU seconds, on {processor_name(read_cpuinfo())}"
    )
