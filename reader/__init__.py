"""Turn text into an n-gram lexicon, a corpus of units, and masked batches. This package is independent of any model."""

from hashlib import blake2b
from pathlib import Path

from reader.system.cache_folder import set_numba_cache_folder

# Numba reuses a compiled function until the source file of that function changes. However, the compiled code also
# contains functions from other files. After an update, one function could therefore fill a table with one hash function
# while another function searches it with a different one. To prevent this, each state of the sources has its own cache.
_here = Path(__file__).parent
_sources = blake2b(b"".join(path.read_bytes() for path in sorted(_here.rglob("*.py"))), digest_size=8).hexdigest()
set_numba_cache_folder(_here / "__pycache__" / f"numba_{_sources}")
