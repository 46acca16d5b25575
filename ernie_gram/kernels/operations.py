"""Operations of Paddle programs that run the functions of compiled.py, biases.py, attention.py and classes.py.

`in_place` lets a result take the memory of the first input, which nothing may read afterwards. The functions that
compute get arrays of the inputs, then of the results, then the settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import paddle

from ernie_gram.kernels import attention as compiled_attention
from ernie_gram.kernels import bfloat16_products, biases, blas, classes, compiled
from ernie_gram.kernels.custom_operations import Result, add_operation, array_of
from ernie_gram.paddle_private import Operation, Value, random_integers

_BITS = 16
_LEAST, _MOST = -(2**31), 2**31 - 1


def dropout_key() -> Value:
    """Return the key of a dropout mask, int32 [2], drawn in each step."""
    return random_integers(_LEAST, _MOST, 2)


def is_dropout_key(operation: Operation) -> bool:
    """Return whether an operation of a program is one that `dropout_key` added."""
    if operation.name() != "pd_op.randint" or list(operation.result(0).shape) != [2]:
        return False
    return (operation.attrs()["low"], operation.attrs()["high"]) == (_LEAST, _MOST)


def dropout_keys(count: int) -> list[Value]:
    """Return several keys, which one operation draws."""
    return paddle.unbind(random_integers(_LEAST, _MOST, 2 * count).reshape([count, 2]))


def dropout(x: Value, key: Value, rate: float) -> list[Value]:
    """Return x with numbers dropped and the others scaled up, and the mask, uint8, 1 for those that are kept.

    Args:
        key: int32 [2]; it decides the mask.
    """
    return add_operation("dropout", _dropout, (x, key), (Result(0), Result(0, "uint8")), rate)


def _dropout(x: np.ndarray, key: np.ndarray, out: np.ndarray, mask: np.ndarray, rate: float) -> None:
    compiled.dropout(_flat(x), key, _bound(rate), _scale(rate), _flat(out), _flat(mask))


def masked(gradient: Value, mask: Value, rate: float) -> list[Value]:
    """Return the gradient of x, given that of x with dropout."""
    return add_operation("masked", _masked, (gradient, mask), (Result(0),), rate)


def _masked(gradient: np.ndarray, mask: np.ndarray, out: np.ndarray, rate: float) -> None:
    compiled.masked(_flat(gradient), _flat(mask), _scale(rate), _flat(out))


class Attending(NamedTuple):
    """The inputs of attention, whose scores are divided by sqrt(D); H = A D.

    Attributes:
        rows: queries, keys and values of all rows, float32 [..., 3 H]: those of the contexts, to whose keys all rows
            attend, and behind them query rows, which attend to themselves too.
        bias: float32 [1, A, L, L], or None.
        self_bias: of a query row's score for itself, float32 [A], or None.
        starts: the first row of each sequence's context, and the number of their rows; int64 [B + 1].
        slots: of the query rows, int64, as many for each sequence; None without query rows.
    """

    rows: Value
    bias: Value | None
    self_bias: Value | None
    starts: Value
    slots: Value | None


def attention(given: Attending, key: Value | None, heads: int, rate: float) -> list[Value]:
    """Return the attention of rows to the contexts of sequences, [..., H], and log(sum(exp(scores))), [..., A].

    Args:
        key: int32 [2]; it decides the mask of dropout, None for no dropout.
    """
    size = int(given.rows.shape[-1]) // (3 * heads)
    results = (Result(0, last=heads * size), Result(0, last=heads))
    return add_operation("attention", _attention, (*given, key), results, heads, size, rate)


def _attention(*arrays_and_settings: Any) -> None:
    *inputs, out, log_sums, heads, size, rate = arrays_and_settings
    out, log_sums = out.reshape(-1, heads, size), _rows(log_sums, heads)
    for part, arguments in _attention_arguments(inputs, heads, size, rate):
        compiled_attention.attention(*arguments, out[part], log_sums[part])


def attention_with_gradient(given: Attending, heads: int, rate: float) -> Value:
    """Return the first result of `attention`, with its gradients; dropout has a key of its own in each step.

    A `pd_op.pylayer`, which runs its forward and its backward pass as programs of their own. The backward pass may read
    values of the program around it, but only if they are inputs or results of the operation.
    """
    inputs, results = (*given, dropout_key() if rate else None), list[Value]()
    size = int(given.rows.shape[-1]) // (3 * heads)

    def forward(*_: Value) -> list[Value]:
        return attention(given, inputs[-1], heads, rate)

    def backward(gradient: Value, _: Value) -> tuple[Value | None, ...]:
        is_wanted = [value is not None and (i == 0 or not value.stop_gradient) for i, value in enumerate(inputs[:3])]
        wanted = [i for i, asked in enumerate(is_wanted) if asked]
        name, places = f"attention_backward_{len(wanted)}", tuple(Result(3 + i) for i in wanted)
        read, settings = (gradient, *results, *inputs), (heads, size, rate)
        found = dict(zip(wanted, add_operation(name, _attention_backward, read, places, *settings), strict=True))
        return tuple(found.get(i) for i, value in enumerate(inputs) if value is not None)

    results += paddle.static.nn.static_pylayer(forward, [value for value in inputs if value is not None], backward)
    return results[0]


def _attention_backward(*arrays_and_settings: Any) -> None:
    gradient, out, log_sums, *arrays, heads, size, rate = arrays_and_settings
    inputs, (of_rows, *others) = arrays[:6], arrays[6:]
    gradient, out = (each.reshape(-1, heads, size) for each in (gradient, out))
    of_rows, log_sums = of_rows.reshape(-1, 3, heads, size), _rows(log_sums, heads)
    of_bias = _of_heads(others[0] if others else None)
    of_self = others[1] if others[1:] else np.empty(0, np.float32)
    for part, arguments in _attention_arguments(inputs, heads, size, rate):
        of_context = of_rows[: len(arguments[0])]
        passed = out[part], log_sums[part], gradient[part]
        compiled_attention.attention_backward(*arguments, *passed, of_context, of_rows[part], of_bias, of_self)


def _attention_arguments(
    inputs: Sequence[Any], heads: int, size: int, rate: float
) -> Iterator[tuple[slice, tuple[Any, ...]]]:
    """Yield the rows of all contexts, and the arguments of kernels/attention.py; then those of query rows."""
    rows, bias, self_bias, starts, slots, key = inputs
    # Loads the library that the compiled function calls.
    assert blas.is_available()
    rows, count = rows.reshape(-1, 3, heads, size), int(starts[-1])
    # The compiled function does not check where it reads and writes.
    widths, longest = np.diff(starts), int(np.diff(starts).max(initial=0))
    own = 0 if slots is None else slots.size
    are_placed = (starts[0], count + own) == (0, len(rows)) and widths.min(initial=0) >= 0
    assert are_placed, "the sequences do not fill the rows: is a length larger than the width of the batch?"
    assert bias is None or longest <= bias.shape[-1], "a sequence is longer than the bias"
    context, biases = rows[:count], _of_heads(bias)
    none, key = np.empty(0, np.float32), np.empty(0, np.int32) if key is None else key
    settings = _bound(rate), _scale(rate), size**-0.5, longest
    yield slice(count), (context, context, biases, none, starts, np.empty(0, np.int64), key, *settings)
    if slots is None:
        return
    places = _flat(slots)
    assert widths.min() > 0, "query rows of a sequence without a context"
    assert own > 0 == own % len(widths), "every sequence has as many query rows"
    assert 0 <= places.min() <= places.max() < longest, "a query row's slot is not in any sequence"
    # Another key for other masks.
    given = (biases, none if self_bias is None else self_bias, starts, places, ~key)
    yield slice(count, None), (context, rows[count:], *given, *settings)


def _of_heads(bias: np.ndarray | None) -> np.ndarray:
    """Return a bias [1, A, L, L] as [A, L, L]; no heads for no bias."""
    return np.empty((0, 1, 1), np.float32) if bias is None else bias[0]


def layer_norm_backward(
    x: Value, scale: Value, mean: Value, variance: Value, gradient: Value, epsilon: float
) -> list[Value]:
    """Return the gradients of x, scale and bias of a layer norm over the last axis."""
    results = (Result(0), Result(1), Result(1))
    return add_operation(
        "layer_norm_backward", _layer_norm_backward, (x, scale, mean, variance, gradient), results, epsilon
    )


def _layer_norm_backward(*arrays_and_epsilon: Any) -> None:
    x, scale, mean, variance, gradient, *found, epsilon = arrays_and_epsilon
    n = scale.shape[0]
    compiled.layer_norm_backward(
        *(_rows(x, n), _flat(mean), _flat(variance), scale, _rows(gradient, n), epsilon),
        *(_rows(found[0], n), found[1], found[2]),
    )


def class_cross_entropy(
    x: Value, labels: Value, bias: Value, tables: Sequence[Value], temperature: float | None, rows: int, train: bool
) -> tuple[Value, Value, Value | None, list[Value]]:
    """Return the losses, the classes of the largest logits, samples, and gradients; see classes.cross_entropy.

    Args:
        temperature: None for no samples; the keys are drawn in each step.
        rows: of logits that are in memory at a time.
        train: whether to return the gradients of the sum of the losses, of x, the bias and the tables.
    """
    key = None if temperature is None else dropout_key()
    results = [Result(1), Result(1, "int64")]
    results += [Result(1, "int64")] * (key is not None)
    results += [Result(0), Result(2), *(Result(4 + i) for i in range(len(tables)))] * train
    settings = (len(tables), temperature, rows, train)
    found = add_operation(
        "class_cross_entropy", _class_cross_entropy, (x, labels, bias, key, *tables), tuple(results), *settings
    )
    losses, best, *others = found
    return losses, best, others.pop(0) if key is not None else None, others


def _class_cross_entropy(*arrays_and_settings: Any) -> None:
    x, labels, bias, key, *arrays, count, temperature, rows, train = arrays_and_settings
    tables, (losses, best, *others) = arrays[:count], arrays[count:]
    samples = None if key is None else (key, temperature, others.pop(0))
    gradients = (others[0], others[1], others[2:]) if train else None
    # Paddle keeps the memory of its tensors from step to step.
    memory = paddle.empty([max(1, min(rows, len(x))), len(bias)])
    classes.cross_entropy(x, labels, bias, tables, array_of(memory), losses, best, samples, gradients)


def with_gradients(total: Value, values: Sequence[Value], gradients: Sequence[Value]) -> Value:
    """Return a scalar with the value of `total`, whose gradients with respect to some values are the given ones.

    The memory of the gradients is used for their products with that of the scalar.
    """

    def backward(factor: Value) -> tuple[Value | None, ...]:
        given = [add_operation("scaled", _scaled, (each, factor), (Result(0, in_place=True),))[0] for each in gradients]
        return (None, *given, *[None] * len(gradients))

    result = paddle.static.nn.static_pylayer(lambda x, *_: paddle.assign(x), [total, *values, *gradients], backward)
    result.stop_gradient = False
    return result


def _scaled(x: np.ndarray, factor: np.ndarray, out: np.ndarray) -> None:
    compiled.scaled(_flat(x), factor.item(), _flat(out))


def add_bias(rows: Value, bias: Value, in_place: bool) -> list[Value]:
    """Return rows + bias for rows [..., n] and n numbers."""
    return add_operation("add_bias", _add_bias, (rows, bias), (Result(0, in_place=in_place),))


def sum_of_rows(rows: Value) -> list[Value]:
    """Return the sum of rows [..., n], [n]."""
    return add_operation("sum_of_rows", _sum_of_rows, (rows,), (Result(0, axes=(-1,)),))


def _sum_of_rows(rows: np.ndarray, out: np.ndarray) -> None:
    compiled.sum_of_rows(_rows(rows, out.size), out)


def biased_gelu(rows: Value, bias: Value, in_place: bool) -> list[Value]:
    """Return gelu(rows + bias) for rows [..., n] and n numbers."""
    return add_operation("biased_gelu", _biased_gelu, (rows, bias), (Result(0, in_place=in_place),))


def biased_gelu_backward(rows: Value, bias: Value, gradient: Value) -> list[Value]:
    """Return the gradient of rows + bias, given that of gelu(rows + bias)."""
    return add_operation("biased_gelu_backward", _biased_gelu_backward, (rows, bias, gradient), (Result(0),))


def _with_bias(compute: Callable[..., None], rows: np.ndarray, bias: np.ndarray, *others: np.ndarray) -> None:
    compute(_rows(rows, bias.size), _flat(bias), *(_rows(each, bias.size) for each in others))


_add_bias, _biased_gelu = partial(_with_bias, biases.add_bias), partial(_with_bias, biases.biased_gelu)
_biased_gelu_backward = partial(_with_bias, biases.biased_gelu_backward)


def rounded(x: Value) -> Value:
    """Return x rounded to bfloat16."""
    return add_operation("rounded", _rounded, (x,), (Result(0, "bfloat16"),))[0]


def _rounded(x: np.ndarray, out: np.ndarray) -> None:
    bfloat16_products.round_numbers(_flat(x), _flat(out))


def rounded_product(x: Value, matrix: Value, transposed: bool) -> Value:
    """Return the float32 product of x [..., k] and a matrix [k, n], or [n, k] if it is transposed; both bfloat16."""
    width = int(matrix.shape[0 if transposed else 1])
    return add_operation("rounded_product", _rounded_product, (x, matrix), (Result(0, last=width),), width, transposed)[
        0
    ]


def _rounded_product(x: np.ndarray, matrix: np.ndarray, out: np.ndarray, width: int, transposed: bool) -> None:
    rows, second = _rows(x, x.shape[-1]), matrix.T if transposed else matrix
    bfloat16_products.product(rows, second, _rows(out, width))


def product_of_rows(x: Value, y: Value) -> Value:
    """Return the float32 sum of x_i^T y_i over the rows of x [..., k] and y [..., n], [k, n]; both bfloat16."""
    result = Result(0, axes=(-1, -1), last=int(y.shape[-1]))
    return add_operation("product_of_rows", _product_of_rows, (x, y), (result,), int(y.shape[-1]))[0]


def _product_of_rows(x: np.ndarray, y: np.ndarray, out: np.ndarray, width: int) -> None:
    bfloat16_products.product(_rows(x, len(out)).T, _rows(y, width), out)


def packed_product(x: Value, packed: Value, width: int, rounds: bool) -> Value:
    """Return the product of x [..., k] and a matrix [k, width] that was packed.

    Args:
        rounds: whether the factors are rounded to bfloat16: see bfloat16_products.pack, otherwise blas.pack.
    """
    return add_operation("packed_product", _packed_product, (x, packed), (Result(0, last=width),), width, rounds)[0]


def _packed_product(x: np.ndarray, packed: np.ndarray, out: np.ndarray, width: int, rounds: bool) -> None:
    multiply = bfloat16_products.packed_product if rounds else blas.packed_product
    multiply(_rows(x, x.shape[-1]), packed, _rows(out, width))


def normalised_sum(
    rows: Value, bias: Value, residual: Value, scale: Value, shift: Value, epsilon: float, in_place: bool
) -> list[Value]:
    """Return the layer norm of residual + rows + bias over the last axis, with scale and shift."""
    inputs = (rows, bias, residual, scale, shift)
    return add_operation("normalised_sum", _normalised_sum, inputs, (Result(0, in_place=in_place),), epsilon)


def _normalised_sum(*arrays_and_epsilon: Any) -> None:
    rows, bias, residual, scale, shift, out, epsilon = arrays_and_epsilon
    # As everywhere, unknown sizes are taken to be equal (see graph.skip_gradients_of_additions).
    assert rows.shape == residual.shape, "a residual that broadcasts; give it an axis of size 1 in the program"
    n = bias.size
    biases.normalised_sum(_rows(rows, n), _flat(bias), _rows(residual, n), scale, shift, epsilon, _rows(out, n))


def _bound(rate: float) -> int:
    """Return in how many of 65,536 cases a number is dropped."""
    return min(round(rate * 2**_BITS), 2**_BITS - 1)


def _scale(rate: float) -> float:
    return 1 / (1 - rate)


def _flat(array: np.ndarray) -> np.ndarray:
    return array.reshape(-1)


def _rows(array: np.ndarray, n: int) -> np.ndarray:
    return array.reshape(-1, n)
