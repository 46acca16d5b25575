"""The buckets of the relative position bias, against the written list of distance ranges."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import reference_model as reference
from tests.support.static_programs import run


@pytest.mark.parametrize("length", [1, 2, 9, 200])
def test_buckets_equal_the_reference(length: int) -> None:
    import paddle

    from ernie_gram.model.relative_position import relative_buckets

    (table,), _ = run(lambda feeds: [relative_buckets(paddle.shape(feeds["x"])[0])], {"x": np.zeros(length, "float32")})
    assert table.tolist() == [[reference.bucket(q, k) for k in range(length)] for q in range(length)]
