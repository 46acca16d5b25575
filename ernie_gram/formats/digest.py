"""The digest by which a model is recognised: at a resume, and in an export that was trained further elsewhere."""

from __future__ import annotations

import hashlib

import numpy as np

from ernie_gram.run.checkpoint import Arrays


def digest_of(parameters: Arrays) -> str:
    """Return the SHA-256 of the names, types, shapes and values of parameters; their order has no effect."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        values = np.ascontiguousarray(parameters[name])
        digest.update(f"{name} {values.dtype} {values.shape}\n".encode())
        digest.update(values.data)
    return digest.hexdigest()
