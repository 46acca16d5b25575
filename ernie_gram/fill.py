"""The former name of `python -m ernie_gram.fill_mask`; it will be removed in the next release."""

from __future__ import annotations

import sys

from ernie_gram.fill_mask import main
from reader.errors import one_line_errors

if __name__ == "__main__":
    print("note: `python -m ernie_gram.fill` is now `python -m ernie_gram.fill_mask`", file=sys.stderr)
    one_line_errors(main)
