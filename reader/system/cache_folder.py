"""Choose a folder in which Numba caches compiled functions."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def numba_cache_folder(preferred: Path) -> str:
    """Return `preferred`, or, if no file can be created there, a folder of this user in /tmp.

    The warning about another folder is printed when that folder is created, and not by later processes. If no folder
    can be written, the result is "", with which Numba looks for a folder itself.
    """
    with suppress(OSError):
        return str(_writable(preferred))
    try:
        folder = _private_folder() / preferred.name
        is_new = not folder.exists()
        _writable(folder)
    except OSError as error:
        print(f"warning: {preferred}: cannot be written; functions may be compiled again ({error})", file=sys.stderr)
        return ""
    if is_new:
        print(f"warning: {preferred}: cannot be written; compiled functions are kept in {folder}", file=sys.stderr)
    return str(folder)


def _private_folder() -> Path:
    """Return a folder to which no other user can write, because cached code is loaded and executed."""
    folder = Path(tempfile.gettempdir()) / f"ernie_gram_{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    status = folder.lstat()
    if folder.is_symlink() or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise PermissionError(f"{folder}: other users can write to it")
    return folder


def _writable(folder: Path) -> Path:
    """Create a folder and return it; raises OSError if no file can be created in it."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    return folder
