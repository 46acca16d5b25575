"""Folders of files, each with one text: those of classes (IMDb), and articles with questions (RACE)."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reader.errors import InputError
from tasks.layouts.lines import UnreadableError, read_json, read_text
from tasks.layouts.rows import FORM_ERRORS, AnyRow, BadRow, Cleaner, Place, Row, Wanted, cleaned


@dataclass(frozen=True)
class TextFolders:
    """Folders that hold one folder of .txt files for each class.

    Attributes:
        classes: the names of the folders of the classes, which are the labels. Other folders are not read (IMDb's
            `unsup`).
        clean: a change of the texts, see rows.CLEANERS.
    """

    classes: tuple[str, ...]
    clean: Cleaner | None = None

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the texts of each class, files by name; raises InputError if the folder of a class is missing.

        Without labels the .txt files of the folder itself are read.
        """
        for number, folder in enumerate(files):
            # Names of files may repeat in other folders.
            prefix = f"{number}/" if len(files) > 1 else ""
            for name in self.classes if wanted.labelled else [""]:
                if name and not (folder / name).is_dir():
                    raise InputError(f"{folder}: no folder {name!r} with the texts of this class")
                for path in text_files_in(folder / name):
                    yield self._row(path, name, prefix)

    def _row(self, path: Path, label: str, prefix: str) -> AnyRow:
        try:
            text = read_text(path)
        except UnreadableError as error:
            return error.row
        gold = {"id": f"{prefix}{label}/{path.stem}", "label": label} if label else {"id": f"{prefix}{path.stem}"}
        return Row(Place(path), cleaned({**gold, "text_a": text}, self.clean))


@dataclass(frozen=True)
class Race:
    """Folders of .txt files with `article`, and the lists `questions`, `options` and `answers` (letters).

    A row is a question, in which each `_` is a gap that the option fills. Its ID is made of the names of folder and
    file and the number of the question, because file names repeat between high and middle. The number of the folder
    follows if the names of folders repeat.
    """

    def rows(self, files: Sequence[Path], wanted: Wanted) -> Iterator[AnyRow]:
        """Yield the questions of the files in each folder, files by name; raises InputError for an empty folder."""
        names = [folder.name for folder in files]
        for number, folder in enumerate(files):
            ending = f"-{number}" if names.count(folder.name) > 1 else ""
            for path in text_files_in(folder):
                yield from _article_rows(path, wanted.labelled, ending)


def _article_rows(path: Path, labelled: bool, ending: str) -> Iterator[AnyRow]:
    keys = ("questions", "options", *(["answers"] if labelled else []))
    try:
        record = read_json(path)
        questions = list(zip(*(record[key] for key in keys), strict=True))
    except UnreadableError as error:
        yield error.row
        return
    except (KeyError, *FORM_ERRORS):
        yield BadRow(Place(path), f"expected an object with the lists {', '.join(keys)}, equally long")
        return
    for number, values in enumerate(questions):
        place = Place(path, part=f"question {number + 1}")
        row: dict[str, Any] = dict(zip(("question", "options", "answer"), values, strict=False))
        letter = row.get("answer", "A")
        if letter not in [*string.ascii_uppercase]:
            yield BadRow(place, f"the answer {str(letter)[:60]!r} is not a letter A, B, C ...")
            continue
        if labelled:
            row["answer"] = string.ascii_uppercase.index(letter)
        identity = f"{path.parent.name}/{path.stem}-{number}{ending}"
        yield Row(place, {**row, "id": identity, "context": record.get("article")})


def text_files_in(folder: Path) -> list[Path]:
    """Return the .txt files of a folder, sorted; raises InputError if there are none."""
    if not folder.is_dir():
        raise InputError(f"{folder}: not a folder of files *.txt")
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise InputError(f"{folder}: no files *.txt in this folder")
    return paths
