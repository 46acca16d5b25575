"""Answer batches and sentences with one tool, for inference.py: `python -m tests.benchmarks.answering TOOL JOB.json`.

Nothing of this project is imported but measure.py, except by its own tools: the others have an interpreter of their
own. It prints one line of JSON: the peak of memory in GB, and for each work the CPU seconds and some numbers.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tests.benchmarks.measure import step_seconds

SENTENCES = "sentences"
BATCH_SIZE = 16
Job = dict[str, Any]
Run = Callable[[np.ndarray, np.ndarray], np.ndarray]  # IDs and lengths -> the output for [CLS], float32 [B, H]
Encode = Callable[[list[str]], np.ndarray]  # texts -> the same


def ours(job: Job, form: str) -> tuple[Run, Encode]:
    """Return the answers of this project, of a model or an exported program; all hidden states are computed."""
    from ernie_gram import Model
    from ernie_gram.inference.texts import EncodedText

    model = Model.load(job[form], job["precision"])

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        none: list[Any] = [None] * ids_BL.shape[1]
        texts = [EncodedText(row[:n], np.zeros(n, np.int64), none) for row, n in zip(ids_BL, lengths_B, strict=True)]
        return model.outputs(texts, ["hidden"])["hidden"][:, 0]

    return run, lambda texts: np.stack([each.hidden[0] for each in model.encode(texts, BATCH_SIZE)])


def onnxruntime(job: Job) -> tuple[Run, Encode]:
    """Return the answers of a file that paddle2onnx wrote, which computes in float32."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job["threads"]
    session = onnxruntime.InferenceSession(f"{job['onnx']}/model.onnx", options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        given = zip(names, (ids_BL, lengths_B, np.zeros_like(ids_BL)), strict=False)
        return np.asarray(session.run(None, dict(given))[0])[:, 0]

    return run, encoding(run, job)


def transformers(job: Job, compiled: bool) -> tuple[Run, Encode]:
    """Return the answers of transformers' BertModel; bfloat16 is autocast."""
    import torch
    import transformers

    torch.set_num_threads(job["threads"])
    model = transformers.BertModel.from_pretrained(job["bert"], dtype=torch.float32).eval()
    forward = torch.compile(model, dynamic=True) if compiled else model

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        mask = torch.from_numpy((np.arange(ids_BL.shape[1]) < lengths_B[:, None]).astype(np.int64))
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=job["precision"] == "bfloat16"):
            output = forward(torch.from_numpy(ids_BL), attention_mask=mask)
        return np.asarray(output.last_hidden_state[:, 0].float())

    return run, encoding(run, job)


def paddle_inference(job: Job, onednn: bool) -> tuple[Run, Encode]:
    """Return the answers of an exported program by `paddle.inference`."""
    from paddle import inference

    config = inference.Config(f"{job['program']}/model.json", f"{job['program']}/model.pdiparams")
    config.set_cpu_math_library_num_threads(job["threads"])
    (config.enable_mkldnn if onednn else config.disable_mkldnn)()
    if job["precision"] == "bfloat16":
        config.enable_mkldnn_bfloat16()
    predictor = inference.create_predictor(config)

    def run(ids_BL: np.ndarray, lengths_B: np.ndarray) -> np.ndarray:
        given = (ids_BL, lengths_B, np.zeros_like(ids_BL))
        for name, values in zip(predictor.get_input_names(), given, strict=False):
            predictor.get_input_handle(name).copy_from_cpu(values)
        predictor.run()
        return np.asarray(predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu())[:, 0]

    return run, encoding(run, job)


def encoding(run: Run, job: Job) -> Encode:
    """Return a function that encodes texts with `tokenizers` and answers them, in batches sorted by length."""
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(job["vocabulary"])

    def encode(texts: list[str]) -> np.ndarray:
        encoded = [each.ids for each in tokenizer.encode_batch(texts)]
        order, found = sorted(range(len(texts)), key=lambda row: len(encoded[row])), {}
        for first in range(0, len(order), BATCH_SIZE):
            rows = order[first : first + BATCH_SIZE]
            lengths = np.array([len(encoded[row]) for row in rows])
            ids = np.array([encoded[row] + [0] * (lengths.max() - len(encoded[row])) for row in rows])
            found.update(zip(rows, run(ids, lengths), strict=True))
        return np.stack([found[row] for row in range(len(texts))])

    return encode


TOOLS: dict[str, Callable[[Job], tuple[Run, Encode]]] = {
    "ours, Model": partial(ours, form="model"),
    "ours, exported program": partial(ours, form="program"),
    "ONNX Runtime": onnxruntime,
    "transformers": partial(transformers, compiled=False),
    "transformers, compiled": partial(transformers, compiled=True),
    "paddle.inference": partial(paddle_inference, onednn=False),
    "paddle.inference, oneDNN": partial(paddle_inference, onednn=True),
}


def main() -> None:
    """Answer everything once, and then once more, timed."""
    job = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    run, encode_texts = TOOLS[sys.argv[1]](job)
    texts, found = Path(job["texts"]).read_text(encoding="utf-8").splitlines(), dict[str, Any]()
    for work in job["works"]:
        if work == SENTENCES:
            answer = partial(encode_texts, texts)
        else:
            rows, length = map(int, work.split(" x "))
            ids = np.random.default_rng(0).integers(1000, job["tokens"], (rows, length))
            answer = partial(run, ids, np.full(rows, length))
        seconds = step_seconds(answer, 3)["cpu"]
        found[work] = {"seconds": seconds, "numbers": answer()[:, :8].tolist()}
    print(json.dumps({**found, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}))


if __name__ == "__main__":
    main()
