"""Numba, with a folder of its own for the functions that it compiles: `from reader.system.compiled import numba`."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import numba as numba
from numba.core import event as event

from reader.system.cache_folder import numba_cache_folder

# Numba reuses a compiled function until the source file of that function changes. However, the compiled code also
# contains functions from other files. After an update, one function could therefore fill a table with one hash function
# while another function searches it with a different one. To prevent this, each state of the sources has its own cache.
_reader = Path(__file__).parents[1]
_sources = blake2b(b"".join(path.read_bytes() for path in sorted(_reader.rglob("*.py"))), digest_size=8).hexdigest()
if not numba.config.CACHE_DIR:  # the user's NUMBA_CACHE_DIR
    numba.config.CACHE_DIR = numba_cache_folder(_reader / "__pycache__" / f"numba_{_sources}")
