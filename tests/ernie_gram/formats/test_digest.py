"""The digest of parameters depends on everything that the model computes with, and on nothing else."""

from __future__ import annotations

import numpy as np

from ernie_gram.formats.digest import digest_of


def test_the_digest_covers_names_types_shapes_and_values_and_no_order() -> None:
    parameters = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.ones(4, np.float32)}
    digest = digest_of(parameters)
    assert digest_of(dict(reversed(parameters.items()))) == digest
    assert digest_of(parameters | {"a": np.asfortranarray(parameters["a"])}) == digest
    others = (
        {"a": parameters["a"], "c": parameters["b"]},
        parameters | {"a": parameters["a"].ravel()},
        parameters | {"a": parameters["a"].view(np.int32)},
        parameters | {"a": np.nextafter(parameters["a"], np.float32(9))},
    )
    assert len({digest, *map(digest_of, others)}) == 5
