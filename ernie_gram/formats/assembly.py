"""Put together the record of a model from its checked parameters and its vocabulary."""

from __future__ import annotations

from pathlib import Path

from ernie_gram.formats.heads import NEVER, token_head_settings
from ernie_gram.formats.model import Model
from ernie_gram.formats.parameters import HEAD_BIAS, Loaded
from ernie_gram.formats.vocabularies import NO_VOCABULARY
from reader.errors import InputError
from reader.tokenization.vocabulary import Vocabulary


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
    if loaded.has_token_head and len(arrays[HEAD_BIAS]) > len(arrays["word_embedding"]):
        raise InputError(
            f"{folder}: the prediction head has {len(arrays[HEAD_BIAS]):,} classes, but the token embedding "
            f"{len(arrays['word_embedding']):,} rows"
        )
    if loaded.has_token_head and vocabulary is not None:
        classes = len(arrays[HEAD_BIAS])
        if classes < len(vocabulary):
            raise InputError(
                f"{folder}: the prediction head has {classes:,} classes, but the vocabulary {len(vocabulary):,} tokens"
            )
        arrays[HEAD_BIAS] = arrays[HEAD_BIAS][: len(vocabulary)]
        # What we wrote ourselves for unused rows changes nothing, see heads.py.
        if (loaded.arrays[HEAD_BIAS][len(vocabulary) :] > NEVER).any():
            notes = (*notes, f"the prediction head keeps {len(vocabulary):,} of {classes:,} classes, the tokens")
    pretraining = token_head_settings(loaded.config) if loaded.has_token_head else None
    return Model(folder, format_name, loaded.config, arrays, vocabulary, None, pretraining, notes)


def check_vocabulary(vocabulary: Vocabulary, num_rows: int, folder: Path) -> None:
    """Raise InputError if a vocabulary has more tokens than the token embedding has rows."""
    if len(vocabulary) > num_rows:
        raise InputError(
            f"{folder / vocabulary.file_name}: {len(vocabulary):,} tokens, but the token embedding has {num_rows:,} "
            "rows; put the vocabulary of this model there"
        )
