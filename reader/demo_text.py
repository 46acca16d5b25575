"""Collect English text that every Python installation contains: pydoc topics and docstrings of installed modules.

`python -m reader.demo_text --output FOLDER` writes train.txt and held_out.txt.
"""

from __future__ import annotations

from reader.commands import run_command

if __name__ == "__main__":
    run_command("reader.demo_text")

import ast
import re
import sysconfig
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics

from reader.errors import OneLineParser
from reader.system.atomic_files import atomic_file, make_folder
from reader.system.output_files import add_output_file, check_output_path

MAX_TEXT_SIZE = 6_000_000  # in characters
HELD_OUT_INTERVAL = 30  # about one document in HELD_OUT_INTERVAL is held out
MIN_WORDS = 8


def paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of prose, each on one line. Code, tables and headings are left out."""
    for block in re.split(r"\n\s*\n", text):
        line = " ".join(block.split())
        words = re.findall(r"[A-Za-z]{2,}", line)
        is_prose = len(words) >= MIN_WORDS and sum(map(len, words)) > 0.6 * len(line)
        if is_prose and ">>>" not in line and line[-1] in ".:!?":
            yield line


def docstrings(path: Path) -> Iterator[str]:
    """Yield the docstrings of a source file. The file is parsed, not executed. Yield nothing if it cannot be parsed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError, RecursionError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield text


def documents() -> Iterator[str]:
    """Yield documents of distinct paragraphs, one per line, until their total size exceeds MAX_TEXT_SIZE."""
    sources: Iterator[str] = iter(topics.values())
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    seen: set[str] = set()
    size = 0
    for text in (text for part in (sources, _all_docstrings(folders)) for text in part):
        lines = [line for line in paragraphs(text) if line not in seen]
        seen.update(lines)
        if lines:
            document = "\n".join(lines) + "\n"
            yield document
            size += len(document)
            if size > MAX_TEXT_SIZE:
                return


def _all_docstrings(folders: list[Path]) -> Iterator[str]:
    visited: set[Path] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            is_test = {"tests", "test", "idlelib"} & set(path.parts)
            # The folder of the standard library also contains site-packages, which `folders` lists separately.
            is_listed_later = folder == folders[0] and "site-packages" in path.parts
            if not is_test and not is_listed_later and path not in visited:
                visited.add(path)
                yield from docstrings(path)


def text_paths(folder: Path) -> tuple[Path, Path]:
    """Return the paths of train.txt and held_out.txt."""
    return folder / "train.txt", folder / "held_out.txt"


def write_text(output: Path) -> tuple[Path, Path]:
    """Write train.txt and held_out.txt into a folder, and return their paths.

    A checksum of its text decides to which file a document belongs. Raises InputError if the folder cannot be created.
    """
    make_folder(output)
    train, held_out = text_paths(output)
    parts: dict[Path, list[bytes]] = {train: [], held_out: []}
    for document in documents():
        text = document.encode("utf-8", "replace")
        parts[held_out if zlib.crc32(text) % HELD_OUT_INTERVAL == 0 else train].append(text + b"\n")
    for path, texts in parts.items():
        with atomic_file(path) as partial:
            partial.write_bytes(b"".join(texts))
    return train, held_out


def main() -> None:
    parser = OneLineParser(prog="python -m reader.demo_text", description=__doc__)
    add_output_file(parser, "--output", "folder of the two files", metavar="FOLDER", required=True)
    arguments = parser.parse_args()
    for path in text_paths(arguments.output):
        check_output_path("--output", path, arguments.overwrite)
    for path in write_text(arguments.output):
        print(f"{path}: {path.stat().st_size:,} bytes")
