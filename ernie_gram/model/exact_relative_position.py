"""The relative position bias of an ERNIE-Gram model for PaddleNLP, which stores the bias but never applies it.

PaddleNLP adds an attention mask of four dimensions to the attention scores unchanged. Given as such a mask, the bias is
exact:

    mask = attention_mask(table, input_ids != tokenizer.pad_token_id)
    model(input_ids, token_type_ids, attention_mask=paddle.to_tensor(mask))

`table` is `embeddings.rel_pos_embeddings.weight` of the model. Exports contain this file, which therefore needs nothing
but numpy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

# The bucket of a distance is the number of these bounds that it reaches: exact up to 7, then increasingly wide.
DISTANCE_BOUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91)
KEY_BEFORE_QUERY = 16  # added to the bucket
QUERY_IS_CLS = 16
KEY_IS_CLS = 32
# Added to the scores of padding keys, as upstream does. The resulting weight is 0, or too small to change a float32 sum
# (Paddle's softmax on a CPU clips at exp(-64)).
MASKED_SCORE = -1e4


def attention_mask(table: npt.ArrayLike, is_token: npt.ArrayLike) -> npt.NDArray[np.float32]:
    """Return what has to be added to the attention scores, float32 [B, A, L, L], indexed [.., query, key].

    Args:
        table: the bias of each distance bucket and head, float [33, A].
        is_token: [B, L], false or 0 for padding.
    """
    table_RA, is_token_BL = np.asarray(table, np.float32), np.asarray(is_token, bool)
    slots_L = np.arange(is_token_BL.shape[1])
    distance_LL = slots_L[np.newaxis, :] - slots_L[:, np.newaxis]
    buckets_LL = np.searchsorted(DISTANCE_BOUNDS, np.abs(distance_LL), side="right")
    buckets_LL = buckets_LL + KEY_BEFORE_QUERY * (distance_LL < 0)
    buckets_LL[:, 0] = KEY_IS_CLS
    buckets_LL[0, :] = QUERY_IS_CLS
    bias_ALL = table_RA[buckets_LL].transpose(2, 0, 1)
    padding_B11L = np.where(is_token_BL, 0, MASKED_SCORE)[:, np.newaxis, np.newaxis, :]
    return (bias_ALL + padding_B11L).astype(np.float32)
