"""Small programs, with Paddle's operations and with compiled ones."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.support.static_programs import fresh_program

import paddle  # isort: skip

from ernie_gram.kernels.rewriting import use_compiled


def run_both(
    build: Callable[[paddle.Tensor, paddle.Tensor], list[paddle.Tensor]], rows: tuple[int, int] = (40, 40)
) -> list[str]:
    """Check that a program has the results of Paddle's operations; return the names of its operations.

    `build` gets x [-1, 40] and y [-1, 40], which have these rows when it is run; what it returns is fetched.
    """
    random, results, names = np.random.default_rng(1), [], []
    feed = {name: random.standard_normal((n, 40), dtype=np.float32) for name, n in zip("xy", rows, strict=True)}
    for rewrites in (False, True):
        with fresh_program() as (executor, main, _):
            inputs = [paddle.static.data(name, [-1, 40]) for name in feed]
            for value in inputs:
                value.stop_gradient = False
            fetches = build(*inputs)
            if rewrites:
                use_compiled(main, {value.id for value in fetches})
            names = [op.name() for op in main.global_block().ops]
            paddle.seed(1)
            results.append(executor.run(main, feed=feed, fetch_list=fetches))
    for theirs, ours in zip(*results, strict=True):
        assert np.allclose(ours, theirs, rtol=1e-4, atol=1e-5)
    return names
