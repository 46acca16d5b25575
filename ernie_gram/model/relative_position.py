"""Relative position bias: one learned number per head and distance bucket, added to the attention scores.

Shape letters: B sequences, L context slots, K query rows per sequence, A heads, R = 33 buckets.
"""

from __future__ import annotations

import numpy as np
import paddle
from paddle.nn import functional as F

from ernie_gram.model.config import NUM_BUCKETS
from ernie_gram.model.exact_relative_position import DISTANCE_BOUNDS, KEY_BEFORE_QUERY, KEY_IS_CLS, QUERY_IS_CLS
from ernie_gram.model.layers import Embedding


def relative_buckets(length: paddle.Tensor) -> paddle.Tensor:
    """Return the bucket of key slot j for query slot i, int64 [L, L] indexed [i, j].

    With n = j - i the bucket is 16 [n < 0] + g(|n|). Then key 0 ([CLS]) gets 32 for every query, and query 0 gets 16
    for every key, itself included. The sign is opposite to T5's.
    """
    slots_L = paddle.arange(length)
    query_L1, key_1L = slots_L.unsqueeze(1), slots_L.unsqueeze(0)
    n_LL = key_1L - query_L1
    # A table from distance to bucket: ONNX has no operator that searches.
    distances = np.arange(DISTANCE_BOUNDS[-1] + 1)
    table = paddle.assign(np.searchsorted(DISTANCE_BOUNDS, distances, side="right").astype(np.int64))
    distances_LL = n_LL.abs().clip(max=DISTANCE_BOUNDS[-1])
    buckets_LL = paddle.gather(table, distances_LL.flatten()).reshape([length, length])
    buckets_LL = buckets_LL + KEY_BEFORE_QUERY * (n_LL < 0).astype("int64")
    buckets_LL = paddle.where(key_1L == 0, paddle.full_like(buckets_LL, KEY_IS_CLS), buckets_LL)
    return paddle.where(query_L1 == 0, paddle.full_like(buckets_LL, QUERY_IS_CLS), buckets_LL)


def relative_bias(table_RA: Embedding, length: paddle.Tensor) -> paddle.Tensor:
    """Return the bias of every pair of slots, [A, L, L], from the table `rel_pos_embedding` [33, A].

    It is a product with one-hot rows instead of a look-up: the gradient of the product is again a product, while the
    gradient of a look-up would add L * L rows to 33 rows one by one.
    """
    one_hot = F.one_hot(relative_buckets(length).flatten(), NUM_BUCKETS)
    # Always float32. Moreover, Paddle's bfloat16 product crashes if one factor needs no gradient.
    bias = paddle.matmul(table_RA.weight, one_hot, transpose_x=True, transpose_y=True)
    return bias.reshape([table_RA.weight.shape[1], length, length])


def bias_rows(bias_ALL: paddle.Tensor, slots_BK: paddle.Tensor) -> paddle.Tensor:
    """Return the rows of `relative_bias` for query rows at the given slots, [B, A, K, L]."""
    heads, length = bias_ALL.shape[0], paddle.shape(bias_ALL)[2]
    rows_LAL = bias_ALL.transpose([1, 0, 2])
    selected = paddle.gather(rows_LAL, slots_BK.flatten())
    return selected.reshape([-1, paddle.shape(slots_BK)[1], heads, length]).transpose([0, 2, 1, 3])
