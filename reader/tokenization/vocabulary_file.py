"""Read and write vocabulary files. Only this module determines which kind of vocabulary a file contains.

Which characters are dropped, and which are letters or punctuation, depends on Python's version of Unicode. The version
under which a vocabulary was first used is kept beside it, in NAME.json.
"""

from __future__ import annotations

import json
import unicodedata
from functools import cache
from itertools import product
from pathlib import Path

from reader.errors import InputError, print_note
from reader.system.atomic_files import write_atomically
from reader.system.untrusted_text import read_json
from reader.tokenization.sentencepiece import SentencePieceVocabulary
from reader.tokenization.vocabulary import Vocabulary
from reader.tokenization.wordpiece import WordPieceVocabulary

KINDS: tuple[type[Vocabulary], ...] = (WordPieceVocabulary, SentencePieceVocabulary)
FILE_NAMES = tuple(kind.file_name for kind in KINDS)
UNICODE = "unicode"


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
    read = SentencePieceVocabulary if kind_of(path) is SentencePieceVocabulary else WordPieceVocabulary.parse
    vocabulary = read(content, lowercase, str(path))
    if unicode_path(path).is_file():
        vocabulary.unicode = str(read_json(unicode_path(path)).get(UNICODE, vocabulary.unicode))
    return vocabulary


def unicode_path(path: Path) -> Path:
    """Return the file beside a vocabulary that has its version of Unicode."""
    return path.with_name(f"{path.name}.json")


def save_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Write the file of a vocabulary, and its version of Unicode beside it."""
    write_atomically(path, vocabulary.content)
    write_atomically(unicode_path(path), json.dumps({UNICODE: vocabulary.unicode}) + "\n")


@cache
def note_other_unicode(then: str) -> None:
    """Print a note, once, if a vocabulary is used with another version of Unicode than it was first used with."""
    if then != (now := unicodedata.unidata_version):
        print_note(
            f"the vocabulary was first used with Unicode {then}, and this Python has {now}: texts with characters that "
            "only the newer one knows are split otherwise"
        )


def kept_vocabulary(folder: Path, fingerprint: str, owner: str) -> Vocabulary:
    """Return the vocabulary whose copy is kept in the folder of a corpus or a run.

    Raises InputError if the file is missing or damaged, or if the vocabulary has another fingerprint. In the message,
    `owner` completes "the vocabulary", for example "the model was trained with".
    """
    # The fingerprint covers whether text is converted to lower case, but the file does not say it.
    for name, lowercase in product(FILE_NAMES, (True, False)):
        if (folder / name).is_file():
            vocabulary = load_vocabulary(folder / name, lowercase)
            if vocabulary.fingerprint == fingerprint:
                return vocabulary
    raise InputError(f"{folder}: contains no {' or '.join(FILE_NAMES)} that is the vocabulary {owner}")
