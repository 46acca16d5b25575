"""Read vocabulary files. Only this module determines which kind of vocabulary a file contains."""

from __future__ import annotations

from pathlib import Path

from reader.errors import InputError
from reader.tokenization.sentencepiece import SentencePieceVocabulary
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

KINDS: tuple[type[Vocabulary], ...] = (WordPieceVocabulary, SentencePieceVocabulary)
FILE_NAMES = tuple(kind.file_name for kind in KINDS)


def kind_of(path: Path) -> type[Vocabulary]:
    """Return the kind of vocabulary in a file: SentencePiece for the suffix .model, otherwise WordPiece."""
    return SentencePieceVocabulary if path.suffix == ".model" else WordPieceVocabulary


def vocabulary_in(folder: Path) -> Path | None:
    """Return the vocabulary file in a folder; None if there is none."""
    return next((folder / name for name in FILE_NAMES if (folder / name).is_file()), None)


def load_vocabulary(path: str | Path, lowercase: bool = True) -> Vocabulary:
    """Read a vocabulary.

    Raises InputError if the file cannot be read or is damaged, or if a special token is missing.
    """
    path = Path(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
    return kind_of(path).parse(content, lowercase, str(path))


def kept_vocabulary(folder: Path, fingerprint: str, owner: str) -> Vocabulary:
    """Return the vocabulary whose copy is kept in the folder of a corpus or a run.

    Raises InputError if the file is missing or damaged, or if the vocabulary has another fingerprint. In the message,
    `owner` completes "the vocabulary", for example "the model was trained with".
    """
    paths = [folder / name for name in FILE_NAMES if (folder / name).is_file()]
    if not paths:
        raise InputError(f"{folder}: contains no {' or '.join(FILE_NAMES)}, the vocabulary {owner}")
    for path in paths:
        # The fingerprint covers whether text is converted to lower case, but the file does not say it.
        for lowercase in (True, False):
            vocabulary = load_vocabulary(path, lowercase)
            if vocabulary.fingerprint == fingerprint:
                return vocabulary
    raise InputError(f"{paths[0]}: not the vocabulary {owner}")
