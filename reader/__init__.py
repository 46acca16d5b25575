"""Text -> n-gram lexicon -> units -> masked batches. Nothing here knows of any model."""

import os
from hashlib import blake2b
from pathlib import Path

# Numba keeps what it has compiled for as long as the file of a function is the same, though functions of other files
# went into it: after an update, a table could be filled by one hash and searched by another. So each state of the
# sources has a folder of its own.
_here = Path(__file__).parent
_sources = blake2b(b"".join(path.read_bytes() for path in sorted(_here.rglob("*.py"))), digest_size=8).hexdigest()
os.environ.setdefault("NUMBA_CACHE_DIR", str(_here / "__pycache__" / f"numba_{_sources}"))
