"""The console script: `ernie-gram COMMAND ...` imports and starts the module of that command only."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NoReturn

from reader import __version__
from reader.errors import one_line_errors, similar, write_or_drop
from reader.system.progress import show_progress

PROGRAM = "ernie-gram"
# Topic -> command -> its module, and what it does. Modules are named by strings: the reader imports no other package.
TOPICS = {
    "Text": {
        "demo-text": ("reader.demo_text", "write a small text and a small task, from Python's documentation"),
        "vocab": ("reader.build", "train a vocabulary"),
        "lexicon": ("reader.build", "find the n-grams of a text"),
        "corpus": ("reader.build", "cut a text into units, and store them as a corpus"),
    },
    "Pre-training": {
        "pretrain": ("ernie_gram.pretrain", "pre-train a model, in NPROC processes"),
        "preflight": ("ernie_gram.preflight", "predict memory and time of a pre-training"),
        "report": ("ernie_gram.report", "write a page on runs and experiments: curves, tables, filled masks"),
        "count-baselines": ("ernie_gram.pretraining.count_baselines", "perplexities of predictors that only count"),
        "fill-mask": ("ernie_gram.fill_mask", "print the most probable units for [MASK]"),
    },
    "Fine-tuning": {
        "tasks": ("tasks.list", "list the tasks, their metrics and files"),
        "check-files": ("tasks.check_files", "read the official files of tasks, and count their rows"),
        "finetune": ("tasks.finetune", "fine-tune a model on a task, in NPROC processes"),
        "predict": ("tasks.predict", "predict with a fine-tuned model"),
        "score": ("tasks.score", "score a file of predictions as the official scorer does"),
        "sweep": ("tasks.sweep", "train with every combination of settings, seeds and tasks; benchmarks"),
    },
    "Models": {
        "convert": ("tasks.convert", "convert a model to another format, paddle.inference or ONNX"),
        "infer": ("ernie_gram.infer", "write the vectors of texts"),
    },
}
MODULES = {name: module for commands in TOPICS.values() for name, (module, _) in commands.items()}
# This module has several commands: its first argument is the name of the command.
MULTIPLE_COMMANDS = "reader.build"
# The commands that train, and how the C library of their processes allocates memory. hugetlb: large pages for large
# arrays reduce the time of attention on a CPU by a third. mmap_max and trim_threshold: freed memory is kept for the
# next array. Otherwise the system would take back the pages, and clear and assign them again in every step.
TRAINING = ("pretrain", "finetune", "sweep")
MEMORY_VARIABLE = "GLIBC_TUNABLES"
MEMORY = "glibc.malloc.hugetlb=1:glibc.malloc.mmap_max=0:glibc.malloc.trim_threshold=1000000000000"


def main() -> None:
    """Run the command that the first argument names; `sys.argv` has the arguments."""
    name = sys.argv[1] if len(sys.argv) > 1 else "--help"
    if name in ("-h", "--help"):
        write_or_drop(sys.stdout, f"{usage()}\n")
        return
    if name == "--version":
        print(f"{PROGRAM} {__version__}")
        return
    if name not in MODULES:
        sys.stderr.write(f"error: no command {name}{similar(name, MODULES)} (see {PROGRAM} --help)\n")
        sys.exit(2)
    if name in TRAINING:
        set_memory()
    program = PROGRAM
    if MODULES[name] != MULTIPLE_COMMANDS:
        program += f" {sys.argv.pop(1)}"
    run_command(MODULES[name], program)


def run_command(name: str, program: str = "") -> NoReturn:
    """Import the module of a command, call its `main` as `one_line_errors` does, and end this process.

    Args:
        name: of the module.
        program: what was typed before the arguments, for messages.
    """
    # argparse and load_config take the name of the program from there.
    sys.argv[0] = program or f"python -m {name}"
    show_progress()
    one_line_errors(lambda: import_module(name).main())
    sys.exit()


def set_memory() -> None:
    """Set MEMORY for the processes that follow, unless it is set, and start this one again if it trains by itself."""
    is_set, is_alone = bool(os.environ.get(MEMORY_VARIABLE)), os.environ.get("NPROC", "").strip() in ("", "1")
    os.environ[MEMORY_VARIABLE] = os.environ.get(MEMORY_VARIABLE) or MEMORY
    # A program that calls `main` has another command line.
    if is_alone and not is_set and sys.orig_argv[-len(sys.argv) + 1 :] == sys.argv[1:]:
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def usage() -> str:
    """Return the list of the commands, with a line for each."""
    width = max(map(len, MODULES))
    lines = [
        f"usage: {PROGRAM} COMMAND ...",
        "",
        f"{PROGRAM} COMMAND --help explains a command, {PROGRAM} --version prints the version.",
    ]
    for topic, commands in TOPICS.items():
        lines += ["", f"{topic}:", *(f"  {name:{width}}  {what}" for name, (_, what) in commands.items())]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
