"""Items that are made by threads in advance."""

from __future__ import annotations

import pytest

from reader.batches.prefetch import prefetched


@pytest.mark.parametrize("workers", [1, 3])
def test_items_come_in_order(workers: int) -> None:
    assert [*prefetched(str, iter(range(20)), workers)] == [*map(str, range(20))]
