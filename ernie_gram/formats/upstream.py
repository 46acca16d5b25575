"""Upstream's two layouts: ernie_config.json, vocab.txt, and

    params/                  of the static code: one file for each variable; the released English models
    saved_weights.pdparams   of the dygraph code; the released Chinese models

Upstream always has the LayerNorm epsilon 1e-5, and feed-forward networks of 4 x hidden_size. Its models always have a
table of sentence embeddings and, in the static layout, one of relative position. If a model of ours does not read them,
zeros are written, with which upstream computes the same.

The static code adds sentence embeddings for reading comprehension only. They are off unless `use_sentence_embedding` in
ernie_config.json is true (a key of ours). The dygraph code always adds them, and has relative position if
`rel_pos_size` is set.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ernie_gram.formats.heads import held_arrays, losses, read_foreign
from ernie_gram.formats.model import Format, ModelRecord
from ernie_gram.formats.names import RELATIVE, Column
from ernie_gram.formats.parameters import LOWERCASE, settings_of, write_settings
from ernie_gram.formats.untrusted.paddle_files import write_paddle_variable, write_pdparams
from ernie_gram.formats.vocabularies import read_vocabulary
from ernie_gram.model.config import NUM_BUCKETS
from reader.errors import InputError
from reader.system.untrusted_text import read_json

CONFIG, PARAMS, WEIGHTS = "ernie_config.json", "params", "saved_weights.pdparams"
WEIGHTS_OF: dict[Column, str] = {"static": PARAMS, "dygraph": WEIGHTS}
LAYER_NORM_EPS = 1e-5
# Settings of ours that upstream does not have: whatever stands in its files, it computes with the defaults.
NOT_UPSTREAM = ("layer_norm_eps", "intermediate_size")


def _read(folder: Path, layout: Column) -> ModelRecord:
    """Return the model in a folder; raises InputError if its files are damaged or do not fit together."""
    weights, path = WEIGHTS_OF[layout], folder / CONFIG
    if not path.is_file():
        raise InputError(f"{folder}: has {weights}, but no {CONFIG}; put upstream's file there")
    settings = {key: value for key, value in read_json(path).items() if key not in NOT_UPSTREAM}
    if layout == "static":
        settings = {"use_relative_position": (folder / PARAMS / RELATIVE).is_file(), **settings}
    else:
        settings = {"use_sentence_embedding": True, **settings}
        settings["use_relative_position"] = bool(settings.get("rel_pos_size"))
    vocabulary = read_vocabulary(folder, settings, str(path))
    return read_foreign(f"upstream_{layout}", folder / weights, layout, settings, str(path), vocabulary)


def _losses(model: ModelRecord, layout: Column) -> list[str]:
    """Return what a layout cannot hold of a model; raises InputError if it can hold nothing."""
    size = model.config.feed_forward_size
    if size != 4 * model.config.hidden_size:
        raise InputError(f"{model.source}: upstream cannot hold intermediate_size {size}, only 4 x hidden_size")
    return losses(model, layout, "upstream", "", LAYER_NORM_EPS)


def _write(model: ModelRecord, folder: Path, name: str, layout: Column) -> None:
    """Write the files of a model into an empty folder that will have the given name."""
    config = model.config
    settings = {key: value for key, value in settings_of(config).items() if key not in NOT_UPSTREAM}
    settings[LOWERCASE] = model.vocabulary.lowercase
    arrays = held_arrays(model, layout)
    if layout == "static":
        (folder / PARAMS).mkdir()
        for key, values in arrays.items():
            write_paddle_variable(folder / PARAMS / key, values)
    else:
        settings["rel_pos_size"] = NUM_BUCKETS if config.use_relative_position else None
        settings |= {"max_seq_len": config.max_position_embeddings, "has_pooler": config.use_pooler}
        write_pdparams(folder / WEIGHTS, arrays)
    write_settings(folder / CONFIG, settings)
    (folder / model.vocabulary.file_name).write_bytes(model.vocabulary.content)


def _format(layout: Column) -> Format:
    weights = WEIGHTS_OF[layout]
    return Format(
        f"upstream_{layout}",
        f"{weights} beside {CONFIG}",
        lambda folder: (folder / weights).exists(),
        partial(_read, layout=layout),
        partial(_losses, layout=layout),
        partial(_write, layout=layout),
    )


STATIC, DYGRAPH = map(_format, WEIGHTS_OF)
