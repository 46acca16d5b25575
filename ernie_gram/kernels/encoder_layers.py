"""Encoder layers on a CPU, forward and backward: products, and the compiled functions between them.

They compute what model/encoder.py composes of single operations. Rows are those of all contexts, without padding, and
behind them query rows. Masks of dropout are drawn again in the backward pass, from the layer's key.

Shape letters: N rows; M rows after the attention, fewer if only some are wanted; H hidden, A heads, D = H / A, F inner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ernie_gram.kernels import attention, blas, rows
from ernie_gram.kernels.compiled import sum_of_rows
from ernie_gram.kernels.custom_operations import empty
from ernie_gram.kernels.products import factor, product, weight

_BITS = 16
_NONE, _NO_KEY = np.empty(0, np.float32), np.empty(0, np.int32)


class Settings(NamedTuple):
    """Settings of a layer; `rounds`: whether the factors of products are rounded to bfloat16."""

    heads: int
    activation: str
    epsilon: float
    dropout: float
    attention_dropout: float
    rounds: bool


class Given(NamedTuple):
    """What layers read besides their rows and parameters.

    Attributes:
        starts: the first row of each sequence's context, and the number of their rows; int64 [B + 1].
        bias: of the scores of contexts' rows for their keys, float32 [1, A, L, L], or None.
        self_bias: of a query row's score for itself, float32 [A], or None.
        slots: of the query rows, int64, as many for each sequence; None without query rows.
        wanted: numbers of the only rows of contexts that the last layer returns, int64; None for all.
    """

    starts: Any
    bias: Any
    self_bias: Any
    slots: Any
    wanted: Any


class Parameters(NamedTuple):
    """The parameters of a layer, or their gradients: matrices [in, out] and vectors."""

    query: np.ndarray
    query_bias: np.ndarray
    key: np.ndarray
    key_bias: np.ndarray
    value: np.ndarray
    value_bias: np.ndarray
    output: np.ndarray
    output_bias: np.ndarray
    attention_scale: np.ndarray
    attention_shift: np.ndarray
    inner: np.ndarray
    inner_bias: np.ndarray
    outer: np.ndarray
    outer_bias: np.ndarray
    scale: np.ndarray
    shift: np.ndarray

    @property
    def projections(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The matrices of queries, keys and values."""
        return self.query, self.key, self.value

    @property
    def projection_biases(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Their biases."""
        return self.query_bias, self.key_bias, self.value_bias


class Kept(NamedTuple):
    """Results within a layer.

    Attributes:
        attended: [N, H], before the output projection.
        log_sums: log(sum(exp(scores))), [N, A].
        projected: queries, keys and values, [N, 3 H].
        first, second: what the layer norms read, [M, H].
        normal: the rows between attention and feed-forward network, [M, H].
        inner, active: before and after the activation, without the bias before, [M, F].
    """

    attended: np.ndarray
    log_sums: np.ndarray
    projected: np.ndarray
    first: np.ndarray
    normal: np.ndarray
    inner: np.ndarray
    active: np.ndarray
    second: np.ndarray


def _relu(x: np.ndarray, bias: np.ndarray, out: np.ndarray) -> None:
    np.maximum(np.add(x, bias, out), 0, out)


def _relu_backward(x: np.ndarray, bias: np.ndarray, gradient: np.ndarray, out: np.ndarray) -> None:
    np.multiply(gradient, x + bias > 0, out)


_ACTIVATIONS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "gelu": (rows.biased_gelu, rows.biased_gelu_backward),
    "relu": (_relu, _relu_backward),
}


def dropped(rate: float) -> tuple[int, float]:
    """Return in how many of 65,536 cases a number is dropped, and the factor of the others."""
    return min(round(rate * 2**_BITS), 2**_BITS - 1), 1 / (1 - rate)


class Layer(NamedTuple):
    """A layer that computes.

    Attributes:
        key: int32 [2], which decides the masks of dropout; not read without dropout.
    """

    parameters: Parameters
    given: Given
    key: Any
    settings: Settings

    def forward(self, x: np.ndarray, out: np.ndarray, kept: Kept, attends: bool = True) -> None:
        """Set out, float32 [M, H], to the rows x, [N, H], after the layer, and what is kept of it.

        Args:
            attends: False if `attended` and `log_sums` are set already.
        """
        (parameters, *_), rounds, epsilon = self, self.settings.rounds, self.settings.epsilon
        x_factor = factor(x, rounds)
        for third, matrix in zip(np.split(kept.projected, 3, 1), parameters.projections, strict=True):
            product(x_factor, weight(matrix, rounds), third)
        rows.add_bias(kept.projected, np.concatenate(parameters.projection_biases), kept.projected)
        if attends:
            attended = kept.attended.reshape(len(x), self.settings.heads, -1)
            for part, arguments in self._attention_arguments(kept.projected):
                attention.attention(*arguments, attended[part], kept.log_sums[part])
        product(factor(self._selected(kept.attended), rounds), weight(parameters.output, rounds), kept.first)
        norm = parameters.attention_scale, parameters.attention_shift, epsilon, *self._mask(1)
        residual = self._selected(x)
        rows.normalised_sum(kept.first, parameters.output_bias, residual, *norm, kept.first, kept.normal)
        product(factor(kept.normal, rounds), weight(parameters.inner, rounds), kept.inner)
        _ACTIVATIONS[self.settings.activation][0](kept.inner, parameters.inner_bias, kept.active)
        product(factor(kept.active, rounds), weight(parameters.outer, rounds), kept.second)
        norm = parameters.scale, parameters.shift, epsilon, *self._mask(2)
        rows.normalised_sum(kept.second, parameters.outer_bias, kept.normal, *norm, kept.second, out)

    def backward(
        self,
        x: np.ndarray,
        kept: Kept,
        gradient: np.ndarray,
        of_x: np.ndarray,
        found: Parameters,
        of_bias: np.ndarray | None,
        of_self: np.ndarray | None,
    ) -> None:
        """Set gradients, given that of the result, float32 [M, H].

        Args:
            x, kept: as in the forward pass.
            of_x, found: the gradients of x, [N, H], and of the parameters, which are set.
            of_bias, of_self: those of the biases, or None.
        """
        parameters, rounds, all_rows = self.parameters, self.settings.rounds, self.given.wanted is None
        # Of what a layer norm reads, and of what dropout reads before it.
        of_sum, of_branch = empty(kept.second.shape), empty(kept.second.shape)
        norm = parameters.scale, gradient, self.settings.epsilon, *self._mask(2)
        of_vectors = found.scale, found.shift, found.outer_bias
        rows.normalised_sum_backward(kept.second, *norm, of_sum, of_branch, *of_vectors)
        branch, of_inner = factor(of_branch, rounds), empty(kept.inner.shape)
        product(factor(kept.active, rounds).T, branch, found.outer)
        product(branch, factor(parameters.outer, rounds).T, of_inner)
        _ACTIVATIONS[self.settings.activation][1](kept.inner, parameters.inner_bias, of_inner, of_inner)
        sum_of_rows(of_inner, found.inner_bias)
        inner = factor(of_inner, rounds)
        product(factor(kept.normal, rounds).T, inner, found.inner)
        product(inner, factor(parameters.inner, rounds).T, of_sum, 1.0)
        norm = parameters.attention_scale, of_sum, self.settings.epsilon, *self._mask(1)
        of_vectors = found.attention_scale, found.attention_shift, found.output_bias
        of_residual = of_x if all_rows else empty(kept.first.shape)
        rows.normalised_sum_backward(kept.first, *norm, of_residual, of_branch, *of_vectors)
        branch, of_attended = factor(of_branch, rounds), empty(kept.attended.shape)
        product(factor(self._selected(kept.attended), rounds).T, branch, found.output)
        of_selected = of_attended if all_rows else of_sum
        product(branch, factor(parameters.output, rounds).T, of_selected)
        if not all_rows:
            for every, some in ((of_attended, of_selected), (of_x, of_residual)):
                every.fill(0)
                np.add.at(every, self._wanted(len(x)), some)
        of_projected = self._attention_backward(kept, of_attended, of_bias, of_self)
        projected, x_factor = factor(of_projected, rounds), factor(x, rounds)
        parts = np.split(projected, 3, 1)
        for part, matrix, of_matrix in zip(parts, parameters.projections, found.projections, strict=True):
            product(x_factor.T, part, of_matrix)
            product(part, factor(matrix, rounds).T, of_x, 1.0)
        sums = np.empty(of_projected.shape[1], np.float32)
        sum_of_rows(of_projected, sums)
        for of_vector, each in zip(found.projection_biases, np.split(sums, 3), strict=True):
            of_vector[:] = each

    def _mask(self, number: int) -> tuple[np.ndarray, int, float]:
        """Return the key of a dropout, or none, and what `dropped` returns."""
        rate = self.settings.dropout
        return self.key ^ number if rate else _NO_KEY, *dropped(rate)

    def _wanted(self, count: int) -> np.ndarray:
        """Return the numbers of the rows after the attention: the wanted ones of contexts, and all query rows."""
        return np.concatenate([self.given.wanted, np.arange(self.given.starts[-1], count)])

    def _selected(self, x: np.ndarray) -> np.ndarray:
        return x if self.given.wanted is None else x[self._wanted(len(x))]

    def _attention_arguments(self, projected: np.ndarray) -> Iterator[tuple[slice, tuple[Any, ...]]]:
        """Yield the rows of all contexts, and the arguments of kernels/attention.py; then those of query rows."""
        starts, bias, self_bias, slots, _ = self.given
        rows_of_heads = projected.reshape(len(projected), 3, self.settings.heads, -1)
        # Loads the library that the compiled function calls.
        assert blas.is_available()
        # The compiled function does not check where it reads and writes.
        count, widths = int(starts[-1]), np.diff(starts)
        longest, own = int(widths.max(initial=0)), 0 if slots is None else slots.size
        are_placed = (starts[0], count + own) == (0, len(projected)) and widths.min(initial=0) >= 0
        assert are_placed, "the sequences do not fill the rows: is a length larger than the width of the batch?"
        assert bias is None or longest <= bias.shape[-1], "a sequence is longer than the bias"
        context, biases, rate = rows_of_heads[:count], _of_heads(bias), self.settings.attention_dropout
        key, numbers = self.key if rate else _NO_KEY, (*dropped(rate), rows_of_heads.shape[-1] ** -0.5, longest)
        yield slice(count), (context, context, biases, _NONE, starts, np.empty(0, np.int64), key, *numbers)
        if slots is None:
            return
        places = slots.reshape(-1)
        assert widths.min() > 0, "query rows of a sequence without a context"
        assert own > 0 == own % len(widths), "every sequence has as many query rows"
        assert 0 <= places.min() <= places.max() < longest, "a query row's slot is not in any sequence"
        # Another key for other masks.
        others = (biases, _NONE if self_bias is None else self_bias, starts, places, ~key)
        yield slice(count, None), (context, rows_of_heads[count:], *others, *numbers)

    def _attention_backward(
        self, kept: Kept, gradient: np.ndarray, of_bias: np.ndarray | None, of_self: np.ndarray | None
    ) -> np.ndarray:
        """Return the gradient of queries, keys and values, [N, 3 H], and set those of the biases."""
        heads, of_projected = self.settings.heads, empty(kept.projected.shape)
        attended, gradient = (each.reshape(len(each), heads, -1) for each in (kept.attended, gradient))
        of_rows = of_projected.reshape(len(of_projected), 3, heads, -1)
        of_biases = _of_heads(of_bias), _NONE if of_self is None else of_self
        for part, arguments in self._attention_arguments(kept.projected):
            passed = attended[part], kept.log_sums[part], gradient[part]
            of_context = of_rows[: len(arguments[0])]
            attention.attention_backward(*arguments, *passed, of_context, of_rows[part], *of_biases)
        return of_projected


def rows_after(layers: Sequence[Layer], x: np.ndarray, out: np.ndarray, kept: Sequence[np.ndarray]) -> None:
    """Set out, float32 [M, H], to the rows x, [N, H], after layers, of which only the last one selects the wanted rows.

    Args:
        kept: arrays for the first attributes of Kept, which are set; none, or those of a single layer.
    """
    memory = _memory(layers[0], x, len(x), kept, shares=True)
    for layer in layers:
        target = out
        if layer is not layers[-1]:
            layer, target = layer._replace(given=layer.given._replace(wanted=None)), empty(x.shape)
        layer.forward(x, target, Kept._make([*memory[:3], *(each[: len(target)] for each in memory[3:])]))
        x = target


def layer_gradients(layer: Layer, x: np.ndarray, kept: Sequence[np.ndarray], gradient: np.ndarray, *found: Any) -> None:
    """Set gradients of a layer; see `Layer.backward`.

    Args:
        kept: what `rows_after` set; the rest is computed again.
    """
    memory = _memory(layer, x, len(gradient), kept)
    if len(kept) < len(memory):
        layer.forward(x, empty(gradient.shape), memory, attends=False)
    layer.backward(x, memory, gradient, *found)


def _memory(layer: Layer, x: np.ndarray, m: int, kept: Sequence[np.ndarray], shares: bool = False) -> Kept:
    """Return what is there of the results of a layer, and memory for the others, which two may share if one is read."""
    (count, width), inner = x.shape, layer.parameters.inner.shape[1]
    wide = [(count, width), (count, layer.settings.heads), (count, 3 * width)]
    shapes = [*wide, (m, width), (m, width), (m, inner), (m, inner), (m, width)]
    found = [*kept, *map(empty, shapes[len(kept) : 6 if shares else None])]
    return Kept._make([*found, found[5], found[3]][: len(shapes)])


def _of_heads(bias: np.ndarray | None) -> np.ndarray:
    """Return a bias [1, A, L, L] as [A, L, L]; no heads for no bias."""
    return np.empty((0, 1, 1), np.float32) if bias is None else bias[0]
