"""Time a model's answers beside ONNX Runtime, transformers and Paddle: `python -m tests.benchmarks.inference --help`.

A BERT of random numbers, by default of 12 x 768, is answered by this project through each of its doors, and with
--others PYTHON, an interpreter with packages of their own, by other tools; those that are not installed there are left
out. All have the same parameters, and the same batches without padding (B x L tokens) or sentences: lines of --input,
every tool with its own tokenizer, sorted by length, padded in batches of 16. Each tool is a process; they take turns in
every round. Seconds are CPU seconds of all threads, the median of the rounds; "ratio" is to ONNX Runtime, the median of
the ratios of the rounds. "difference" is the largest one from ONNX Runtime's output for [CLS] in all rounds. The memory
is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ernie_gram.config import require
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.model.config import ModelConfig
from reader.errors import one_line_errors
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.sweeps.table import markdown_table
from tests.benchmarks.answering import BATCH_SIZE, SENTENCES, serve
from tests.benchmarks.inference_others import TOOLS
from tests.benchmarks.processes import ENVIRONMENT
from tests.benchmarks.random_model import write_random_model
from tests.support.commands import ROOT

SIZES = {"base": (12, 768), "tiny": (2, 64)}
WORKS = ("16 x 128", "8 x 384", "1 x 32", SENTENCES)
REPEATS = {"1 x 32": 10}
MAX_TOKENS, NUM_SENTENCES = 384, 256
REFERENCE = "ONNX Runtime"
# Ours: the folder of a model, or of an export.
DOORS = {"Model": "model", "exported program": "program"}


class Ours:
    """A door of this project."""

    def __init__(self, folder: str, precision: str) -> None:
        from ernie_gram import Model
        from ernie_gram.inference.texts import EncodedText

        self._model, self._encoded = Model.load(folder, precision), EncodedText

    def run(self, ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        """Return the output for [CLS]; all hidden states are computed, as by the other tools."""
        none: list[Any] = [None] * ids_BL.shape[1]
        texts = [self._encoded(row[:n], np.zeros(n, np.int64), none) for row, n in zip(ids_BL, lengths_B, strict=True)]
        return self._model.outputs(texts, ["hidden"])["hidden"][:, 0]

    def texts(self, texts: list[str]) -> np.ndarray:
        """Return the output for [CLS]."""
        return np.stack([each.hidden[0] for each in self._model.encode(texts, BATCH_SIZE)])


def sentences(path: Path, tokens: int) -> list[str]:
    """Return lines from all over a file, none with more words than about `tokens` tokens."""
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    lines = [line for line in lines if len(line.split()) >= 2 and len(line) < 4 * tokens // 2]
    return [lines[i] for i in np.linspace(0, len(lines) - 1, NUM_SENTENCES).astype(int)]


def write_models(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write the model in each form; return the job of all processes."""
    layers, width = SIZES[arguments.model]
    config = ModelConfig(
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=width // 64,
        out_emb_size=0,
        use_relative_position=False,
        use_sentence_embedding=True,
        use_pooler=True,
    )
    write_random_model(load_vocabulary(arguments.vocabulary, True), folder / "model", config)
    write_model(read_model(folder / "model"), folder / "bert", "bert", accept_loss=True)
    for name, form in (("program", "inference"), ("onnx", "onnx")):
        command = (sys.executable, "-m", "reader.console_script", "convert", "model", name, "--to", form)
        subprocess.run(command, cwd=folder, env=ENVIRONMENT | {"PYTHONPATH": str(ROOT)}, check=True, stdout=sys.stderr)
    texts = folder / "texts.txt"
    texts.write_text("\n".join(sentences(arguments.input, MAX_TOKENS)) + "\n", encoding="utf-8")
    return {
        "onnx": str(folder / "onnx" / "model.onnx"),
        "bert": str(folder / "bert"),
        "program": str(folder / "program" / "model.json"),
        "parameters": str(folder / "program" / "model.pdiparams"),
        "vocabulary": str(arguments.vocabulary),
        "texts": str(texts),
        "tokens": len(load_vocabulary(arguments.vocabulary, True)),
        "batch_size": BATCH_SIZE,
        "repeats": REPEATS,
        "mode": "float32" if arguments.precision == "float32" else "autocast",
    }


class Tool:
    """A process that answers when it is told to."""

    def __init__(self, stack: ExitStack, command: list[str], threads: int) -> None:
        environment = ENVIRONMENT | {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
        self._process = stack.enter_context(
            subprocess.Popen(
                command, cwd=ROOT, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        self.missing = self._read().get("missing")

    def answer(self, work: str) -> dict[str, Any]:
        """Return the seconds, the peak of memory and some numbers."""
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        return {"missing": "it ended, see above"}


def measure(arguments: argparse.Namespace, job: dict[str, Any], threads: int, folder: Path) -> list[list[str]]:
    """Return the rows of a table: seconds, ratio to ONNX Runtime and difference for each tool."""
    path = folder / f"job{threads}.json"
    path.write_text(json.dumps(job | {"threads": threads}), encoding="utf-8")
    own = [sys.executable, "-m", "tests.benchmarks.inference", "--serve", str(path), "--precision", arguments.precision]
    commands = {f"ours, {door}": [*own, "--input", str(folder / name)] for door, name in DOORS.items()}
    for tool in TOOLS if arguments.others else ():
        commands[tool] = [str(arguments.others), "-m", "tests.benchmarks.inference_others", tool, str(path)]
    with ExitStack() as stack:
        tools = {name: Tool(stack, command, threads) for name, command in commands.items()}
        for name, tool in tools.items():
            if tool.missing:
                print(f"{name}: {tool.missing}", file=sys.stderr)
        tools = {name: tool for name, tool in tools.items() if not tool.missing}
        found: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for turn in range(arguments.rounds + 1):
            for work in arguments.works:
                for name, tool in tools.items():
                    answer = tool.answer(work)
                    if turn:  # the first answers are a warm-up
                        found.setdefault((name, work), []).append(answer)
            print(f"round {turn} of {arguments.rounds}", file=sys.stderr, flush=True)
    return [table_row(name, arguments.works, found, REFERENCE in tools) for name in tools]


def table_row(
    name: str, works: list[str], found: dict[tuple[str, str], list[dict[str, Any]]], refers: bool
) -> list[str]:
    """Return the row of a tool."""
    cells, difference = [name], 0.0
    for work in works:
        own = found[name, work]
        cells.append(f"{median(each['seconds'] for each in own) / REPEATS.get(work, 1):.3f}")
        ratio = ""
        if refers:
            reference = found[REFERENCE, work]
            pairs = list(zip(own, reference, strict=True))
            ratio = f"{median(each['seconds'] / other['seconds'] for each, other in pairs):.2f}"
            gaps = [np.abs(np.subtract(each["numbers"], other["numbers"])).max() for each, other in pairs]
            difference = max(difference, *gaps)
        cells.append(ratio)
    peak = max(each["peak"] for work in works for each in found[name, work])
    return [*cells, f"{difference:.0e}" if refers else "", f"{peak:.2f}"]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, metavar="VOCAB.txt", help="that of an uncased BERT")
    parser.add_argument("--input", type=Path, required=True, help="a text with sentences, one a line")
    parser.add_argument("--others", type=Path, metavar="PYTHON", help="an interpreter with the other tools")
    parser.add_argument("--model", choices=SIZES, default="base")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        job = json.loads(arguments.serve.read_text(encoding="utf-8"))
        serve(lambda: Ours(str(arguments.input), arguments.precision), job)
        return
    require(arguments.vocabulary is not None, "--vocabulary", "is missing")
    arguments.vocabulary = arguments.vocabulary.resolve()
    print(processor_name(read_cpuinfo()))
    with tempfile.TemporaryDirectory() as parent:
        job = write_models(arguments, Path(parent))
        for threads in arguments.threads:
            head = ["tool", *(cell for work in arguments.works for cell in (work, "ratio")), "difference", "GB"]
            rows = measure(arguments, job, threads, Path(parent))
            print(f"\nthreads: {threads}\n", *markdown_table(head, rows), sep="\n", flush=True)


if __name__ == "__main__":
    one_line_errors(main)
