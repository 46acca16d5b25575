"""The record into which every format of model folder is read, and from which every format is written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ernie_gram.formats.training_record import TrainingRecord
from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import Arrays
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary import Vocabulary


@dataclass(frozen=True)
class Model:
    """A model in memory: its shape, its parameters, and what gives its token and n-gram IDs their meaning.

    Attributes:
        source: the folder that it was read from.
        format: name of the format of `source`.
        config: the shape of the encoder.
        parameters: float32 arrays under the names of the static model (layers.py): encoder, pooler, heads.
        vocabulary: the tokens; None if the folder has no vocabulary.
        lexicon: the n-grams that follow the tokens in the classes of the heads; None if the model has no n-grams.
        pretraining: the resolved pre-training configuration that the prediction heads belong to, as nested dicts; None
            if there are no prediction heads.
        notes: what was changed or dropped while reading, one line each, for the console.
        training: what is known of its training; None if nothing is.
    """

    source: Path
    format: str
    config: ModelConfig
    parameters: Arrays
    vocabulary: Vocabulary | None = None
    lexicon: Lexicon | None = None
    pretraining: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    training: TrainingRecord | None = None
