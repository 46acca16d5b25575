"""Time the answers of a fine-tuned model beside transformers: `python -m tests.benchmarks.fine_tuned --help`.

RUN is a fine-tuning of a BERT. The rows of --input, a JSON object a line as in `ernie-gram predict --layout json`, are
pairs of texts (`text_a`, `text_b`), or questions on a `context`. transformers has an encoder with the same parameters
under an output layer of random numbers, its fast tokenizer, batches of 16 sorted by length, and for questions the best
of 20 beginnings and ends in each window. Both processes take turns. Seconds are CPU seconds of one thread, from texts
to answers; the ratio is the median of those of the rounds.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from tests.benchmarks.answering import BATCH_SIZE, SENTENCES, serve

WINDOW, STRIDE, BEST, LONGEST = 384, 128, 20, 30


class Ours:
    """The answers of this project."""

    def __init__(self, run: str, precision: str) -> None:
        from tasks import FineTuned

        self._model = FineTuned.load(run, precision=precision)

    def texts(self, lines: list[str]) -> np.ndarray:
        return np.full((1, 1), len(self._model.predict([json.loads(line) for line in lines], BATCH_SIZE)))


class Theirs:
    """The answers of transformers."""

    def __init__(self, folder: str, precision: str) -> None:
        import torch
        import transformers

        transformers.logging.set_verbosity_error()
        torch.set_num_threads(1)
        self._torch, self._rounds = torch, precision == "bfloat16"
        self._tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self._classes = transformers.AutoModelForSequenceClassification, transformers.AutoModelForQuestionAnswering
        self._models, self._folder = dict[bool, Any](), folder

    def texts(self, lines: list[str]) -> np.ndarray:
        rows = [json.loads(line) for line in lines]
        is_span = "context" in rows[0]
        if is_span not in self._models:
            self._models[is_span] = self._classes[is_span].from_pretrained(self._folder).eval()
        windows = {"truncation": "only_second", "stride": STRIDE, "return_overflowing_tokens": True}
        names = ("question", "context") if is_span else ("text_a", "text_b")
        encoded = self._tokenizer(
            *([row[name] for row in rows] for name in names),
            **({"max_length": WINDOW, "return_offsets_mapping": True, **windows} if is_span else {"truncation": True}),
        )
        scores = self._scores(self._models[is_span], encoded, is_span)
        best: dict[int, Any] = {}
        for i, found in enumerate(scores if is_span else ()):
            (starts, ends), row = found.T.argsort()[:, -BEST:], encoded["overflow_to_sample_mapping"][i]
            for start in starts:
                for end in ends:
                    score = found[start, 0] + found[end, 1]
                    if start <= end < start + LONGEST and (row not in best or score > best[row][0]):
                        best[row] = score, encoded["offset_mapping"][i][start], encoded["offset_mapping"][i][end]
        return np.full((1, 1), len(best or scores))

    def _scores(self, model: Any, encoded: Any, is_span: bool) -> list[np.ndarray]:
        torch, ids = self._torch, encoded["input_ids"]
        order, found = sorted(range(len(ids)), key=lambda i: len(ids[i])), dict[int, np.ndarray]()
        for first in range(0, len(order), BATCH_SIZE):
            chosen = order[first : first + BATCH_SIZE]
            given = {name: [encoded[name][i] for i in chosen] for name in ("input_ids", "token_type_ids")}
            batch = self._tokenizer.pad(given, return_tensors="pt")
            with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=self._rounds):
                output = model(**batch)
            scores = torch.stack([output.start_logits, output.end_logits], -1) if is_span else output.logits.softmax(-1)
            for i, row in zip(chosen, scores.float().numpy(), strict=True):
                found[i] = row[: len(ids[i])]
        return [found[i] for i in range(len(ids))]


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, metavar="RUN")
    parser.add_argument("--input", type=Path, required=True, metavar="ROWS.jsonl")
    parser.add_argument("--others", required=True, metavar="PYTHON", help="an interpreter with torch and transformers")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    from ernie_gram.formats.registry import read_model, write_model
    from tests.benchmarks.inference import Tool

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        write_model(read_model(arguments.run), Path(folder) / "bert", "bert", accept_loss=True)
        module, given = ["-m", "tests.benchmarks.fine_tuned"], [str(arguments.input.resolve()), arguments.precision]
        tools = [
            Tool(stack, [python, *module, name, str(path), *given], 1)
            for python, name, path in (
                (sys.executable, "ours", arguments.run.resolve()),
                (arguments.others, "theirs", Path(folder) / "bert"),
            )
        ]
        rounds = [[tool.answer(SENTENCES)["seconds"] for tool in tools] for _ in range(arguments.rounds + 1)][1:]
        print(f"ours, transformers: {[[round(each, 2) for each in pair] for pair in rounds]}")
        print(f"ratio: {median(ours / theirs for ours, theirs in rounds):.2f}")


if __name__ == "__main__":
    if sys.argv[1] in ("ours", "theirs"):
        tool, folder, rows, precision = sys.argv[1:]
        answers = Ours if tool == "ours" else Theirs
        serve(lambda: answers(folder, precision), {"texts": rows, "repeats": {}})
    else:
        main()
