"""Attention on a CPU, forward and backward, compiled; the matrix of weights is never stored.

Blocks of rows stay in the processor's caches (as in FlashAttention, Dao et al. 2022). The backward pass computes the
weights of a block again from the scores and log(sum(exp(scores))) of each row; the dropout mask of a block depends on
the block's number and the step's key alone, so it is drawn again. The parts into which the work is divided do not
depend on the number of threads, so neither do the results.

Sequences lie one after another in the rows of a batch, with or without padding behind each. Nothing is computed for
padding.

Shape letters: B sequences, R rows of all sequences, L slots of the longest one, A heads, D = H / A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ernie_gram.kernels.blas import FIRST_TRANSPOSED, PLAIN, SECOND_TRANSPOSED, product
from ernie_gram.kernels.compiled import decide, exp, exponentials, maximum, product_of, serial
from ernie_gram.kernels.parts import arguments_of, in_parts
from reader.system.compiled import numba

float32, uint32, uint64 = numba.float32, numba.uint32, numba.uint64
_cube, _rows_of_heads = numba.float32[:, :, ::1], numba.float32[:, ::1]
_COMMON = (
    *(numba.float32[:, :, :, ::1], _cube, numba.int64[::1], numba.int64[::1], numba.int32[::1]),
    *(numba.int64, float32, float32, numba.int64, _cube, _rows_of_heads),
)
# Rows of a block: two blocks of float32 for 512 keys are half a megabyte.
_ROWS = 128
# The backward pass divides the sequences into groups, so that there are about this many parts.
_PARTS = 32
_FLOAT, _ALIGNMENT = 4, 64


@numba.njit(cache=True, nogil=True)
def _draw(block: int, rows: int, keys: int, slots: int, key: np.ndarray, bound: int, kept: np.ndarray) -> None:
    """Draw the mask of a block, kept [rows * keys]; `block` is its number among those of all sequences and heads."""
    first = uint64(block) * uint64((_ROWS * slots + 7) // 8)
    decide(first, uint32(key[0]), uint32(key[1]), uint32(bound), kept[: (rows * keys + 7) // 8 * 8])


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


def _parts_of_heads(projected: np.ndarray, bias: np.ndarray, starts: np.ndarray, lengths: np.ndarray, *_: Any) -> int:
    return len(lengths) * projected.shape[2]


@in_parts(_parts_of_heads, *_COMMON)
def attention(part: int, given: Any) -> None:
    """Set out, float32 [R, A, D], to dropout(softmax(scale Q K^T + bias)) V for each sequence and head; 0 for padding.

    Args:
        projected: queries, keys and values, float32 [R, 3, A, D].
        bias: float32 [A, L, L], or [0, L, L] for none.
        starts: the first row of each sequence, and R; int64 [B + 1].
        lengths: rows of each sequence without padding, int64 [B].
        key: int32 [2], decides the masks of dropout, or [0] for none.
        bound: a weight is dropped with probability bound / 65536.
        kept_scale: the factor of weights that are not dropped.
        slots: the rows of the longest sequence with its padding, at most L.
        log_sums: set to log(sum(exp(scores))) of each row that is not padding, float32 [R, A].
    """
    projected, bias, starts, lengths, key, bound, kept_scale, scale, slots, out, log_sums = arguments_of(given)
    _, _, heads, size = projected.shape
    width, blocks = heads * size, (slots + _ROWS - 1) // _ROWS
    row_size = 3 * width
    sequence, head = part // heads, part % heads
    begin, end = starts[sequence], starts[sequence + 1]
    keys = min(max(lengths[sequence], 0), end - begin)
    out[begin + keys : end, head] = float32(0)
    scores, kept = _block(keys), np.empty(_ROWS * keys + 7, np.uint8)
    bits, none, sums = scores.view(np.int32), np.zeros(slots, np.float32), np.empty(slots, np.float32)
    first = projected.ctypes.data + _FLOAT * (begin * row_size + head * size)
    for start in range(0, keys, _ROWS):
        rows = min(_ROWS, keys - start)
        queries, block_out = first + _FLOAT * start * row_size, out[begin + start : begin + start + rows, head]
        at_scores = scores.ctypes.data, keys
        at_keys = first + _FLOAT * width, row_size
        product(SECOND_TRANSPOSED, (rows, keys, size), scale, (queries, row_size), at_keys, 0.0, at_scores)
        if key.size:
            _draw(part * blocks + start // _ROWS, rows, keys, slots, key, bound, kept)
        for i in range(rows):
            added, row = bias[head, start + i] if bias.shape[0] else none, scores[i]
            for j in range(keys):
                row[j] += added[j]
            largest = maximum(bits[i])
            total = exponentials(row, largest, sums)
            log_sums[begin + start + i, head] = largest + np.log(total)
            factor = kept_scale / total
            if key.size:
                mask = kept[i * keys : (i + 1) * keys]
                for j in range(keys):
                    row[j] = row[j] * factor if mask[j] else float32(0)
            else:
                for j in range(keys):
                    row[j] *= factor
        values = first + 2 * _FLOAT * width, row_size
        product(PLAIN, (rows, size, keys), 1.0, at_scores, values, 0.0, (block_out.ctypes.data, width))


@in_parts(
    lambda projected, *others: others[-2] * projected.shape[2],
    *(*_COMMON, _cube, numba.float32[:, :, :, ::1], numba.float32[:, :, :, ::1], numba.int64, numba.int64),
)
def _attention_backward(part: int, given: Any) -> None:
    projected, bias, starts, lengths, key, bound, kept_scale, scale, slots, out, log_sums = arguments_of(given)[:11]
    out_gradient, gradient, sums, _, members = arguments_of(given)[11:]
    _, _, heads, size = projected.shape
    sequences, width, adds = lengths.size, heads * size, sums.shape[0] > 0
    blocks, row_size = (slots + _ROWS - 1) // _ROWS, 3 * width
    group, head = part // heads, part % heads
    none, memory = np.zeros(slots, np.float32), np.empty(size, np.float32)
    for sequence in range(group * members, min((group + 1) * members, sequences)):
        begin, end = starts[sequence], starts[sequence + 1]
        keys = min(max(lengths[sequence], 0), end - begin)
        scores, of_scores, kept = _block(keys), _block(keys), np.empty(_ROWS * keys + 7, np.uint8)
        at_scores, at_gradients = (scores.ctypes.data, keys), (of_scores.ctypes.data, keys)
        offset = _FLOAT * (begin * row_size + head * size)
        queries, of_queries = projected.ctypes.data + offset, gradient.ctypes.data + offset
        of_outs = out_gradient.ctypes.data + _FLOAT * (begin * width + head * size)
        to_keys, to_values = _FLOAT * width, 2 * _FLOAT * width
        at_keys, at_values = (queries + to_keys, row_size), (queries + to_values, row_size)
        of_keys, of_values = (of_queries + to_keys, row_size), (of_queries + to_values, row_size)
        for start in range(0, keys, _ROWS):
            rows, before = min(_ROWS, keys - start), float32(start > 0)
            of_out = of_outs + _FLOAT * start * width, width
            of_query = of_queries + _FLOAT * start * row_size, row_size
            query = queries + _FLOAT * start * row_size, row_size
            product(SECOND_TRANSPOSED, (rows, keys, size), scale, query, at_keys, 0.0, at_scores)
            product(SECOND_TRANSPOSED, (rows, keys, size), 1.0, of_out, at_values, 0.0, at_gradients)
            if key.size:
                number = (sequence * heads + head) * blocks + start // _ROWS
                _draw(number, rows, keys, slots, key, bound, kept)
            for i in range(rows):
                row, of_row, slot, at = scores[i], of_scores[i], start + i, begin + start + i
                _weights(row, bias[head, slot] if bias.shape[0] else none, log_sums[at, head])
                total = product_of(out_gradient[at, head], out[at, head], memory)
                if key.size:
                    mask = kept[i * keys : (i + 1) * keys]
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
            product(FIRST_TRANSPOSED, (keys, size, rows), 1.0, at_scores, of_out, before, of_values)
            product(PLAIN, (rows, size, keys), scale, at_gradients, at_keys, 0.0, of_query)
            product(FIRST_TRANSPOSED, (keys, size, rows), scale, at_gradients, query, before, of_keys)
        gradient[begin + keys : end, :, head] = float32(0)


@in_parts(lambda bias_gradient, *_: len(bias_gradient), _cube, numba.float32[:, :, :, ::1])
def _add_groups(head: int, given: Any) -> None:
    bias_gradient, sums = arguments_of(given)
    groups, _, slots, _ = sums.shape
    for slot in range(bias_gradient.shape[1]):
        row = bias_gradient[head, slot]
        for j in range(row.size):
            row[j] = float32(0)
        for group in range(groups if slot < slots else 0):
            of_group = sums[group, head, slot]
            for j in range(slots):
                row[j] += of_group[j]


def attention_backward(*given: Any) -> None:
    """Set the gradients of `projected` and of the bias; the latter may be [0, L, L] if nobody asks for it.

    Args: those of `attention`; the gradient of its result; that of `projected`, and of the bias, which are set.

    With weights P, their dropout mask M (times kept_scale), values V and dO = out_gradient:
    dV = (P M)^T dO, dS = P (M (dO V^T) - rowsum(dO out)), dQ = scale dS K, dK = scale dS^T Q; that of the bias is the
    sum of dS over the sequences.
    """
    *common, out_gradient, gradient, bias_gradient = given
    heads, sequences, slots, adds = common[0].shape[2], len(common[3]), common[8], len(bias_gradient) > 0
    groups = min(sequences, -(-_PARTS // heads)) if adds else sequences
    members = max(1, -(-sequences // max(groups, 1)))
    groups = -(-sequences // members)
    sums = np.zeros((groups if adds else 0, heads, slots, slots), np.float32)
    _attention_backward(*common, out_gradient, gradient, sums, groups, members)
    if adds:
        _add_groups(bias_gradient, sums)
