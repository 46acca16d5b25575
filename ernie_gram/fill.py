"""The former name of `python -m ernie_gram.fill_mask`; it will be removed in the next release."""

from __future__ import annotations

from ernie_gram.fill_mask import main
from reader.errors import one_line_errors, print_note

if __name__ == "__main__":
    print_note("`python -m ernie_gram.fill` is now `python -m ernie_gram.fill_mask`")
    one_line_errors(main)
