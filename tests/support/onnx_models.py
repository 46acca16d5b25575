"""Run models in ONNX."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np


def session_of(folder: Path, threads: int = 1) -> Any:
    """Return a model in ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(folder / "model.onnx", options, providers=["CPUExecutionProvider"])


def run_onnx(folder: Path, batch: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the outputs of a model for a batch, by name, as ONNX Runtime computes them."""
    session = session_of(folder)
    names = [each.name for each in session.get_inputs()]
    assert set(names) <= batch.keys()
    arrays = session.run(None, {name: batch[name] for name in names})
    return dict(zip((each.name for each in session.get_outputs()), arrays, strict=True))
