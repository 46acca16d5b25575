"""Write a text for a first model, and a task from the same text: which package, or file, is this paragraph from?

`ernie-gram demo-text --output FOLDER` writes train.txt and held_out.txt, and the rows of the task: train.tsv and
dev.tsv. Without --input, the text is English that every Python installation contains: pydoc topics and docstrings of
installed modules.
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
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple

from reader.errors import InputError, OneLineParser
from reader.system.atomic_files import atomic_file, make_folder
from reader.system.output_files import add_output_file, check_output_path, claimed_file
from reader.system.progress import progress
from reader.text.input_files import find_files
from reader.text.text_files import TextFiles

MAX_TEXT_SIZE = 6_000_000  # in characters
HELD_OUT_INTERVAL = 30  # about one document in HELD_OUT_INTERVAL is held out
MIN_WORDS = 8
FILES = ("train.txt", "held_out.txt", "train.tsv", "dev.tsv")
MAX_LINES = 10  # of a document of the user's text: a book without blank lines is many documents
# The task: its labels are the sources with the most held-out paragraphs.
MAX_LABELS = 6
MAX_ROWS = {"train": 400, "dev": 60}  # of one label
MIN_CHARACTERS = 12

Row = tuple[str, str]


class Document(NamedTuple):
    """Paragraphs, one per line, and the name of the package or file that they are from."""

    source: str
    lines: list[str]

    @property
    def text(self) -> str:
        """The lines, each with its line feed."""
        return "".join(f"{line}\n" for line in self.lines)


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
    """Yield documents of distinct paragraphs of Python's documentation, until they have more than max_size characters.

    The source of a document is its top-level package; that of pydoc's topics is "python".
    """
    folders = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    seen: set[str] = set()
    size = 0
    for part in ((("python", text) for text in topics.values()), _all_docstrings(folders)):
        for source, text in part:
            lines = [line for line in paragraphs(text) if line not in seen]
            seen.update(lines)
            if lines:
                document = Document(source, lines)
                yield document
                size += len(document.text)
                if size > max_size:
                    return


def _all_docstrings(folders: list[Path]) -> Iterator[tuple[str, str]]:
    visited: set[Path] = set()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            is_test = {"tests", "test", "idlelib"} & set(path.parts)
            # The folder of the standard library also contains site-packages, which `folders` lists separately.
            is_listed_later = folder == folders[0] and "site-packages" in path.parts
            if not is_test and not is_listed_later and path not in visited:
                visited.add(path)
                source = path.relative_to(folder).parts[0].removesuffix(".py")
                yield from ((source, text) for text in docstrings(path))


def documents_of(paths: list[Path]) -> Iterator[Document]:
    """Yield the documents of text files, cut after MAX_LINES lines. The source is the file's name without its ending.

    Raises InputError as TextFiles does.
    """
    for path in paths:
        source, lines = path.name.split(".")[0], []
        for line in TextFiles([path]).lines():
            if line:
                lines.append(" ".join(line.split()))
            if lines and (not line or len(lines) == MAX_LINES):
                yield Document(source, lines)
                lines = []


def write_text(output: Path, found: Iterable[Document]) -> list[Path]:
    """Write train.txt and held_out.txt, and the task if the text has several sources; return the paths.

    A checksum of its text decides to which file a document belongs. Raises InputError if the folder cannot be created,
    and if no document is held out.
    """
    make_folder(output)
    parts: dict[str, list[Document]] = {"train": [], "held_out": []}
    for document in found:
        checksum = zlib.crc32(document.text.encode("utf-8", "replace"))
        parts["held_out" if checksum % HELD_OUT_INTERVAL == 0 else "train"].append(document)
    if not all(parts.values()):
        raise InputError(f"{output}: the text is too short to hold out a part of it; give more")
    files = {f"{name}.txt": "".join(f"{document.text}\n" for document in part) for name, part in parts.items()}
    files |= task_tables(*([(each.source, line) for each in part for line in each.lines] for part in parts.values()))
    for name, text in files.items():
        with atomic_file(output / name) as partial:
            partial.write_bytes(text.encode("utf-8", "replace"))
    return [output / name for name in files]


def task_tables(train: Iterable[Row], dev: Iterable[Row]) -> dict[str, str]:
    """Return train.tsv and dev.tsv, by name, made of pairs (source, paragraph); nothing if there is a single source."""
    sources = {"train": _by_source(train), "dev": _by_source(dev)}
    counts = {name: len(texts) for name, texts in sources["dev"].items() if name in sources["train"]}
    labels = sorted(sorted(counts), key=lambda name: -counts[name])[:MAX_LABELS]
    if len(labels) < 2:
        return {}
    return {f"{split}.tsv": _table(sources[split], labels, MAX_ROWS[split]) for split in sources}


def description(table: str) -> str:
    """Return one line on a table of `task_tables`: its rows, labels, and what always answering one label scores."""
    labels = Counter(line.split("\t")[1] for line in table.splitlines()[1:])
    name, count = labels.most_common(1)[0]
    share = f"always answering {name} is right in {count / labels.total():.1%}"
    return f"{labels.total():,} rows of {len(labels)} labels ({', '.join(labels)}); {share}"


def _by_source(rows: Iterable[Row]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for source, text in rows:
        if len(text) >= MIN_CHARACTERS:
            found[source].append(text)
    return found


def _table(texts: dict[str, list[str]], labels: list[str], max_rows: int) -> str:
    lines = ["text\tsource"]
    for label in labels:
        found = texts[label]
        count = min(len(found), max_rows)
        lines += [f"{found[i * len(found) // count]}\t{label}" for i in range(count)]  # at even distances
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = OneLineParser(description=__doc__)
    parser.add_argument("--input", nargs="+", metavar="TEXT", help="text of your own: files, folders or quoted globs")
    parser.add_argument("--max_size", type=int, default=MAX_TEXT_SIZE, help="of the English text, in characters")
    add_output_file(parser, "--output", "folder of the files", metavar="FOLDER", required=True)
    arguments = parser.parse_args()
    files = find_files(arguments.input) if arguments.input else []
    make_folder(arguments.output)
    for name in FILES:
        check_output_path("--output", arguments.output / name, arguments.overwrite, files)
    found = documents_of(files) if files else documents(arguments.max_size)
    with ExitStack() as claims, progress("collecting the text"):
        for name in FILES:
            claims.enter_context(claimed_file("--output", arguments.output / name, arguments.overwrite))
        paths = write_text(arguments.output, found)
    for path in paths:
        is_table = path.suffix == ".tsv"
        print(f"{path}: {description(path.read_text('utf-8')) if is_table else f'{path.stat().st_size:,} bytes'}")
