"""Files in another encoding than UTF-8."""

from __future__ import annotations

import codecs
import shlex
from pathlib import Path


def utf16_reason(path: Path, start: bytes) -> str | None:
    """Return why a file cannot be read if its first bytes look like UTF-16, with the command that converts it.

    UTF-16 has a byte order mark, or else a zero byte beside its first character if that is a letter of English, a digit
    or a punctuation mark. The reason is a clause that continues `file: `. None for other files.
    """
    first = start[:2]
    if first in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        encoding = "UTF-16"
    elif len(first) == 2 and 0 in first and any(first):
        encoding = "UTF-16LE" if first[0] else "UTF-16BE"
    else:
        return None
    return f"looks like UTF-16; convert it with: iconv -f {encoding} -t UTF-8 {shlex.quote(str(path))} > NEW_FILE"
