"""Check that samples from a softmax over many classes have its frequencies (see pretraining/chunked_softmax.py)."""

from __future__ import annotations

import numpy as np
import paddle

from ernie_gram.distributed.world import start_world
from ernie_gram.gpu_checks.check import Setup, require
from ernie_gram.pretraining.chunked_softmax import LazyLogits, cross_entropy

CLASSES, ROWS, RUNS = 3000, 4000, 25
# Classes that are expected less often are counted together.
LEAST_EXPECTED = 20
# A statistic that is further from its mean has a probability below 1e-6.
MAX_SIGMAS = 5.0


def sampler(setup: Setup) -> str:
    """Draw from known probabilities; compare the counts by their chi-square statistic, and the most frequent class."""
    world = start_world("gpu")
    weights = 1.0 / np.arange(1, CLASSES + 1)
    probabilities = np.random.default_rng(1).permutation(weights / weights.sum())
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()), paddle.utils.unique_name.guard():
        bias = paddle.static.data("bias", [CLASSES], "float32")
        logits = LazyLogits(paddle.zeros([ROWS, 8]), paddle.zeros([CLASSES, 8]), bias)
        drawn = cross_entropy(logits, paddle.zeros([ROWS], "int64"), chunks=2, train=False, temperature=1).sampled
    executor, feed = paddle.static.Executor(world.place), {"bias": np.log(probabilities).astype(np.float32)}

    def draw(seed: int) -> np.ndarray:
        paddle.seed(seed)
        return executor.run(program, feed=feed, fetch_list=[drawn])[0]

    require(np.array_equal(draw(0), draw(0)), "the same seed draws other samples")
    runs = [draw(seed) for seed in range(RUNS)]
    require(not np.array_equal(runs[0], runs[1]), "another seed draws the same samples")
    sigmas, most = deviations(np.bincount(np.concatenate(runs), minlength=CLASSES), probabilities)
    setup.numbers.update(chi_square_sigmas=sigmas, most_frequent_sigmas=most, samples=ROWS * RUNS)
    for value, what in ((sigmas, "chi-square statistic"), (most, "count of the most frequent class")):
        require(abs(value) <= MAX_SIGMAS, f"the {what} is {value:+.1f} standard deviations from its mean")
    return f"chi-square of {ROWS * RUNS:,} samples: {sigmas:+.1f} standard deviations from its mean"


def deviations(counts: np.ndarray, probabilities: np.ndarray) -> tuple[float, float]:
    """Return the deviations from their means, in standard deviations, of two statistics of drawn classes.

    They are the chi-square statistic, and the count of the most probable class.
    """
    assert len(counts) == len(probabilities), "a sample is not a class"
    expected = probabilities * counts.sum()
    is_rare = expected < LEAST_EXPECTED
    found = np.append(counts[~is_rare], counts[is_rare].sum())
    expected = np.append(expected[~is_rare], expected[is_rare].sum())
    statistic, freedom = float(np.sum((found - expected) ** 2 / expected)), len(found) - 1
    most = int(np.argmax(expected[:-1]))
    spread = np.sqrt(expected[most] * (1 - expected[most] / counts.sum()))
    return (statistic - freedom) / np.sqrt(2 * freedom), float((found[most] - expected[most]) / spread)
