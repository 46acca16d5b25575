"""Numba, with a folder of its own for the functions that it compiles: `from reader.system.compiled import numba`."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

import numba as numba
from numba.core import event

from reader.errors import write_or_drop
from reader.system.progress import is_shown

COMPILES = "numba:compile"  # Numba's name of the event; reading a function from the cache is none


class _Teller(event.Listener):
    """Tells the user of a command once why it takes its time."""

    is_silent = False

    def on_start(self, event: event.Event) -> None:
        if is_shown() and not self.is_silent:
            self.is_silent = True
            write_or_drop(sys.stderr, "compiling kernels for this processor, once\n")

    def on_end(self, event: event.Event) -> None:
        """Do nothing; Numba asks for this method."""


event.register(COMPILES, _Teller())


def cache_folder(preferred: Path) -> str:
    """Return `preferred` or, if it cannot be written, a private folder of this user for temporary files.

    If neither can be written, print a warning and return "": Numba then chooses a folder itself.
    """
    with suppress(OSError):
        return str(_writable(preferred))
    private = Path(tempfile.gettempdir()) / f"ernie_gram_{os.getuid()}"
    try:
        private.mkdir(mode=0o700, exist_ok=True)
        status = private.lstat()
        # Cached code is executed, so other users must not be able to write it.
        if private.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
            raise PermissionError(f"{private}: other users can write to it")
        return str(_writable(private / preferred.name))
    except OSError as error:
        print(f"warning: {preferred}: cannot be written; functions may be compiled again ({error})", file=sys.stderr)
        return ""


def _writable(folder: Path) -> Path:
    """Create a folder and return it; raises OSError if no file can be created in it."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder


# Numba reuses a compiled function until the source file of that function changes. However, the compiled code also
# contains functions from other files. After an update, one function could therefore fill a table with one hash function
# while another function searches it with a different one. To prevent this, each state of the sources has its own cache.
_reader = Path(__file__).parents[1]
_compiled = sorted([*_reader.rglob("*.py"), *_reader.parent.glob("ernie_gram/kernels/*.py")])
_sources = blake2b(b"".join(path.read_bytes() for path in _compiled), digest_size=8).hexdigest()
if not numba.config.CACHE_DIR:  # the user's NUMBA_CACHE_DIR
    numba.config.CACHE_DIR = cache_folder(_reader / "__pycache__" / f"numba_{_sources}")
