"""The former name of `python -m ernie_gram.fill_mask`; it will be removed in the next release."""

from __future__ import annotations

from reader.commands import run_command
from reader.errors import print_note

if __name__ == "__main__":
    print_note("`python -m ernie_gram.fill` is now `python -m ernie_gram.fill_mask`")
    run_command("ernie_gram.fill_mask")
