"""Time a model's answers beside ONNX Runtime: `python -m tests.benchmarks.inference --help`.

A BERT of random numbers, by default of 12 x 768, is answered by this project through each of its doors, and by ONNX
Runtime in float32. All have the same parameters, and the same batches without padding (B x L tokens) or sentences: the
lines of --input, with our tokenizer or that of `tokenizers`, sorted by length, padded in batches of 16. They take turns
in one process, with as many threads as OMP_NUM_THREADS says. Seconds are CPU seconds of all threads, the median of the
rounds; "ratio" is to ONNX Runtime, the median of the ratios of the rounds. "difference" is the largest one from ONNX
Runtime's output for [CLS].
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from tokenizers import BertWordPieceTokenizer

from ernie_gram import Model
from ernie_gram.distributed.processor import processor_name, read_cpuinfo
from ernie_gram.formats.model import ModelRecord
from ernie_gram.formats.parameters import encoder_shapes
from ernie_gram.formats.registry import write_model
from ernie_gram.inference.texts import EncodedText
from ernie_gram.model.config import ModelConfig
from reader.errors import one_line_errors
from reader.tokenization.vocabulary_file import load_vocabulary
from tasks.sweeps.table import markdown_table
from tests.benchmarks.measure import step_seconds
from tests.support.commands import ERNIE_GRAM, python
from tests.support.onnx_models import session_of

SENTENCES, BATCH_SIZE = "sentences", 16
WORKS = ("16 x 128", "8 x 384", "1 x 32", SENTENCES)
Answer = Callable[[np.ndarray | list[str]], np.ndarray]  # token IDs [B, L], or texts -> the output for [CLS], [B, H]


def write_models(arguments: argparse.Namespace, folder: Path) -> None:
    """Write the model in each form."""
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
    config, random, parameters = replace(config, vocab_size=len(vocabulary)), np.random.default_rng(1), {}
    for name, shape in encoder_shapes(config).items():
        if len(shape) == 1:  # LayerNorms that change nothing, and biases of 0
            parameters[name] = np.full(shape, float(name.endswith("_scale")), np.float32)
        else:
            parameters[name] = (random.standard_normal(shape) * config.initializer_range).astype(np.float32)
    write_model(ModelRecord(folder, "drawn", config, parameters, vocabulary), folder / "model", "ernie_gram")
    python(*ERNIE_GRAM, "convert", str(folder / "model"), str(folder / "onnx"), "--to", "onnx").ok()


def ours(folder: Path, precision: str) -> Answer:
    """Return the answers of this project; all hidden states are computed."""
    model = Model.load(folder, precision)

    def answer(given: np.ndarray | list[str]) -> np.ndarray:
        if isinstance(given, list):
            return np.stack([each.hidden[0] for each in model.encode(given, BATCH_SIZE)])
        texts = [EncodedText(row, np.zeros(len(row), np.int64), [None] * len(row)) for row in given]
        return model.outputs(texts, ["hidden"])["hidden"][:, 0]

    return answer


def onnx_runtime(folder: Path, vocabulary: Path) -> Answer:
    """Return the answers of ONNX Runtime."""
    session, tokenizer = session_of(folder, int(os.environ["OMP_NUM_THREADS"])), BertWordPieceTokenizer(str(vocabulary))
    names = [each.name for each in session.get_inputs()]

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        given = zip(names, (ids_BL, lengths_B, np.zeros_like(ids_BL)), strict=False)
        return np.asarray(session.run(None, dict(given))[0])[:, 0]

    def answer(given: np.ndarray | list[str]) -> np.ndarray:
        if not isinstance(given, list):
            return run(given, np.full(*given.shape))
        encoded = [each.ids for each in tokenizer.encode_batch(given)]
        order, found = sorted(range(len(given)), key=lambda row: len(encoded[row])), {}
        for first in range(0, len(order), BATCH_SIZE):
            rows = order[first : first + BATCH_SIZE]
            lengths = np.array([len(encoded[row]) for row in rows])
            ids = np.array([encoded[row] + [0] * (lengths.max() - len(encoded[row])) for row in rows])
            found.update(zip(rows, run(ids, lengths), strict=True))
        return np.stack([found[row] for row in range(len(given))])

    return answer


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vocabulary", type=Path, required=True, metavar="VOCAB.txt", help="that of an uncased BERT")
    parser.add_argument("--input", type=Path, required=True, help="a text with sentences, one a line")
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--heads", type=int, default=12, help="of 64 numbers each")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--works", nargs="+", choices=WORKS, default=list(WORKS))
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"{processor_name(read_cpuinfo())}, {os.environ['OMP_NUM_THREADS']} threads")
    with tempfile.TemporaryDirectory() as name:
        write_models(arguments, Path(name))
        tools = {"ours": ours(Path(name) / "model", arguments.precision)}
        tools["ONNX Runtime"] = onnx_runtime(Path(name) / "onnx", arguments.vocabulary)
    tokens = len(load_vocabulary(arguments.vocabulary, True))
    rows: dict[str, list[str]] = {tool: [tool] for tool in tools}
    for work in arguments.works:
        given: np.ndarray | list[str] = arguments.input.read_text(encoding="utf-8").splitlines()
        if work != SENTENCES:
            given = np.random.default_rng(0).integers(1000, tokens, tuple(map(int, work.split(" x "))))
        found = {tool: answer(given) for tool, answer in tools.items()}
        seconds = [
            [step_seconds(partial(answer, given), 3)["cpu"] for answer in tools.values()]
            for _ in range(arguments.rounds)
        ]
        for i, tool in enumerate(tools):
            ratio = median(each[i] / each[-1] for each in seconds)
            difference = np.abs(found[tool] - found["ONNX Runtime"]).max()
            rows[tool] += [f"{median(each[i] for each in seconds):.3f}", f"{ratio:.2f}", f"{difference:.0e}"]
    head = ["tool", *(cell for work in arguments.works for cell in (work, "ratio", "difference"))]
    print(*markdown_table(head, rows.values()), sep="\n")


if __name__ == "__main__":
    one_line_errors(main)
