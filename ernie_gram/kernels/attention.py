"""Attention on a CPU, forward and backward, compiled; the matrix of weights is never stored.

Blocks of rows stay in the processor's caches (as in FlashAttention, Dao et al. 2022). The backward pass computes the
weights of a block again from the scores and log(sum(exp(scores))) of each row; the dropout mask of a block depends on
the block's number and the step's key alone, so it is drawn again. The parts into which the work is divided do not
depend on the number of threads, so neither do the results.

The rows of a context attend to those of their sequence; sequences lie one after another in a batch, without padding.
Query rows, as many for each sequence, attend to the context of their sequence, and each to itself (equation 4).

Shape letters: B sequences, R rows of all contexts, L slots of the longest one, Q query rows, A heads, D = H / A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.kernels.blas import FIRST_TRANSPOSED, PLAIN, SECOND_TRANSPOSED, product
from ernie_gram.kernels.compiled import decide, exp, exponentials, maximum, product_of, serial
from ernie_gram.kernels.parts import arguments_of, in_parts, vector
from reader.system.compiled import numba

float32, uint32, uint64 = numba.float32, numba.uint32, numba.uint64
_cube, _rows_of_heads = numba.float32[:, :, ::1], numba.float32[:, ::1]
_projections, _integers = numba.float32[:, :, :, ::1], numba.int64[::1]
_COMMON = (
    *(_projections, _projections, _cube, vector, _integers, _integers, numba.int32[::1]),
    *(numba.int64, float32, float32, numba.int64, _cube, _rows_of_heads),
)
# Rows of a block: two blocks of float32 for 512 keys are half a megabyte.
_ROWS = 128
# The backward pass divides the sequences into groups, so that there are about this many parts.
_PARTS = 32
_FLOAT, _ALIGNMENT = 4, 64


@numba.njit(cache=True, nogil=True)
def _draw(block: int, numbers: int, most: int, key: np.ndarray, bound: int, kept: np.ndarray) -> None:
    """Draw the mask, kept [numbers], of the block-th block of all sequences and heads; `most` is the longest row."""
    first = uint64(block) * uint64((_ROWS * most + 7) // 8)
    decide(first, uint32(key[0]), uint32(key[1]), uint32(bound), kept[: (numbers + 7) // 8 * 8])


@numba.njit(cache=True, nogil=True)
def _block(keys: int) -> np.ndarray:
    """Return memory for a block, float32 [_ROWS, keys], whose address is a multiple of _ALIGNMENT.

    The order of additions in MKL's products depends on the alignment.
    """
    numbers = np.empty(_ROWS * keys + _ALIGNMENT // _FLOAT, np.float32)
    first = (_ALIGNMENT - numbers.ctypes.data % _ALIGNMENT) // _FLOAT
    return numbers[first : first + _ROWS * keys].reshape((_ROWS, keys))


@serial
def _weights(row: np.ndarray, bias: np.ndarray, log_sum: float) -> None:
    """Replace scores without bias by weights."""
    for j in range(row.size):
        row[j] = exp(row[j] + bias[j] - log_sum)


@serial
def _places(sequence: int, starts: np.ndarray, slots: np.ndarray) -> tuple[int, int, int, int]:
    """Return a sequence's first key and number of keys; and its first row that attends, and the number of those."""
    begin, keys = starts[sequence], starts[sequence + 1] - starts[sequence]
    if slots.size:
        count = slots.size // (starts.size - 1)
        return begin, keys, sequence * count, count
    return begin, keys, begin, keys


@in_parts(lambda context, *others: (len(others[3]) - 1) * context.shape[2], *_COMMON)
def attention(part: int, given: Any) -> None:
    """Set out to dropout(softmax(scale Q K^T + bias)) V for each sequence and head.

    Args:
        context: queries, keys and values of the contexts, float32 [R, 3, A, D].
        own: those of the rows that attend: the same array; or those of query rows, [Q, 3, A, D].
        bias: float32 [A, L, L], or [0, 1, 1] for none.
        self_bias: of a query row's score for itself, float32 [A], or [0] for none.
        starts: the first row of each sequence, and R; int64 [B + 1].
        slots: of the query rows, whose bias they have, int64 [Q]; or [0] if the contexts' rows attend.
        key: int32 [2], decides the masks of dropout, or [0] for none.
        bound: a weight is dropped with probability bound / 65536.
        kept_scale: the factor of weights that are not dropped.
        longest: the rows of the longest sequence, at most L.
        out: float32 [R or Q, A, D].
        log_sums: set to log(sum(exp(scores))) of each row, float32 [R or Q, A].
    """
    context, own, bias, self_bias, starts, slots, key, bound = arguments_of(given)[:8]
    kept_scale, scale, longest, out, log_sums = arguments_of(given)[8:]
    _, _, heads, size = context.shape
    sequence, head = part // heads, part % heads
    begin, keys, first, count = _places(sequence, starts, slots)
    has_self = slots.size > 0
    width, weights, most = heads * size, keys + has_self, longest + has_self
    row_size, blocks = 3 * width, ((count if has_self else longest) + _ROWS - 1) // _ROWS
    scores, kept = _block(keys), np.empty(_ROWS * weights + 7, np.uint8)
    bits, none, sums = scores.view(np.int32), np.zeros(longest, np.float32), np.empty(most + size, np.float32)
    self_weights, self_score, of_self = np.empty(_ROWS, np.float32), float32(0), float32(0)
    at_keys = context.ctypes.data + _FLOAT * (begin * row_size + width + head * size), row_size
    at_values, at_scores = (at_keys[0] + _FLOAT * width, row_size), (scores.ctypes.data, keys)
    for start in range(first, first + count, _ROWS):
        rows, block = min(_ROWS, first + count - start), (start - first) // _ROWS
        queries = own.ctypes.data + _FLOAT * (start * row_size + head * size), row_size
        product(SECOND_TRANSPOSED, (rows, keys, size), scale, queries, at_keys, 0.0, at_scores)
        if key.size:
            _draw(part * blocks + block, rows * weights, most, key, bound, kept)
        for i in range(rows):
            added, row, at = none, scores[i], start + i
            if bias.shape[0]:
                added = bias[head, slots[at] if has_self else at - first]
            for j in range(keys):
                row[j] += added[j]
            largest = maximum(bits[i])
            if has_self:
                self_score = product_of(own[at, 0, head], own[at, 1, head], sums) * scale
                self_score += self_bias[head] if self_bias.size else float32(0)
                largest = max(largest, self_score)
            total = exponentials(row, largest, sums)
            if has_self:
                of_self = exp(self_score - largest)
                total += of_self
            log_sums[at, head] = largest + np.log(total)
            factor = kept_scale / total
            if key.size:
                mask = kept[i * weights : (i + 1) * weights]
                for j in range(keys):
                    row[j] = row[j] * factor if mask[j] else float32(0)
                self_weights[i] = of_self * factor if has_self and mask[keys] else float32(0)
            else:
                for j in range(keys):
                    row[j] *= factor
                self_weights[i] = of_self * factor
        block_out = out[start : start + rows, head]
        product(PLAIN, (rows, size, keys), 1.0, at_scores, at_values, 0.0, (block_out.ctypes.data, width))
        for i in range(rows if has_self else 0):
            for d in range(size):
                block_out[i, d] += self_weights[i] * own[start + i, 2, head, d]


@in_parts(
    lambda context, *others: others[-2] * context.shape[2],
    *(*_COMMON, _cube, _projections, _projections, _projections, _rows_of_heads, numba.int64, numba.int64),
)
def _attention_backward(part: int, given: Any) -> None:
    context, own, bias, self_bias, starts, slots, key, bound = arguments_of(given)[:8]
    kept_scale, scale, longest, out, log_sums, out_gradient = arguments_of(given)[8:14]
    gradient, own_gradient, sums, self_sums, _, members = arguments_of(given)[14:]
    _, _, heads, size = context.shape
    sequences, has_self, adds = starts.size - 1, slots.size > 0, sums.shape[0] > 0
    width, row_size, most = heads * size, 3 * heads * size, longest + has_self
    group, head = part // heads, part % heads
    none, memory, of_self_scores = (
        np.zeros(longest, np.float32),
        np.empty(size, np.float32),
        np.empty(_ROWS, np.float32),
    )
    for sequence in range(group * members, min((group + 1) * members, sequences)):
        begin, keys, first, count = _places(sequence, starts, slots)
        weights, blocks = keys + has_self, ((count if has_self else longest) + _ROWS - 1) // _ROWS
        scores, of_scores, kept = _block(keys), _block(keys), np.empty(_ROWS * weights + 7, np.uint8)
        at_scores, at_gradients = (scores.ctypes.data, keys), (of_scores.ctypes.data, keys)
        offset, to_values = _FLOAT * (begin * row_size + width + head * size), _FLOAT * width
        at_keys, of_keys = (context.ctypes.data + offset, row_size), (gradient.ctypes.data + offset, row_size)
        at_values, of_values = (at_keys[0] + to_values, row_size), (of_keys[0] + to_values, row_size)
        for start in range(first, first + count, _ROWS):
            rows, block = min(_ROWS, first + count - start), (start - first) // _ROWS
            before = float32(start > first or has_self)
            of_out = out_gradient.ctypes.data + _FLOAT * (start * width + head * size), width
            offset = _FLOAT * (start * row_size + head * size)
            query, of_query = (own.ctypes.data + offset, row_size), (own_gradient.ctypes.data + offset, row_size)
            product(SECOND_TRANSPOSED, (rows, keys, size), scale, query, at_keys, 0.0, at_scores)
            product(SECOND_TRANSPOSED, (rows, keys, size), 1.0, of_out, at_values, 0.0, at_gradients)
            if key.size:
                _draw((sequence * heads + head) * blocks + block, rows * weights, most, key, bound, kept)
            for i in range(rows):
                row, of_row, at = scores[i], of_scores[i], start + i
                slot, mask = slots[at] if has_self else at - first, kept[i * weights : (i + 1) * weights]
                _weights(row, bias[head, slot] if bias.shape[0] else none, log_sums[at, head])
                total = product_of(out_gradient[at, head], out[at, head], memory)
                if key.size:
                    for j in range(keys):
                        weight, of_weight = row[j], of_row[j] * kept_scale if mask[j] else float32(0)
                        row[j] = weight * kept_scale if mask[j] else float32(0)
                        of_row[j] = weight * (of_weight - total)
                else:
                    for j in range(keys):
                        of_row[j] = row[j] * (of_row[j] - total)
                if adds:
                    sum_row = sums[group, head, slot]
                    for j in range(keys):
                        sum_row[j] += of_row[j]
                if has_self:
                    score = product_of(own[at, 0, head], own[at, 1, head], memory) * scale
                    score += self_bias[head] if self_bias.size else float32(0)
                    weight = exp(score - log_sums[at, head])
                    factor = kept_scale if not key.size or mask[keys] else float32(0)
                    of_weight = product_of(out_gradient[at, head], own[at, 2, head], memory) * factor
                    of_score = weight * (of_weight - total)
                    for d in range(size):
                        own_gradient[at, 2, head, d] = weight * factor * out_gradient[at, head, d]
                        own_gradient[at, 1, head, d] = scale * of_score * own[at, 0, head, d]
                    of_self_scores[i] = of_score
                    if adds:
                        self_sums[group, head] += of_score
            product(FIRST_TRANSPOSED, (keys, size, rows), 1.0, at_scores, of_out, before, of_values)
            product(PLAIN, (rows, size, keys), scale, at_gradients, at_keys, 0.0, of_query)
            product(FIRST_TRANSPOSED, (keys, size, rows), scale, at_gradients, query, before, of_keys)
            for i in range(rows if has_self else 0):
                for d in range(size):
                    own_gradient[start + i, 0, head, d] += scale * of_self_scores[i] * own[start + i, 1, head, d]


@in_parts(lambda bias_gradient, *_: len(bias_gradient), _cube, numba.float32[:, :, :, ::1], numba.int64)
def _add_groups(head: int, given: Any) -> None:
    bias_gradient, sums, adds = arguments_of(given)
    groups, _, slots, _ = sums.shape
    for slot in range(bias_gradient.shape[1]):
        row = bias_gradient[head, slot]
        for j in range(0 if adds else row.size):
            row[j] = float32(0)
        for group in range(groups if slot < slots else 0):
            of_group = sums[group, head, slot]
            for j in range(slots):
                row[j] += of_group[j]


def attention_backward(*given: Any) -> None:
    """Set the gradients of the context, of the rows that attend, of the bias and of that of query rows for themselves.

    Args: those of `attention`; the gradient of its result; and the gradients that are set: `gradient` as context;
        `own_gradient`, the same array, or as own; `bias_gradient`, [A, L, L], or [0, 1, 1] if nobody asks for it; and
        `self_gradient`, [A], or [0]. Those of query rows are added to what `gradient` and `bias_gradient` hold.

    With weights P, their dropout mask M (times kept_scale), values V and dO = out_gradient:
    dV = (P M)^T dO, dS = P (M (dO V^T) - rowsum(dO out)), dQ = scale dS K, dK = scale dS^T Q; that of the bias is the
    sum of dS over the sequences.
    """
    *common, out_gradient, gradient, own_gradient, bias_gradient, self_gradient = given
    heads, sequences, longest, adds = common[0].shape[2], len(common[4]) - 1, common[10], len(bias_gradient) > 0
    groups = min(sequences, -(-_PARTS // heads)) if adds else sequences
    members = max(1, -(-sequences // max(groups, 1)))
    groups = -(-sequences // members)
    sums = np.zeros((groups if adds else 0, heads, longest, longest), np.float32)
    self_sums = np.zeros((groups, heads), np.float32)
    _attention_backward(*common, out_gradient, gradient, own_gradient, sums, self_sums, groups, members)
    if adds:
        _add_groups(bias_gradient, sums, len(common[5]))
    self_gradient[:] = self_sums.sum(0)[: len(self_gradient)]
