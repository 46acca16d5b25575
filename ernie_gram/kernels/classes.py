"""A softmax over very many classes on a CPU, with its samples and gradients, some rows at a time.

Shape letters: M rows, O output size, C classes, C_i those of a part of the table; the parts follow each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ernie_gram.kernels.blas import add_product
from ernie_gram.kernels.compiled import exponentials, keys, maximum, philox, serial, sum_of, sum_of_rows
from ernie_gram.kernels.custom_operations import Result, add_operation, empty
from ernie_gram.kernels.operations import dropout_keys
from ernie_gram.kernels.parts import arguments_of, in_parts, matrix, vector
from ernie_gram.paddle_private import Value
from reader.system.compiled import numba

float32, uint32, uint64 = numba.float32, numba.uint32, numba.uint64
_classes = numba.int64[::1]
# Classes whose weights are added up together, before a sample is looked for among them.
_BLOCK = 256


@in_parts(lambda logits, *_: len(logits), matrix, vector, _classes, vector, _classes)
def _probabilities(row: int, given: Any) -> None:
    """Replace logits without bias by the softmax; set the row's -log p(label), and the class of the largest logit."""
    logits, bias, labels, losses, best = arguments_of(given)
    p, label = logits[row], labels[row]
    for j in range(p.size):
        p[j] += bias[j]
    largest, of_label = maximum(p.view(np.int32)), p[label]
    best[row] = 0
    for j in range(p.size):
        if p[j] == largest:
            best[row] = j
            break
    total = exponentials(p, largest, np.empty(p.size // 8, np.float32))
    losses[row] = (largest - of_label) + np.log(total)
    factor = float32(1) / total
    for j in range(p.size):
        p[j] *= factor


@serial
def _uniform(counter: int, key: np.ndarray) -> float:
    """Return a float64 in [0, 1) with 53 random bits, which the counter and the key decide."""
    a, b, _, _ = philox(uint32(counter), uint32(0), uint32(key[0]), uint32(key[1]))
    return float((uint64(a) << uint64(21)) | (uint64(b) >> uint64(11))) * 2.0**-53


@in_parts(lambda p, *_: len(p), matrix, numba.float32, keys, numba.int64, _classes)
def draw(row: int, given: Any) -> None:
    """Draw a class with a probability proportional to p^power: first its block, then the class.

    This way no sum of float32 is so long that a rare class is lost in rounding. A row of NaN gives class 0.
    """
    every, power, key, first, drawn = arguments_of(given)
    weights, memory = every[row], np.empty(_BLOCK // 8, np.float32)
    if power != float32(1):
        weights = np.empty(weights.size, np.float32)
        for j in range(weights.size):
            weights[j] = every[row, j] ** power
    sums, total = np.empty(-(-weights.size // _BLOCK), np.float64), 0.0
    for block in range(sums.size):
        total += sum_of(weights[block * _BLOCK : (block + 1) * _BLOCK], memory)
        sums[block] = total
    left, block = _uniform(first + row, key) * total, 0
    while block < sums.size - 1 and sums[block] <= left:
        block += 1
    left -= sums[block - 1] if block else 0.0
    drawn[row] = 0
    for j in range(block * _BLOCK, min((block + 1) * _BLOCK, weights.size)):
        # If rounding leaves a rest at the end, the last class that is possible is drawn.
        if weights[j] > float32(0):
            drawn[row] = j
            left -= weights[j]
            if left < 0.0:
                break


def cross_entropy(
    x: Value, labels: Value, bias: Value, tables: Sequence[Value], temperature: float | None, rows: int, train: bool
) -> tuple[Value, Value, Value | None, list[Value]]:
    """Return -log softmax(x T^T + b)[label] of every row, classes of the largest logits, samples, and gradients.

    Args:
        x, labels, bias, tables: float32 [M, O], int64 [M], float32 [C], and the parts of T, float32 [C_i, O].
        temperature: t of the samples, which are drawn from the distributions proportional to p^(1/t); None for none.
        rows: of logits that are in memory at a time.
        train: whether to return the gradients of the sum of the losses, of x, the bias and the tables.
    """
    key = None if temperature is None else dropout_keys(1)[0]
    results = [Result(1), Result(1, "int64")]
    results += [Result(1, "int64")] * (key is not None)
    results += [Result(0), Result(2), *(Result(4 + i) for i in range(len(tables)))] * train
    settings = (len(tables), temperature, rows, train)
    found = add_operation("cross_entropy", _cross_entropy, (x, labels, bias, key, *tables), tuple(results), *settings)
    losses, best, *others = found
    return losses, best, others.pop(0) if key is not None else None, others


def _cross_entropy(*arrays_and_settings: Any) -> None:
    x, labels, bias, key, *arrays, count, temperature, most, train = arrays_and_settings
    tables, (losses, best, *others) = arrays[:count], arrays[count:]
    drawn = None if key is None else others.pop(0)
    # The compiled functions do not check where they read.
    assert labels.min(initial=0) >= 0, "a label below 0"
    assert labels.max(initial=0) < bias.size, "a label that is no class"
    assert sum(map(len, tables)) == bias.size, "the table and the bias differ in the number of classes"
    logits, ends = empty([max(1, min(most, len(x))), len(bias)]), np.cumsum([len(table) for table in tables])
    if train and not len(x):
        for gradient in others[1:]:
            gradient.fill(0)
    for start in range(0, len(x), len(logits)):
        rows = slice(start, start + len(logits))
        x_rows, p = x[rows], logits[: len(x[rows])]
        parts = [p[:, end - len(table) : end] for table, end in zip(tables, ends, strict=True)]
        for part, table in zip(parts, tables, strict=True):
            add_product(x_rows, table.T, part, 0.0)
        _probabilities(p, bias, labels[rows], losses[rows], best[rows])
        if drawn is not None:
            draw(p, 1 / temperature, key, start, drawn[rows])
        if train:
            x_gradient, bias_gradient, *table_gradients = others
            p[np.arange(len(p)), labels[rows]] -= 1
            before, of_rows = float(start > 0), np.empty_like(bias)
            sum_of_rows(p, of_rows)
            bias_gradient[:] = of_rows + bias_gradient if before else of_rows
            for number, (part, table, of_table) in enumerate(zip(parts, tables, table_gradients, strict=True)):
                add_product(part, table, x_gradient[rows], float(number > 0))
                add_product(part.T, x_rows, of_table, before)
