"""Upstream's two layouts, which are only read: ernie_config.json, vocab.txt, and

    params/                  of the static code: one file for each variable; the released English models
    saved_weights.pdparams   of the dygraph code; the released Chinese models

Upstream always has the LayerNorm epsilon 1e-5, and feed-forward networks of 4 x hidden_size. The static code adds
sentence embeddings for reading comprehension only. They are off unless `use_sentence_embedding` in ernie_config.json is
true (a key of ours). The dygraph code always adds them, and has relative position if `rel_pos_size` is set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ernie_gram.formats.heads import read_foreign
from ernie_gram.formats.model import Format, ModelRecord
from ernie_gram.formats.names import RELATIVE, Column
from ernie_gram.formats.vocabularies import read_vocabulary
from reader.errors import InputError
from reader.system.untrusted_text import read_json

CONFIG = "ernie_config.json"
WEIGHTS_OF: dict[Column, str] = {"static": "params", "dygraph": "saved_weights.pdparams"}
# Settings of ours that upstream does not have: whatever stands in its files, it computes with the defaults.
NOT_UPSTREAM = ("layer_norm_eps", "intermediate_size")


def _read(folder: Path, layout: Column) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    weights, path = folder / WEIGHTS_OF[layout], folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: has {weights.name}, but no {CONFIG}; put upstream's file there")
    settings = {key: value for key, value in read_json(path).items() if key not in NOT_UPSTREAM}
    has_table = (weights / RELATIVE).is_file() if layout == "static" else bool(settings.get("rel_pos_size"))
    settings["use_relative_position"] = has_table
    vocabulary = read_vocabulary(folder, settings, str(path))
    return read_foreign(f"upstream_{layout}", weights, layout, settings, str(path), vocabulary)


def _format(layout: Column) -> Format:
    weights = WEIGHTS_OF[layout]
    return Format(
        f"upstream_{layout}",
        f"{weights} beside {CONFIG}",
        lambda folder: (folder / weights).exists(),
        partial(_read, layout=layout),
    )


STATIC, DYGRAPH = map(_format, WEIGHTS_OF)
