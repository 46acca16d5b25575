"""Answer batches and sentences with another tool, for inference.py: ONNX Runtime, transformers or `paddle.inference`.

It runs in an interpreter of its own, and imports nothing of this project but small modules of this folder:
`python -m tests.benchmarks.inference_others TOOL JOB.json`. A tool that is not installed is reported as such.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.answering import Answers, serve

Run = Callable[[np.ndarray, np.ndarray], np.ndarray]  # IDs and lengths -> the output for [CLS]


def onnxruntime_run(job: dict[str, Any]) -> Run:
    """Return the run of a file that paddle2onnx wrote."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    session = onnxruntime.InferenceSession(job["onnx"], options, providers=["CPUExecutionProvider"])
    ids, lengths, *sentences = (each.name for each in session.get_inputs())

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        given = {ids: ids_BL, lengths: lengths_B, **{name: np.zeros_like(ids_BL) for name in sentences}}
        found: np.ndarray = session.run(None, given)[0]
        return found[:, 0]

    return run


def transformers_run(job: dict[str, Any]) -> Run:
    """Return the run of transformers' BertModel, compiled if the job says so."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(job["threads"])
    model = transformers.BertModel.from_pretrained(job["bert"], dtype=torch.float32).eval()
    forward = torch.compile(model, dynamic=True) if job["compiled"] else model

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        mask = torch.from_numpy((np.arange(ids_BL.shape[1]) < lengths_B[:, None]).astype(np.int64))
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=job["mode"] == "autocast"):
            output = forward(torch.from_numpy(ids_BL), attention_mask=mask)
        found: np.ndarray = output.last_hidden_state[:, 0].float().numpy()
        return found

    return run


def paddle_run(job: dict[str, Any]) -> Run:
    """Return the run of an exported program by `paddle.inference`, with oneDNN if the job says so."""
    from paddle import inference

    config = inference.Config(job["program"], job["parameters"])
    config.set_cpu_math_library_num_threads(job["threads"])
    (config.enable_mkldnn if job["onednn"] else config.disable_mkldnn)()
    if job["mode"] != "float32":
        config.enable_mkldnn_bfloat16()
    predictor = inference.create_predictor(config)
    names = predictor.get_input_names()

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        for name, values in zip(names, (ids_BL, lengths_B, np.zeros_like(ids_BL)), strict=False):
            predictor.get_input_handle(name).copy_from_cpu(values)
        predictor.run()
        found: np.ndarray = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
        return found[:, 0]

    return run


class Others(Answers):
    """Another tool, whose texts `tokenizers` encodes."""

    def __init__(self, run: Run, job: dict[str, Any]) -> None:
        from tokenizers import BertWordPieceTokenizer

        self.run, self._batch_size = run, job["batch_size"]
        self._tokenizer = BertWordPieceTokenizer(job["vocabulary"])

    def texts(self, texts: list[str]) -> np.ndarray:
        encoded = [each.ids for each in self._tokenizer.encode_batch(texts)]
        order, found = sorted(range(len(texts)), key=lambda row: len(encoded[row])), {}
        for first in range(0, len(order), self._batch_size):
            rows = order[first : first + self._batch_size]
            lengths = np.array([len(encoded[row]) for row in rows])
            ids = np.zeros((len(rows), lengths.max()), np.int64)
            for target, row in zip(ids, rows, strict=True):
                target[: len(encoded[row])] = encoded[row]
            found.update(zip(rows, self.run(ids, lengths), strict=True))
        return np.stack([found[row] for row in range(len(texts))])


TOOLS: dict[str, tuple[Callable[[dict[str, Any]], Run], dict[str, Any]]] = {
    "ONNX Runtime": (onnxruntime_run, {}),
    "transformers": (transformers_run, {"compiled": False}),
    "transformers, compiled": (transformers_run, {"compiled": True}),
    "paddle.inference": (paddle_run, {"onednn": False}),
    "paddle.inference, oneDNN": (paddle_run, {"onednn": True}),
}


def main() -> None:
    """Answer what standard input asks for."""
    make, settings = TOOLS[sys.argv[1]]
    job = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8")) | settings
    serve(lambda: Others(make(job), job), job)


if __name__ == "__main__":
    main()
