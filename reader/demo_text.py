"""Write a text for a first model, and a task from the same text: are two neighbouring words of a sentence swapped?

`ernie-gram demo-text --output FOLDER` writes train.txt and held_out.txt, and the rows of the task: train.tsv and
dev.tsv. Without --input, the text is English that every Python installation contains: pydoc topics and docstrings of
installed modules. Counts of words cannot solve the task.
"""

from __future__ import annotations

import ast
import random
import re
import sysconfig
import warnings
import zlib
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise
from pathlib import Path
from pydoc_data.topics import topics

from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import write_atomically
from reader.system.output_files import add_output_file, check_output_path
from reader.text.input_files import find_files
from reader.text.text_files import TextFiles

MAX_TEXT_SIZE = 6_000_000  # in characters
HELD_OUT_INTERVAL = 30  # about one document in HELD_OUT_INTERVAL is held out
MIN_WORDS = 8
FILES = ("train.txt", "held_out.txt", "train.tsv", "dev.tsv")
MAX_LINES = 10  # per document of the user's text: a book without blank lines becomes many documents
# The task. A word is a run of letters, or one Chinese character.
LABELS = ("original", "swapped")
MAX_ROWS = {"train": 6000, "dev": 600}
SENTENCE_WORDS = range(8, 31)
HAN = "\u4e00-\u9fff"
SENTENCE_END = re.compile(r"(?<=[.!?])\s|(?<=[。！？])")
PIECE = re.compile(rf"[{HAN}]|[^\s{HAN}]+|\s+")

Document = list[str]  # paragraphs, one per line


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


def documents(max_size: int = MAX_TEXT_SIZE) -> Iterator[Document]:
    """Yield documents of distinct paragraphs of Python's documentation, of a little more than max_size characters."""
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    seen: set[str] = set()
    size = 0
    for text in chain(topics.values(), _all_docstrings(folders)):
        lines = [line for line in paragraphs(text) if line not in seen]
        seen.update(lines)
        if lines:
            yield lines
            size += sum(len(line) + 1 for line in lines)
            if size > max_size:
                return


def _all_docstrings(folders: list[Path]) -> Iterator[str]:
    for folder in dict.fromkeys(folders):
        # The folder of the standard library also contains site-packages, which `folders` lists separately.
        left_out = {"tests", "test", "idlelib", *(["site-packages"] if folder == folders[0] else [])}
        for path in sorted(folder.rglob("*.py")):
            if left_out.isdisjoint(path.relative_to(folder).parts):
                yield from docstrings(path)


def documents_of(files: TextFiles) -> Iterator[Document]:
    """Yield the documents of text files, cut after MAX_LINES lines. Raises InputError as TextFiles does."""
    lines: Document = []
    for line in files.lines():
        if line:
            lines.append(" ".join(line.split()))
        if lines and (not line or len(lines) == MAX_LINES):
            yield lines
            lines = []


def joined(found: Iterable[Document]) -> str:
    """Return the text of documents: a line for each paragraph, and a blank line after each document."""
    return "".join("\n".join([*document, "", ""]) for document in found)


def write_text(output: Path, found: Iterable[Document]) -> list[Path]:
    """Write train.txt, held_out.txt, train.tsv and dev.tsv; return the paths.

    A checksum of its text decides to which text file a document belongs. Raises InputError if the folder cannot be
    created, and if the text is too short to hold out a part with rows for the task.
    """
    output.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[Document]] = {"train": [], "held_out": []}
    for document in found:
        checksum = zlib.crc32("\n".join(document).encode("utf-8", "replace"))
        parts["held_out" if checksum % HELD_OUT_INTERVAL == 0 else "train"].append(document)
    files = {f"{name}.txt": joined(part) for name, part in parts.items()}
    train, dev = (sentences(line for document in part for line in document) for part in parts.values())
    known = set(train)
    dev = [sentence for sentence in dev if sentence not in known]
    if not train or not dev:
        raise InputError(f"{output}: the text is too short to hold out a part of it; give more")
    files |= {"train.tsv": task_table(train, MAX_ROWS["train"]), "dev.tsv": task_table(dev, MAX_ROWS["dev"])}
    for name, text in files.items():
        write_atomically(output / name, text.encode("utf-8", "replace"))
    return [output / name for name in files]


def sentences(lines: Iterable[str]) -> list[str]:
    """Return the distinct sentences in which words can be swapped and whose number of words is in SENTENCE_WORDS."""
    found = dict.fromkeys(sentence for line in lines for sentence in SENTENCE_END.split(line))
    return [each for each in found if len(words(PIECE.findall(each))) in SENTENCE_WORDS and swapped(each) != each]


def generator(sentence: str, purpose: str) -> random.Random:
    """Return a random number generator that is seeded with a sentence and a purpose."""
    return random.Random(f"{purpose} {sentence}".encode("utf-8", "replace"))


def words(pieces: list[str]) -> list[int]:
    """Return the positions of the pieces that are words."""
    return [position for position, piece in enumerate(pieces) if piece.isalpha()]


def swapped(sentence: str) -> str:
    """Return a sentence in which two different neighbouring words are swapped; itself if there are none."""
    pieces = PIECE.findall(sentence)
    pairs = [
        (left, right)
        for left, right in pairwise(words(pieces))
        if not "".join(pieces[left + 1 : right]).strip() and pieces[left].lower() != pieces[right].lower()
    ]
    if pairs:
        left, right = generator(sentence, "place").choice(pairs)
        pieces[left], pieces[right] = pieces[right], pieces[left]
    return "".join(pieces)


def task_table(found: list[str], max_rows: int) -> str:
    """Return a table of at most max_rows sentences, evenly spaced in `found`; about half of them are swapped."""
    lines = ["text\twords"]
    count = min(len(found), max_rows)
    for sentence in (found[row * len(found) // count] for row in range(count)):
        label = generator(sentence, "label").choice(LABELS)
        lines.append(f"{swapped(sentence) if label == 'swapped' else sentence}\t{label}")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--input", nargs="+", metavar="TEXT", help="text of your own: files, folders or quoted globs")
    parser.add_argument("--max_size", type=int, default=MAX_TEXT_SIZE, help="size of the English text, in characters")
    add_output_file(parser, "folder of the files", type=Path, metavar="FOLDER", required=True)
    arguments = parser.parse_args()
    if arguments.input and arguments.max_size != MAX_TEXT_SIZE:
        raise InputError("--max_size: only valid without --input")
    files = find_files(arguments.input) if arguments.input else []
    for name in FILES:
        check_output_path("--output", arguments.output / name, arguments.overwrite, files)
    found = documents_of(TextFiles(files)) if files else documents(arguments.max_size)
    paths = write_text(arguments.output, found)
    for path in paths:
        print(f"{path}: {path.stat().st_size:,} bytes")
