"""How gradients are grouped into the exchanges between processes. No Paddle, so that plans can be made without it."""

from __future__ import annotations

from collections.abc import Iterable

# Gradients are exchanged in buckets of about this many numbers. One exchange per parameter is slow; a single exchange
# needs a copy of all gradients.
BUCKET_NUMBERS = 8 << 20


def plan_buckets(sizes: Iterable[int]) -> list[list[int]]:
    """Return the indices of the tensors in each bucket, in order; `sizes` are their numbers of elements.

    A bucket takes tensors until it holds more than BUCKET_NUMBERS, so its last tensor may exceed the limit.
    """
    buckets: list[list[int]] = [[]]
    numbers = 0
    for index, size in enumerate(sizes):
        if numbers > BUCKET_NUMBERS:
            buckets.append([])
            numbers = 0
        buckets[-1].append(index)
        numbers += size
    return buckets


def is_summed_by_row(size: int) -> bool:
    """Return whether only the used rows of a gradient of `size` elements are exchanged.

    Otherwise it is summed in a bucket, like all others. Exchanging rows never sends more than a bucket, apart from one
    number per row, but for a small gradient it saves less than another exchange costs.
    """
    return size > BUCKET_NUMBERS
