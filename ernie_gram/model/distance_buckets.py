"""The buckets of relative positions, and start values with which heads prefer near slots; without Paddle.

Shape letters: A heads, R = 33 buckets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ernie_gram.model.config import NUM_BUCKETS

# The bucket of a distance is the number of these bounds that it reaches: exact up to 7, then increasingly wide.
DISTANCE_BOUNDS = (1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91)
KEY_BEFORE_QUERY = 16
QUERY_IS_CLS = 16
KEY_IS_CLS = 32
SELF = 0  # the bucket of distance 0
# The distance start: slopes of the heads, repeated over all heads, and the distance beyond which the bias is constant.
START_SLOPES = (1.0, 1.0, 0.5, 0.5, 0.0, 0.0)
START_MAX_DISTANCE = 8


def distance_start(heads: int) -> npt.NDArray[np.float32]:
    """Return start values of the table, float32 [33, A], with which heads prefer near slots on one side (choice).

    The bias of a key at distance d is -slope * min(d, 8): to the right of the query in even heads, to its left in odd
    heads. All other keys, the query itself and [CLS] among them, have the bias -slope * 8. Small models learn faster
    from this start: with normal start values their predictions stay at the level of unit frequencies for thousands of
    steps.
    """
    slopes_A = np.resize(np.array(START_SLOPES, np.float32), heads)
    distances_RA = np.full((NUM_BUCKETS, heads), START_MAX_DISTANCE, np.float32)
    # Bucket b > 0 begins at distance DISTANCE_BOUNDS[b - 1]. All buckets that contain several distances begin at 8 or
    # later, so each bucket has one value of min(d, 8).
    near_B1 = np.minimum(DISTANCE_BOUNDS, START_MAX_DISTANCE)[:, np.newaxis]
    distances_RA[1:KEY_BEFORE_QUERY, 0::2] = near_B1
    distances_RA[KEY_BEFORE_QUERY + 1 : KEY_IS_CLS, 1::2] = near_B1
    return -slopes_A * distances_RA
