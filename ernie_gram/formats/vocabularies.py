"""The vocabulary in a model folder."""

from __future__ import annotations

from pathlib import Path

from reader.system.atomic_files import atomic_file
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.vocabulary_file import FILE_NAMES, load_vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

NO_VOCABULARY = "no vocabulary in the folder: the model can be converted, but cannot read text"


def read_vocabulary(folder: Path, lowercase: bool) -> Vocabulary | None:
    """Return the vocabulary in a folder, or None if it has no file of one; raises InputError if the file is damaged."""
    paths = [folder / name for name in FILE_NAMES if (folder / name).is_file()]
    return load_vocabulary(paths[0], lowercase) if paths else None


def write_vocabulary(vocabulary: Vocabulary | None, folder: Path) -> None:
    """Write the file of a vocabulary, if there is one."""
    if vocabulary is not None:
        with atomic_file(folder / vocabulary.file_name) as partial:
            partial.write_bytes(vocabulary.content)


def lost_vocabulary(vocabulary: Vocabulary | None) -> list[str]:
    """Return what is lost of a vocabulary in a format that has WordPiece only."""
    if vocabulary is None or isinstance(vocabulary, WordPieceVocabulary):
        return []
    return [f"the vocabulary ({vocabulary.kind}): only WordPiece vocabularies (vocab.txt) can be held"]


def wordpiece_of(vocabulary: Vocabulary | None) -> Vocabulary | None:
    """Return the vocabulary if it is WordPiece, or else None."""
    return vocabulary if isinstance(vocabulary, WordPieceVocabulary) else None
