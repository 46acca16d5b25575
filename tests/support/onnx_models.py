"""Run models in ONNX as a user does: in a process that has neither Paddle nor this project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Imports fail as where these packages are not installed.
WITHOUT_PADDLE = "import sys\nfor name in ('paddle', 'paddle2onnx', 'ernie_gram', 'reader'): sys.modules[name] = None\n"


def run_alone(code: str, folder: Path) -> str:
    """Return what code prints in a process of its own that starts in a folder, and imports neither Paddle nor us."""
    command = [sys.executable, "-c", WITHOUT_PADDLE + code]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_onnx(folder: Path, batch: dict[str, Any]) -> dict[str, np.ndarray]:
    """Return the outputs of a model for a batch, by name, as ONNX Runtime computes them."""
    import onnxruntime

    session = onnxruntime.InferenceSession(folder / "model.onnx", providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    assert set(names) <= batch.keys()
    arrays = session.run(None, {name: batch[name] for name in names})
    return dict(zip((each.name for each in session.get_outputs()), arrays, strict=True))
