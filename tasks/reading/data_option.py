"""Options of the commands that read official files: the folder of the files, and what to do with bad rows."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

VARIABLE = "DATA"
FILES = "folder with the official files of a task, or the benchmark's folder above it"
MEANING = f"{FILES} (default: {VARIABLE})"


def add_data_option(parser: argparse.ArgumentParser, is_required: bool = False) -> None:
    """Add --data. Its default is the environment variable DATA; if `is_required`, one of them must be given."""
    folder = data_folder()
    required = is_required and folder is None
    parser.add_argument("--data", type=Path, default=folder, required=required, metavar="FOLDER", help=MEANING)


def add_bad_row_option(parser: argparse.ArgumentParser) -> None:
    """Add --on_bad_row."""
    parser.add_argument(
        "--on_bad_row",
        choices=("error", "skip"),
        default="error",
        help="stop at the first bad row, or leave bad rows out and list them (%(default)s)",
    )


def data_folder() -> Path | None:
    """Return the folder that the environment variable DATA names; None if it is not set."""
    text = os.environ.get(VARIABLE)
    return Path(text) if text else None
