"""A process that answers the same batches and sentences as others, when it is told to, and reports its CPU seconds.

Nothing of this project is imported but measure.py. Tools take turns (see inference.py), so that what else the machine
does slows all of them alike.
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tests.benchmarks.measure import times_of

SENTENCES = "sentences"
BATCH_SIZE = 16


class Answers(Protocol):
    """Both return the encoder's output for [CLS], float32 [B, H]."""

    run: Callable[[np.ndarray, np.ndarray], np.ndarray]

    def texts(self, texts: list[str]) -> np.ndarray:
        """Answer texts."""


def serve(load: Callable[[], Answers], job: dict[str, Any]) -> None:
    """Answer lines of standard input, each a shape "B x L" or SENTENCES, with JSON: CPU seconds and some numbers.

    The first line of output is empty, or says what is not installed.
    """
    try:
        answers = load()
    except ImportError as error:
        print(json.dumps({"missing": str(error)}), flush=True)
        return
    print(json.dumps({}), flush=True)
    found: list[np.ndarray] = []

    def answer(work: str) -> None:
        if work == SENTENCES:
            found.append(answers.texts(texts))
        else:
            found.append(answers.run(ids, lengths))

    texts = Path(job["texts"]).read_text(encoding="utf-8").splitlines()
    for line in sys.stdin:
        work = line.strip()
        if work != SENTENCES:
            rows, length = map(int, work.split(" x "))
            ids = np.random.default_rng(0).integers(1000, job["tokens"], (rows, length))
            lengths = np.full(rows, length)
        seconds = sum(cpu for _, cpu in times_of(answer, [work] * job["repeats"].get(work, 1)))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        numbers = found[-1][:, :8].tolist()
        found.clear()
        print(json.dumps({"seconds": seconds, "peak": peak, "numbers": numbers}), flush=True)
