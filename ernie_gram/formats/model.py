"""`ModelRecord`, a model in memory, into which model folders of all formats are read; and `Format`, a format's type."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ernie_gram.model.config import ModelConfig
from ernie_gram.run.checkpoint import Arrays
from reader.errors import counted
from reader.lexicon.lexicon_file import Lexicon
from reader.tokenization.vocabulary import Vocabulary


@dataclass(frozen=True)
class TrainingRecord:
    """What the card of a model says about its training. Folders are named without their paths.

    Attributes:
        corpus: name of the folder of the corpus; "" if unknown.
        start: name of the folder of the model that training started from; "" if it started from random weights.
        settings: how the model was trained, as nested dicts.
        scores: the last evaluation on held-out text, or on the dev splits of the task, `step` included; {} if there is
            none.
        task: name of the task of a fine-tuning; "" for pre-training.
    """

    corpus: str = ""
    start: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    task: str = ""


@dataclass(frozen=True)
class ModelRecord:
    """A model in memory: its shape, its parameters, and what gives its token and n-gram IDs their meaning.

    Attributes:
        source: the folder that it was read from.
        format: name of the format of `source`.
        config: the shape of the encoder.
        parameters: float32 arrays under the names of the static model (see parameters.py): encoder, pooler, heads.
        vocabulary: the tokens.
        lexicon: the n-grams that follow the tokens in the classes of the heads; None if the model has no n-grams.
        pretraining: the sections heads.PREDICTION_SECTIONS of the settings that the prediction heads belong to; None if
            there are no prediction heads.
        notes: what was changed or dropped while reading, one line each, for the console.
        training: what is known of its training; None if nothing is.
    """

    source: Path
    format: str
    config: ModelConfig
    parameters: Arrays
    vocabulary: Vocabulary
    lexicon: Lexicon | None = None
    pretraining: dict[str, Any] | None = None
    notes: tuple[str, ...] = ()
    training: TrainingRecord | None = None

    @property
    def summary(self) -> str:
        """Its sizes in a line."""
        shape = f"{counted(self.config.num_hidden_layers, 'layer')} of {self.config.hidden_size}"
        units = counted(len(self.vocabulary), "token"), counted(len(self.lexicon or ()), "n-gram")
        return ", ".join([shape, *units, *(["prediction heads"] if self.pretraining else [])])


@dataclass(frozen=True)
class Format:
    """A format of model folders.

    Attributes:
        name: as in `--to` and in ModelRecord.format.
        looks_for: the files by which `detect` recognises it, in words.
        detect: returns whether a folder has this format.
        read: returns the model in a folder; raises InputError that names the file.
        losses: returns what is lost of a model, one line each; [] if reading what was written gives the same model.
            Raises InputError if nothing can be written.
        write: takes a model, an empty folder, and the name that it will have, and writes the files of the model. None
            for a format that is only read.
    """

    name: str
    looks_for: str
    detect: Callable[[Path], bool]
    read: Callable[[Path], ModelRecord]
    losses: Callable[[ModelRecord], list[str]] = lambda model: []
    write: Callable[..., None] | None = None


def digest_of(parameters: Arrays) -> str:
    """Return the SHA-256 of the names, types, shapes and values of parameters; their order has no effect."""
    digest = hashlib.sha256()
    for name in sorted(parameters):
        values = np.ascontiguousarray(parameters[name])
        digest.update(f"{name} {values.dtype} {values.shape}\n".encode())
        digest.update(values.data)
    return digest.hexdigest()
