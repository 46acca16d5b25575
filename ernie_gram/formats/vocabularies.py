"""Read and write the vocabulary in a model folder, and combine it with a model of another project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ernie_gram.formats.heads import NEVER, token_head_settings
from ernie_gram.formats.model import Model, Obstacle
from ernie_gram.formats.parameters import HEAD_BIAS, LOWERCASE, Loaded
from reader.errors import InputError
from reader.system.atomic_files import write_atomically
from reader.tokenization.vocabulary import CLS, MASK, PAD, SEP, UNK, Vocabulary
from reader.tokenization.vocabulary_file import FILE_NAMES, load_vocabulary, vocabulary_in
from reader.tokenization.wordpiece import WordPieceVocabulary


def read_vocabulary(folder: Path, lowercase: bool) -> Vocabulary:
    """Return the vocabulary in a folder; raises InputError if it is missing or damaged."""
    path = vocabulary_in(folder)
    if path is None:
        raise InputError(f"{folder}: has no vocabulary; put the model's {' or '.join(FILE_NAMES)} there")
    return load_vocabulary(path, lowercase)


def write_vocabulary(vocabulary: Vocabulary, folder: Path) -> None:
    """Write the file of a vocabulary."""
    write_atomically(folder / vocabulary.file_name, vocabulary.content)


def tokenizer_settings(vocabulary: Vocabulary, class_name: str, max_tokens: int) -> dict[str, Any]:
    """Return the content of tokenizer_config.json. Texts are cut at `max_tokens` tokens if the user asks for it."""
    settings = {"tokenizer_class": class_name, LOWERCASE: vocabulary.lowercase, "model_max_length": max_tokens}
    return settings | special_tokens()


def special_tokens() -> dict[str, str]:
    """Return the content of special_tokens_map.json."""
    return {"pad_token": PAD, "unk_token": UNK, "cls_token": CLS, "sep_token": SEP, "mask_token": MASK}


def vocabulary_obstacles(vocabulary: Vocabulary) -> list[Obstacle]:
    """Return an obstacle unless the vocabulary is WordPiece, the only kind of other software."""
    if isinstance(vocabulary, WordPieceVocabulary):
        return []
    return [Obstacle(f"a vocabulary of {vocabulary.kind}: only WordPiece ({WordPieceVocabulary.file_name})", False)]


def assembled(
    folder: Path, format_name: str, loaded: Loaded, vocabulary: Vocabulary, notes: tuple[str, ...] = ()
) -> Model:
    """Return the model in a folder of another project: an encoder and at most a head over tokens.

    The head's classes become the tokens of the vocabulary; there may be fewer of them than rows of the embedding.
    Raises InputError if the vocabulary or the head does not fit the token embedding.
    """
    notes = (*loaded.notes, *notes)
    check_vocabulary(vocabulary, len(loaded.arrays["word_embedding"]), folder)
    arrays = dict(loaded.arrays)
    if HEAD_BIAS not in arrays:
        return Model(folder, format_name, loaded.config, arrays, vocabulary, notes=notes)
    classes, rows, tokens = len(arrays[HEAD_BIAS]), len(arrays["word_embedding"]), len(vocabulary)
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
