"""Vocabularies as files: here, and nowhere else, it is decided of which kind one is."""

from __future__ import annotations

from pathlib import Path

from reader.errors import InputError
from reader.tokenization.sentencepiece import SentencePieceVocabulary
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

KINDS: tuple[type[Vocabulary], ...] = (WordPieceVocabulary, SentencePieceVocabulary)
FILE_NAMES = tuple(kind.file_name for kind in KINDS)


def kind_of(path: Path) -> type[Vocabulary]:
    """Which kind of vocabulary a file is taken to hold: a .model is sentencepiece's, all else a vocab.txt."""
    return SentencePieceVocabulary if path.suffix == ".model" else WordPieceVocabulary


def load_vocabulary(path: Path, lowercase: bool = True) -> Vocabulary:
    """Read a vocabulary; raises InputError if it cannot be read or is damaged, or a special token is absent."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot read the vocabulary: {error.strerror}") from error
    return kind_of(path).parse(content, lowercase, str(path))


def kept_vocabulary(folder: Path, fingerprint: str, owner: str) -> Vocabulary:
    """The copy of its vocabulary that a corpus or a run keeps.

    Raises InputError if it is absent, damaged or another; then `owner` says whose it should be.
    """
    here = [folder / name for name in FILE_NAMES if (folder / name).is_file()]
    if not here:
        raise InputError(f"{folder}: no {' or '.join(FILE_NAMES)} in it, the vocabulary {owner}")
    for path in here:
        # Whether text is lower-cased is not in the file, but in the fingerprint.
        for lowercase in (True, False):
            vocabulary = load_vocabulary(path, lowercase)
            if vocabulary.fingerprint == fingerprint:
                return vocabulary
    raise InputError(f"{here[0]}: not the vocabulary {owner}")
