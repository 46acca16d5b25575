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
    """Return whether a gradient with few used rows gets an exchange of these rows; `size` is its number of elements.

    Otherwise it is summed in a bucket, like all others. The exchange of rows never sends more than that, except for one
    number per row, but a small gradient saves less than another exchange costs.
    """
    return size > BUCKET_NUMBERS
