"""Prepare batches, or other items, in threads before they are needed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def prefetched(make: Callable[[Item], Made], items: Iterator[Item], workers: int) -> Generator[Made, None, None]:
    """Yield make(item) for each item, in order.

    Args:
        make: called in several threads at the same time.
        items: may be endless.
        workers: number of threads; it does not change the batches.
    """
    num_prefetched = max(4, 2 * workers)
    pool = ThreadPoolExecutor(workers, thread_name_prefix="feeder")
    waiting: deque[Future[Made]] = deque()
    try:
        while True:
            for item in islice(items, num_prefetched - len(waiting)):
                waiting.append(pool.submit(make, item))
            if not waiting:
                return
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
