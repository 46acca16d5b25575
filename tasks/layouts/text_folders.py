"""One folder for each class, and one file for each text (IMDb)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from reader.errors import InputError
from tasks.data.examples import Place
from tasks.layouts.columns import cleaned
from tasks.layouts.lines import UnreadableError, read_text, text_files_in
from tasks.layouts.rows import AnyRow, Row, Wanted


@dataclass(frozen=True)
class TextFolders:
    """Folders that hold one folder of .txt files for each class.

    Attributes:
        classes: the names of the folders of the classes, which are the labels. Other folders are not read (IMDb's
            `unsup`).
        clean: a change of the texts, see columns.CLEANERS.
    """

    classes: tuple[str, ...]
    clean: str | None = None

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
