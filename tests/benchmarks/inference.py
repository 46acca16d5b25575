"""Time a model's answers beside ONNX Runtime, transformers and Paddle: `python -m tests.benchmarks.inference --help`.

A BERT of random numbers, by default of 12 x 768, is answered by this project through each of its doors, and with
--others PYTHON, an interpreter with packages of their own, by other tools. All have the same parameters, and the same
batches without padding (B x L tokens) or sentences: the lines of --input, every tool with its own tokenizer, sorted by
length, padded in batches of 16. The tools take turns, each in a new process in every round. Seconds are CPU seconds of
all threads, the median of the rounds; "ratio" is to ONNX Runtime, the median of the ratios of the rounds. "difference"
is the largest one from ONNX Runtime's output for [CLS]. The memory is the peak of the process.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.formats.registry import read_model, write_model
from ernie_gram.model.config import ModelConfig
from reader.errors import one_line_errors
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.sweeps.table import markdown_table
from tests.benchmarks.answering import SENTENCES, TOOLS
from tests.benchmarks.measure import run_module
from tests.support.commands import ERNIE_GRAM, python

WORKS = ("16 x 128", "8 x 384", "1 x 32", SENTENCES)
REFERENCE = "ONNX Runtime"


def write_models(arguments: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """Write the model in each form; return the job of all processes."""
    vocabulary = load_vocabulary(arguments.vocabulary, True)
    config = ModelConfig(
        num_hidden_layers=arguments.layers,
        hidden_size=64 * arguments.heads,
        num_attention_heads=arguments.heads,
        out_emb_size=0,
        use_relative_position=False,
        use_sentence_embedding=True,
        use_pooler=True,
    )
    forms = {name: str(folder / name) for name in ("model", "bert", "program", "onnx")}
    config, random, parameters = replace(config, vocab_size=len(vocabulary)), np.random.default_rng(1), {}
    for name, shape in encoder_shapes(config).items():
        if len(shape) == 1:  # LayerNorms that change nothing, and biases of 0
            parameters[name] = np.full(shape, float(name.endswith("_scale")), np.float32)
        else:
            parameters[name] = (random.standard_normal(shape) * config.initializer_range).astype(np.float32)
    write_model(ModelRecord(folder, "drawn", config, parameters, vocabulary), folder / "model", "ernie_gram")
    write_model(read_model(folder / "model"), folder / "bert", "bert", accept_loss=True)
    for name, form in (("program", "inference"), ("onnx", "onnx")):
        python(*ERNIE_GRAM, "convert", forms["model"], forms[name], "--to", form).ok()
    given = {name: str(path.resolve()) for name, path in vars(arguments).items() if name in ("vocabulary", "texts")}
    job = {name: getattr(arguments, name) for name in ("precision", "threads", "works")}
    return {**job, **forms, **given, "tokens": len(vocabulary)}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, required=True, metavar="VOCAB.txt", help="that of an uncased BERT")
    parser.add_argument("--input", type=Path, required=True, dest="texts", help="a text with sentences, one a line")
    parser.add_argument("--others", type=Path, metavar="PYTHON", help="an interpreter with the other tools")
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12, help="of 64 numbers each")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tools = {tool: sys.executable if tool.startswith("ours") else arguments.others for tool in arguments.tools}
    tools = {tool: interpreter for tool, interpreter in tools.items() if interpreter}
    print(processor_name(read_cpuinfo()))
    with tempfile.TemporaryDirectory() as folder:
        job = Path(folder) / "job.json"
        job.write_text(json.dumps(write_models(arguments, Path(folder))), encoding="utf-8")
        found: dict[str, list[dict[str, Any]]] = {tool: [] for tool in tools}
        for _ in range(arguments.rounds):
            for tool, interpreter in tools.items():
                found[tool].append(run_module(interpreter, "answering", tool, job, threads=arguments.threads))
    rows = []
    for tool, rounds in found.items():
        cells, pairs = [tool], [*zip(rounds, found.get(REFERENCE, rounds), strict=True)]
        for work in arguments.works:
            cells.append(f"{median(each[work]['seconds'] for each in rounds):.3f}")
            cells.append(f"{median(each[work]['seconds'] / other[work]['seconds'] for each, other in pairs):.2f}")
        gaps = [np.subtract(a[work]["numbers"], b[work]["numbers"]) for work in arguments.works for a, b in pairs]
        rows.append([*cells, f"{max(np.abs(gap).max() for gap in gaps):.0e}", f"{max(r['peak'] for r in rounds):.2f}"])
    head = ["tool", *(cell for work in arguments.works for cell in (work, "ratio")), "difference", "GB"]
    print(*markdown_table(head, rows), sep="\n")


if __name__ == "__main__":
    one_line_errors(main)
