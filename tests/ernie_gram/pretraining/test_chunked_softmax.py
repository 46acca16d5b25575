"""The softmax computed in chunks: losses, gradients and samples against their definitions."""

from __future__ import annotations

import numpy as np
import paddle
import pytest
from scipy.special import log_softmax, softmax
from scipy.stats import chisquare

from ernie_gram.kernels import classes
from ernie_gram.paddle_private import eager_guard
from ernie_gram.pretraining.chunked_softmax import LazyLogits, cross_entropy, fused_cross_entropy
from tests.support.static_programs import Arrays, fresh_program


def compute(
    feeds: Arrays,
    chunks: int,
    temperature: float | None = None,
    seeds: tuple[int, ...] = (1,),
    dtype: str = "float32",
    fused: bool = False,
) -> list[list[np.ndarray]]:
    """Return the fetched arrays, once per seed; `dtype` is that of the products.

    The fused operation gets the table in two parts.

    They are the total, the row losses, the best classes, the gradients of half the total with respect to x, table and
    bias, and the samples if asked for.
    """
    with fresh_program() as (executor, main, _):
        x, table, bias, labels = (
            paddle.static.data(
                name, [None, *value.shape[1:]] if name in ("x", "labels") else value.shape, str(value.dtype)
            )
            for name, value in feeds.items()
        )
        for value in (x, table, bias):
            value.stop_gradient = False
        if fused:
            logits, rows = LazyLogits(x, (table[:3], table[3:]), bias), -(-max(1, len(feeds["x"])) // chunks)
            found = fused_cross_entropy(logits, labels, rows, True, temperature)
        else:
            logits = LazyLogits(x, (table,), bias)
            found = cross_entropy(logits, labels, chunks, True, temperature, getattr(paddle, dtype))
        gradients = paddle.static.gradients([found.total * 0.5], [x, table, bias])
        fetches = [found.total, found.row_loss, found.row_best, *gradients]
        if found.sampled is not None:
            fetches.append(found.sampled)
        results = []
        for seed in seeds:
            paddle.seed(seed)
            results.append(executor.run(main, feed=feeds, fetch_list=fetches))
        return results


def example(rows: int, size: int, classes: int, spread: float = 1.0) -> Arrays:
    random = np.random.default_rng(rows + classes)
    return {
        "x": random.standard_normal((rows, size)).astype("float32") * spread,
        "table": random.standard_normal((classes, size)).astype("float32"),
        "bias": random.standard_normal(classes).astype("float32"),
        "labels": random.integers(0, classes, rows),
    }


@pytest.mark.parametrize("chunks", [1, 2, 4, 11])
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("fused", [False, True])
def test_loss_and_gradients_equal_their_definitions(chunks: int, spread: float, fused: bool) -> None:
    feeds = example(9, 6, 50, spread)
    feeds["labels"][3] = feeds["labels"][5]  # one class is the label of two rows
    ((total, row_loss, best, x_gradient, table_gradient, bias_gradient),) = compute(feeds, chunks, fused=fused)
    x, table = feeds["x"].astype(np.float64), feeds["table"].astype(np.float64)
    logits = x @ table.T + feeds["bias"]
    rows = np.arange(9)
    expected = -log_softmax(logits, -1)[rows, feeds["labels"]]
    tolerance = {"rtol": 1e-6, "atol": 1e-6 * max(1.0, np.abs(logits).max())}
    np.testing.assert_allclose(row_loss, expected, **tolerance)
    np.testing.assert_allclose(total, expected.sum(), rtol=1e-6)
    assert best.tolist() == logits.argmax(-1).tolist()
    # d loss / d logits = p - onehot(label); the chain rule gives the others. Halved, as compute() halves the total.
    slope = softmax(logits, -1)
    slope[rows, feeds["labels"]] -= 1
    slope /= 2
    for found, gradient in ((x_gradient, slope @ table), (table_gradient, slope.T @ x), (bias_gradient, slope.sum(0))):
        np.testing.assert_allclose(found, gradient, atol=2e-6 * max(1.0, np.abs(gradient).max()), rtol=1e-5)


def test_gradients_are_summed_in_float32_under_bfloat16() -> None:
    """One class is the label of 2000 rows: a sum in bfloat16 would stop growing at 256."""
    rows, classes = 2000, 16
    feeds = example(rows, 8, classes, spread=0.1)
    feeds["labels"][:] = 3
    *_, table_gradient, bias_gradient = compute(feeds, 4, dtype="bfloat16")[0]
    x64, table64 = feeds["x"].astype(np.float64), feeds["table"].astype(np.float64)
    slope = softmax(x64 @ table64.T + feeds["bias"], -1)
    slope[:, 3] -= 1
    assert abs(slope[:, 3].sum()) > 1000
    slope /= 2
    np.testing.assert_allclose(bias_gradient, slope.sum(0), rtol=0.02, atol=1)
    expected = slope.T @ x64
    np.testing.assert_allclose(table_gradient, expected, rtol=0.02, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize(
    ("blocks", "classes", "temperature"),
    [(32, 12, 1.0), (5, 12, 1.0), (1, 12, 1.0), (3, 10, 0.7), (None, 12, 1.0), (None, 600, 1.0), (None, 10, 0.7)],
)
def test_samples_follow_the_softmax_distribution(
    blocks: int | None, classes: int, temperature: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The classes are in blocks of one class, in blocks of 3, in one block, or in blocks of 4, 4 and 2.

    Without a number of blocks, the fused operation draws.
    """
    if blocks:
        monkeypatch.setattr("ernie_gram.pretraining.chunked_softmax.BLOCKS", blocks)
    draws = 20_000
    feeds = example(1, 4, classes, spread=0.2)
    feeds["bias"] *= min(1, 100 / classes)
    feeds["x"] = np.repeat(feeds["x"], draws, 0)
    feeds["labels"] = np.zeros(draws, np.int64)
    first, again, other = (found[-1] for found in compute(feeds, 3, temperature, seeds=(1, 1, 2), fused=blocks is None))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    logits = feeds["x"][0].astype(np.float64) @ feeds["table"].T.astype(np.float64) + feeds["bias"]
    p = softmax(logits / temperature)
    expected = p * draws
    assert expected.min() > 5  # the chi-squared test requires it
    for sampled in (first, other):
        assert chisquare(np.bincount(sampled, minlength=classes), expected).pvalue > 1e-3
    # Neighbouring draws are independent: after a draw of the top class, its probability is unchanged.
    top = int(p.argmax())
    after_top = first[1:][first[:-1] == top] == top
    assert abs(after_top.mean() - p[top]) < 4 * np.sqrt(p[top] / len(after_top))


@pytest.mark.parametrize("fused", [False, True])
def test_without_rows_all_gradients_are_0_and_a_nan_appears_in_the_loss(fused: bool) -> None:
    """Samples of a NaN remain valid classes."""
    feeds = example(9, 6, 50)
    feeds |= {name: feeds[name][:0] for name in ("x", "labels")}
    ((total, row_loss, best, _, table_gradient, bias_gradient),) = compute(feeds, 1, fused=fused)
    assert total == len(row_loss) == len(best) == 0
    assert not table_gradient.any()
    assert not bias_gradient.any()
    feeds = example(4, 3, 10)
    feeds["x"][1] = np.nan
    _, row_loss, *_, sampled = compute(feeds, 2, temperature=1, fused=fused)[0]
    assert np.isnan(row_loss).tolist() == [False, True, False, False]
    assert 0 <= sampled.min() <= sampled.max() < 10


@pytest.mark.parametrize("label", [-1, 7])
def test_a_label_that_is_no_class_is_refused(label: int) -> None:
    x, table, bias = (np.zeros(shape, np.float32) for shape in ((1, 8), (7, 8), 7))
    results = np.empty(1, np.float32), np.empty(1, np.int64)
    with eager_guard(), pytest.raises(AssertionError, match="a label"):
        classes._cross_entropy(x, np.array([label]), bias, None, table, *results, 1, None, 4, False)
