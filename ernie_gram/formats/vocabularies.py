"""Read and write the vocabulary in a model folder, and combine it with a model of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import NEVER, token_head_settings
from ernie_gram.formats.model import Model, Obstacle
from ernie_gram.formats.parameters import HEAD_BIAS, Loaded
from ernie_gram.formats.settings import LOWERCASE
from reader.errors import InputError
from reader.system.atomic_files import write_atomically
from reader.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary
from reader.tokenization.vocabulary_file import load_vocabulary, vocabulary_in
from reader.tokenization.wordpiece import WordPieceVocabulary

NO_VOCABULARY = "no vocabulary in the folder: the model can be converted, but cannot read text"


def read_vocabulary(folder: Path, lowercase: bool) -> Vocabulary | None:
    """Return the vocabulary in a folder, or None if it has none; raises InputError if the file is damaged."""
    path = vocabulary_in(folder)
    return load_vocabulary(path, lowercase) if path else None


def write_vocabulary(vocabulary: Vocabulary | None, folder: Path) -> None:
    """Write the file of a vocabulary, if there is one."""
    if vocabulary is not None:
        write_atomically(folder / vocabulary.file_name, vocabulary.content)


def tokenizer_settings(vocabulary: Vocabulary, class_name: str, max_tokens: int) -> dict[str, Any]:
    """Return the content of tokenizer_config.json. Texts are cut at `max_tokens` tokens if the user asks for it."""
    settings = {"tokenizer_class": class_name, LOWERCASE: vocabulary.lowercase, "model_max_length": max_tokens}
    return settings | special_tokens()


def special_tokens() -> dict[str, str]:
    """Return the content of special_tokens_map.json."""
    return {"pad_token": PAD, "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}


def lost_vocabulary(vocabulary: Vocabulary | None) -> list[Obstacle]:
    """Return what is lost of a vocabulary in a format that has WordPiece only."""
    if vocabulary is None or isinstance(vocabulary, WordPieceVocabulary):
        return []
    return [Obstacle(f"the vocabulary ({vocabulary.kind}): only WordPiece vocabularies (vocab.txt) can be held")]


def wordpiece_of(vocabulary: Vocabulary | None) -> Vocabulary | None:
    """Return the vocabulary if it is WordPiece, or else None."""
    return vocabulary if isinstance(vocabulary, WordPieceVocabulary) else None


def assembled(
    folder: Path, format_name: str, loaded: Loaded, vocabulary: Vocabulary | None, notes: tuple[str, ...] = ()
) -> Model:
    """Return the model in a folder of another project: an encoder and at most a head over tokens.

    The head's classes become the tokens of the vocabulary; there may be fewer of them than rows of the embedding.
    Raises InputError if the vocabulary or the head does not fit the token embedding.
    """
    notes = (*loaded.notes, *notes)
    if vocabulary is None:
        notes = (*notes, NO_VOCABULARY)
    else:
        check_vocabulary(vocabulary, len(loaded.arrays["word_embedding"]), folder)
    arrays = dict(loaded.arrays)
    if HEAD_BIAS not in arrays:
        return Model(folder, format_name, loaded.config, arrays, vocabulary, notes=notes)
    classes, rows = len(arrays[HEAD_BIAS]), len(arrays["word_embedding"])
    tokens = classes if vocabulary is None else len(vocabulary)
    if not tokens <= classes <= rows:
        raise InputError(
            f"{folder}: the prediction head has {classes:,} classes, but the vocabulary {tokens:,} tokens, and the "
            f"token embedding {rows:,} rows"
        )
    # No note for the bias that we wrote ourselves for unused rows (see heads.py).
    if (arrays[HEAD_BIAS][tokens:] > NEVER).any():
        notes = (*notes, f"the prediction head keeps {tokens:,} of {classes:,} classes, the tokens")
    arrays[HEAD_BIAS] = arrays[HEAD_BIAS][:tokens]
    return Model(
        folder, format_name, loaded.config, arrays, vocabulary, None, token_head_settings(loaded.config), notes
    )


def check_vocabulary(vocabulary: Vocabulary, num_rows: int, folder: Path) -> None:
    """Raise InputError if a vocabulary has more tokens than the token embedding has rows."""
    if len(vocabulary) > num_rows:
        raise InputError(
            f"{folder / vocabulary.file_name}: {len(vocabulary):,} tokens, but the token embedding has {num_rows:,} "
            "rows; put the vocabulary of this model there"
        )
